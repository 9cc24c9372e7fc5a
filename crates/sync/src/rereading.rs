//! Reading a window to its end, however often the source is lost on the way.
//!
//! A slice is read again alone for as long as its snapshot lives. When that is
//! lost, a full table starts again from nothing, and a window is cut at cursor
//! values into parts, each of which is read in a snapshot of its own: what a part
//! wrote stays, and the next loss costs less. The window itself never changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use tidelake_connector::{CursorExtent, SplitRequest};
use tidelake_model::{Error, ErrorKind, Result, Step, WindowRecord};
use tidelake_watermark::{Bound, Position, Range, Value};

use crate::columns::table_read;
use crate::run::degree_of;
use crate::slices::{Attempt, Readers, Written};
use crate::steps::{number, value_like};
use crate::table_run::TableWork;

/// Into how many parts a window is cut at once, at most.
const MOST_PARTS: i128 = 64;
/// Cuts between moments are whole microseconds: no column's own text of them is
/// longer, nor rounded.
const NANOS_PER_MICRO: i128 = 1_000;

impl TableWork<'_> {
    /// Reads a window into staged objects.
    pub(crate) async fn read_window(
        &self,
        window: &WindowRecord,
        readers: &Arc<Readers>,
    ) -> Result<Written> {
        let mut left = VecDeque::from([window.clone()]);
        let mut written = Written::default();
        let mut series = self.run.retry.series(Some(&self.report.table));
        while let Some(part) = left.pop_front() {
            let attempt = readers.attempt();
            let error = match self.read_part(&part, readers, &attempt).await {
                Ok(more) => {
                    written = written.join(more)?;
                    series.arrived();
                    continue;
                }
                Err(error) => error,
            };
            if attempt.has_rows() {
                series.arrived();
            }
            if let Err(error) = series.wait(error).await {
                readers.give_up(&written).await;
                return Err(error);
            }
            let parts = smaller(&part, &attempt.seen())?;
            if parts.len() > 1 {
                tracing::info!("{}: reading on in {} parts", self.report.table, parts.len());
            }
            for part in parts.into_iter().rev() {
                left.push_front(part);
            }
        }
        Ok(written)
    }

    /// Reads a part of a window in one snapshot.
    async fn read_part(
        &self,
        part: &WindowRecord,
        readers: &Arc<Readers>,
        attempt: &Arc<Attempt>,
    ) -> Result<Written> {
        let request = SplitRequest {
            read: table_read(&self.run.sync, &self.selected, part, self.run.shares),
            degree: degree_of(&self.run.sync, &self.selected, part, self.run.degree),
            method: self.selected.read.method,
            key: self.selected.read.key.clone(),
        };
        let slices = self.unless_stopped(self.run.source.split(&request)).await?;
        self.check_no_column_is_new(&slices.columns)?;
        self.fault(Step::Split).await?;
        let began = Instant::now();
        let reading = readers.read(attempt, slices.slices);
        tokio::pin!(reading);
        let limit = self.run.retry.patience.old_snapshot;
        let mut age = limit;
        loop {
            tokio::select! {
                read = &mut reading => {
                    drop(slices.hold);
                    self.timed("read and write", began);
                    return read;
                }
                () = tokio::time::sleep(limit) => {
                    tracing::warn!(
                        "{}: the source has kept a snapshot for {} s and cannot tidy up what was \
                         deleted since; more readers or smaller windows shorten that",
                        self.report.table,
                        age.as_secs()
                    );
                    age = age.saturating_add(limit);
                }
            }
        }
    }
}

/// A part of a window, cut by what was seen of it before its snapshot was lost.
/// One that cannot be cut is read again as it is. Rows without a value have no
/// place between the cuts: they are read with the last part.
fn smaller(part: &WindowRecord, seen: &CursorExtent) -> Result<Vec<WindowRecord>> {
    let Some(range) = &part.range else { return Ok(vec![part.clone()]) };
    let differ = |error| Error::new(ErrorKind::Data, "cursor values differ").with_source(error);
    let ranges = range.cut(&cuts(range, seen)).map_err(differ)?;
    let last = ranges.len().saturating_sub(1);
    let parts = ranges.into_iter().enumerate().map(|(number, range)| WindowRecord {
        range: Some(range),
        null_cursors: part.null_cursors && number == last,
        ..part.clone()
    });
    Ok(parts.collect())
}

