//! Where a table is cut: values of a column between which about as many rows lie.
//!
//! The server's own estimate of the rows of a range, which it takes by a look into
//! the index, leads to them: no row is read, and a key with wide gaps is cut where
//! its rows are.

use std::collections::BTreeMap;

use tidelake_connector::sql::{Dialect, qualified};
use tidelake_model::{CursorType, Result, TableName};
use tidelake_watermark::{Decimal, Kind, Value};

use crate::dialect::{MysqlDialect, quoted};
use crate::pool::{Row, Session, number, text};

const DOING: &str = "the table cannot be cut";
const NANOS_PER_MICRO: i128 = 1_000;
/// Looks into the index for one cut: enough to halve any range of 64 bits down to its
/// rows, and as many that go straight to where they lie if they are evenly spread.
const MOST_LOOKS: u32 = 130;
/// A cut that is that near to its place, as a part of a piece, is near enough.
const NEAR: f64 = 0.1;

/// A column whose values are points on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis(CursorType);

impl Axis {
    /// `None` for texts and bytes, which only the server puts in order.
    pub(crate) fn of(cursor: Option<CursorType>) -> Option<Self> {
        let cursor = cursor?;
        match cursor.kind {
            Kind::Text | Kind::Binary => None,
            _ => Some(Self(cursor)),
        }
    }

    /// The place of a value, cut downwards.
    fn place(self, text: &str) -> Option<i128> {
        Some(match Value::parse(self.0.kind, text).ok()? {
            Value::Date(days) => i128::from(days),
            Value::Datetime(nanos) | Value::Timestamp(nanos) => nanos.div_euclid(NANOS_PER_MICRO),
            Value::Integer(number) => number,
            Value::Number(_) => text.split('.').next()?.parse().ok()?,
            Value::Text(_) | Value::Binary(_) => return None,
        })
    }

    /// The value at a place.
    fn value(self, place: i128) -> Option<Value> {
        Some(match self.0.kind {
            Kind::Date => Value::Date(i64::try_from(place).ok()?),
            Kind::Datetime => Value::Datetime(place.checked_mul(NANOS_PER_MICRO)?),
            Kind::Timestamp => Value::Timestamp(place.checked_mul(NANOS_PER_MICRO)?),
            Kind::Integer => Value::Integer(place),
            Kind::Number => Value::Number(Decimal::parse(&place.to_string())?),
            Kind::Text | Kind::Binary => return None,
        })
    }
}

/// A column of a table that an index leads with.
pub(crate) struct Cutter<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) table: &'a TableName,
    pub(crate) column: &'a str,
    pub(crate) axis: Axis,
    pub(crate) rows: u64,
}

