//! Cursor values that lie at no place of the order: NaN and infinity.

use arrow::array::{AsArray, RecordBatch};
use futures::TryStreamExt;
use tidelake_connector::cursor_extent;
use tidelake_model::{InfiniteTime, Policies, Result, SpecialNumber};

use super::{MOST_ROWS, Work};
use crate::casts::as_text;

/// A value that only the source can write down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Beyond {
    /// As the source prints it.
    pub(super) text: String,
    /// Whether it is below all values, and not above.
    pub(super) is_low: bool,
}

impl Beyond {
    /// NaN or infinity; `None` for every other value.
    fn of(text: &str) -> Option<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let magnitude = lower.trim_start_matches(['+', '-']);
        let is_low = lower.starts_with('-');
        matches!(magnitude, "nan" | "inf" | "infinity")
            .then(|| Self { text: text.to_owned(), is_low: is_low && magnitude != "nan" })
    }
}

impl Work<'_> {
    /// A policy that fails on such values would fail here as well, where the
    /// question is what became of them.
    pub(super) fn explained_policies(&self) -> Policies {
        let mut policies = self.sync.policies;
        if policies.special_number == SpecialNumber::Fail {
            policies.special_number = SpecialNumber::Null;
        }
        if policies.infinite_time == InfiniteTime::Fail {
            policies.infinite_time = InfiniteTime::Null;
        }
        policies
    }

    /// The rows whose cursor is NaN or infinity: the lake's types have no such
    /// value, and the source is asked for its text. Rows that are found by the same
    /// key are told apart by their cursor alone, so it does not matter which of
    /// those without a value is which.
    pub(super) async fn beyond(&self, rows: &[RecordBatch]) -> Result<Vec<Option<Beyond>>> {
        let mut found = vec![None; rows.len()];
        let Some(cursor) = &self.selected.cursor else { return Ok(found) };
        let has_place = |row: &RecordBatch| {
            cursor_extent(row, &cursor.read).is_ok_and(|extent| extent.lowest.is_some())
        };
        // An infinite time may have been moved to the last one that there is.
        let moved = self.sync.policies.infinite_time == InfiniteTime::Clamp && rows.len() == 1;
        let doubtful = |row: &RecordBatch| moved || !has_place(row);
        if !cursor.may_be_unreachable() || !rows.iter().any(doubtful) {
            return Ok(found);
        }
        let mut texts = self.cursor_texts().await?.into_iter();
        for (row, place) in rows.iter().zip(&mut found) {
            if doubtful(row) {
                *place = texts.next();
            }
        }
        Ok(found)
    }

    async fn cursor_texts(&self) -> Result<Vec<Beyond>> {
        let Some(cursor) = &self.selected.cursor else { return Ok(vec![]) };
        let names = cursor.read.cursor.columns();
        let columns = self.selected.read_columns.iter();
        let columns = columns.filter(|column| names.iter().any(|name| name == column.name()));
        let mut columns: Vec<_> = columns.cloned().collect();
        for column in &mut columns {
            as_text(column);
            column.field.set_nullable(true);
        }
        let request = self.find_request(columns, Policies::default());
        let mut reading = self.source.find(&request).await?;
        let mut found = vec![];
        while let Some(batch) = reading.batches.try_next().await? {
            let Some(texts) = batch.columns().first().and_then(|it| it.as_string_opt::<i32>())
            else {
                continue;
            };
            found.extend(texts.iter().flatten().filter_map(Beyond::of));
            found.truncate(MOST_ROWS);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nan_and_infinity_are_beyond() {
        for (text, is_low) in [
            ("NaN", Some(false)),
            ("-nan", Some(false)),
            ("Infinity", Some(false)),
            ("+inf", Some(false)),
            ("infinity", Some(false)),
            ("-infinity", Some(true)),
            ("-Inf", Some(true)),
            ("1e400", None),
            ("2026-11-30", None),
            ("", None),
        ] {
            assert_eq!(Beyond::of(text).map(|found| found.is_low), is_low, "{text}");
        }
    }
}