/// Where to cut: at half of what was seen, and at equal steps above it. Rows often
/// lie in the order of their cursor; a part is then half of what could be read.
fn cuts(range: &Range, seen: &CursorExtent) -> Vec<Position> {
    let (Some(lowest), Some(highest)) = (&seen.lowest, &seen.highest) else { return vec![] };
    // Bytes of one cursor may differ in length, which no distance tells.
    if matches!(lowest.first(), Value::Binary(_)) {
        return vec![];
    }
    let top = range.high.as_ref().map_or(highest, |high| &high.at);
    let (Some(from), Some(to), Some(end)) =
        (number(lowest.first()), number(highest.first()), number(top.first()))
    else {
        return vec![];
    };
    let grain = match lowest.first() {
        Value::Datetime(_) | Value::Timestamp(_) => NANOS_PER_MICRO,
        _ => 1,
    };
    let half = to.saturating_sub(from) / 2;
    let step = half.max(end.saturating_sub(from) / MOST_PARTS + 1).max(grain);
    let mut cuts = vec![];
    let mut at = from.saturating_add(half);
    while at < end {
        let whole = at.div_euclid(grain).saturating_mul(grain);
        cuts.extend(value_like(lowest.first(), whole).map(|value| lowest.with_first(value)));
        at = at.saturating_add(step);
    }
    cuts.retain(|cut| range.high.as_ref() != Some(&Bound { at: cut.clone(), inclusive: true }));
    cuts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::window::whole;

    fn bound(number: i128, inclusive: bool) -> Bound {
        Bound { at: Value::Integer(number).into(), inclusive }
    }

    fn window(low: Option<Bound>, high: Option<Bound>, null_cursors: bool) -> WindowRecord {
        WindowRecord { range: Some(Range { low, high }), null_cursors, ..whole() }
    }

    fn seen(values: &[i128]) -> CursorExtent {
        let at = |value: Option<&i128>| value.map(|value| Value::Integer(*value).into());
        CursorExtent { lowest: at(values.iter().min()), highest: at(values.iter().max()), nulls: 0 }
    }

    proptest! {
        #[test]
        fn parts_tile_the_window_whatever_was_seen(
            low in 0_i128..50,
            width in 1_i128..400,
            open_low in any::<bool>(),
            exclusive in any::<bool>(),
            nulls in any::<bool>(),
            values in proptest::collection::vec(0_i128..400, 0..4),
        ) {
            let high = low + width;
            let (from, to) = (bound(low, exclusive), bound(high, !exclusive));
            let window = window((!open_low).then_some(from), Some(to), nulls);
            let range = window.range.clone().unwrap();
            let values: Vec<_> = values
                .into_iter()
                .filter(|value| range.contains(&Value::Integer(*value).into()).unwrap())
                .collect();
            let parts = smaller(&window, &seen(&values)).unwrap();
            for value in low - 2..=high + 2 {
                let at = Value::Integer(value).into();
                let holders = parts.iter().filter(|part| {
                    part.range.as_ref().unwrap().contains(&at).unwrap()
                });
                prop_assert_eq!(holders.count(), usize::from(range.contains(&at).unwrap()));
            }
            prop_assert_eq!(parts.iter().filter(|part| part.null_cursors).count(), usize::from(nulls));
            prop_assert_eq!(parts.last().unwrap().null_cursors, nulls);
            prop_assert!(parts.len() <= 66);
            // What was seen is cut in two at least, unless it was one value.
            if let (Some(lowest), Some(highest)) = (values.iter().min(), values.iter().max())
                && highest - lowest > 1
            {
                let whole = parts.iter().any(|part| {
                    let range = part.range.as_ref().unwrap();
                    range.contains(&Value::Integer(*lowest).into()).unwrap()
                        && range.contains(&Value::Integer(*highest).into()).unwrap()
                });
                prop_assert!(!whole, "{:?}", values);
            }
        }
    }

    #[test]
    fn a_full_table_and_texts_are_not_cut() {
        assert_eq!(smaller(&whole(), &seen(&[1, 9])).unwrap().len(), 1);
        let text = |text: &str| Some(Value::Text(text.into()).into());
        let window = window(None, Some(Bound { at: text("z").unwrap(), inclusive: true }), true);
        let seen = CursorExtent { lowest: text("a"), highest: text("m"), nulls: 0 };
        assert_eq!(smaller(&window, &seen).unwrap(), [window]);
    }

    #[test]
    fn moments_are_cut_at_whole_microseconds_and_tuples_at_their_first() {
        let at = |nanos| Position::tuple([Value::Timestamp(nanos), Value::Integer(7)]).unwrap();
        let high = Bound { at: at(9_000_999), inclusive: true };
        let range = Range { low: None, high: Some(high) };
        let seen =
            CursorExtent { lowest: Some(at(1_000_001)), highest: Some(at(3_000_777)), nulls: 0 };
        let cuts = cuts(&range, &seen);
        assert!(cuts.len() > 5, "{cuts:?}");
        for cut in &cuts {
            let Value::Timestamp(nanos) = cut.first() else { panic!("{cut:?}") };
            assert_eq!(nanos % NANOS_PER_MICRO, 0);
            assert_eq!(cut.values().count(), 2);
        }
    }
}