impl Cutter<'_> {
    /// At most that many pieces less one, rising.
    pub(crate) async fn cuts(&mut self, pieces: u64) -> Result<Vec<Value>> {
        let (table, column) = (qualified(&MysqlDialect, self.table), quoted(self.column));
        let statement =
            format!("SELECT CAST(min({column}) AS CHAR), CAST(max({column}) AS CHAR) FROM {table}");
        let row = self.session.ask_one(&statement, DOING).await?;
        let (Some(low), Some(high)) =
            (self.axis.place(text(&row, 0)), self.axis.place(text(&row, 1)))
        else {
            return Ok(vec![]);
        };
        let mut known = BTreeMap::from([(low, 0.0), (high.saturating_add(1), 1.0)]);
        let mut cuts: Vec<i128> = vec![];
        for piece in 1..pieces {
            let wanted = ratio(piece, pieces);
            let near = NEAR * ratio(1, pieces);
            let cut = self.find(&mut known, wanted, near).await?;
            if cut > low && cuts.last().is_none_or(|last| cut > *last) {
                cuts.push(cut);
            }
        }
        Ok(cuts.into_iter().filter_map(|cut| self.axis.value(cut)).collect())
    }

    /// A place below which about that part of the rows lies.
    async fn find(
        &mut self,
        known: &mut BTreeMap<i128, f64>,
        wanted: f64,
        near: f64,
    ) -> Result<i128> {
        let mut best = (f64::INFINITY, 0);
        for look in 0..MOST_LOOKS {
            let below = known.iter().rfind(|(_, part)| **part <= wanted);
            let above = known.iter().find(|(_, part)| **part > wanted);
            let (Some((low, low_part)), Some((high, high_part))) = (below, above) else { break };
            for (place, part) in [(*low, *low_part), (*high, *high_part)] {
                if (part - wanted).abs() < best.0 {
                    best = ((part - wanted).abs(), place);
                }
            }
            if best.0 <= near || high - low < 2 {
                break;
            }
            // Straight to where it lies if the rows are evenly spread, else halving.
            let share =
                if look % 2 == 0 { (wanted - low_part) / (high_part - low_part) } else { 0.5 };
            let middle = between(*low, *high, share);
            let part = self.part_below(middle).await?.clamp(*low_part, *high_part);
            known.insert(middle, part);
        }
        Ok(best.1)
    }

    /// The part of the rows that lies below a place, as the server estimates it. Its
    /// estimates of large ranges are cut off, so that the smaller side counts.
    async fn part_below(&mut self, place: i128) -> Result<f64> {
        let Some(value) = self.axis.value(place) else { return Ok(0.5) };
        let literal = MysqlDialect.literal(&value);
        let below = self.estimate(&format!("< {literal}")).await?;
        let above = self.estimate(&format!(">= {literal}")).await?;
        let rows = self.rows.max(below.saturating_add(above)).max(1);
        Ok(if below <= above { ratio(below, rows) } else { 1.0 - ratio(above, rows) })
    }

    async fn estimate(&mut self, condition: &str) -> Result<u64> {
        let (table, column) = (qualified(&MysqlDialect, self.table), quoted(self.column));
        let statement = format!(
            "{} SELECT {column} FROM {table} WHERE {column} {condition}",
            explain(self.session)
        );
        let rows = self.session.ask(&statement, DOING).await?;
        Ok(rows.first().map_or(0, estimated))
    }
}

/// Asks for a plan as a table: the one family prints a tree unless it is told, the
/// other knows no word for it.
pub(crate) fn explain(session: &Session) -> &'static str {
    if session.is_mariadb() { "EXPLAIN" } else { "EXPLAIN FORMAT=TRADITIONAL" }
}

/// The rows that a line of the server's plan speaks of. One family has two columns
/// more than the other.
fn estimated(line: &Row) -> u64 {
    number(line, if line.len() >= 12 { 9 } else { 8 }).unwrap_or(0)
}

/// How a plan reads its table: `ALL` for a scan.
pub(crate) fn access(line: &Row) -> &str {
    text(line, if line.len() >= 12 { 4 } else { 3 })
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// A place inside of both ends.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 10,000")]
fn between(low: i128, high: i128, share: f64) -> i128 {
    const PARTS: i128 = 10_000;
    let share = i128::from((share.clamp(0.0, 1.0) * 10_000.0) as u32);
    let width = high - low;
    let step = width / PARTS * share + width % PARTS * share / PARTS;
    (low + step).clamp(low + 1, high - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_place_between_is_between(low in -(1i128 << 64)..(1 << 64), width in 2i128..(1 << 65), share in -1.0f64..2.0) {
            let place = between(low, low + width, share);
            prop_assert!(low < place && place < low + width);
        }
    }

    #[test]
    fn values_have_places_and_places_values() {
        for (kind, text) in [
            (Kind::Integer, "-7"),
            (Kind::Date, "2026-11-30"),
            (Kind::Datetime, "2026-11-30T09:15:00.123456"),
            (Kind::Number, "12"),
        ] {
            let axis = Axis::of(Some(CursorType { kind, fraction_digits: 6 })).unwrap();
            let place = axis.place(text).unwrap();
            assert_eq!(axis.value(place).unwrap(), Value::parse(kind, text).unwrap());
        }
        let text = CursorType { kind: Kind::Text, fraction_digits: 0 };
        assert_eq!(Axis::of(Some(text)), None);
    }
}
