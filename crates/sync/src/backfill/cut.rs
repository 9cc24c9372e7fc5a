//! Cutting a range into pieces by equal steps of its cursor.

use tidelake_model::{Error, ErrorKind, Result};
use tidelake_watermark::{Position, Range, Value};

use crate::steps::{number, value_like};

const SECOND: i128 = 1_000_000_000;

/// Units in which the cuts of times are told, the largest first.
const UNITS: [i128; 4] = [86_400 * SECOND, 3_600 * SECOND, 60 * SECOND, SECOND];

/// Most pieces of a backfill.
pub(crate) const MOST_PIECES: u32 = 10_000;

/// How a range is cut.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cut {
    /// By the number of rows, where an index tells it.
    #[default]
    Automatic,
    /// Into so many pieces.
    Pieces(u32),
    /// Into pieces of at most that step: seconds, or with `m`, `h`, `d`, for times,
    /// whole numbers otherwise.
    Step(String),
}

/// The pieces of a range: `of` or fewer, of about the same step between `from` and
/// its upper end. They tile it, and cut into as many again they are the same.
/// `tick` is the smallest step of the column, for times. The first piece begins
/// where the range does, however low that is.
pub(crate) fn pieces(
    range: &Range,
    from: Option<&Position>,
    of: u32,
    tick: i128,
) -> Result<Vec<Range>> {
    let mut of = of;
    loop {
        let cuts = match (from, &range.high) {
            (Some(from), Some(high)) => cuts(from, &high.at, of, tick),
            _ => vec![],
        };
        let pieces = range.cut(&cuts).map_err(|error| {
            Error::new(ErrorKind::Configuration, "the range does not fit the cursor")
                .with_source(error)
        })?;
        // Two cuts may fall together.
        match u32::try_from(pieces.len()) {
            Ok(count) if count < of => of = count,
            _ => return Ok(pieces),
        }
    }
}

fn cuts(from: &Position, high: &Position, of: u32, tick: i128) -> Vec<Position> {
    let (Some(low), Some(top)) = (number(from.first()), number(high.first())) else {
        return vec![];
    };
    let of = i128::from(of.clamp(1, MOST_PIECES));
    let Some(span) = top.checked_sub(low).filter(|span| *span > 0) else { return vec![] };
    let grain = match high.first() {
        Value::Datetime(_) | Value::Timestamp(_) => {
            let step = span / of;
            UNITS.into_iter().find(|unit| *unit <= step / 2).unwrap_or(1).max(tick)
        }
        _ => 1,
    };
    let at = |number_of: i128| {
        // In two parts, so that nothing overflows.
        let (whole, rest) = (span / of, span % of);
        let step = whole.checked_mul(number_of)?.checked_add(rest * number_of / of)?;
        let cut = low.checked_add(step)?.div_euclid(grain).checked_mul(grain)?;
        value_like(high.first(), cut).map(|value| high.with_first(value))
    };
    (1..of).filter_map(at).collect()
}

/// How many pieces a step makes.
pub(crate) fn pieces_of_step(from: &Position, high: &Position, step: &str) -> Result<u32> {
    let is_time = high.first().kind().is_time();
    let step = parse_step(step, is_time)?;
    let step = match high.first() {
        Value::Date(_) => (step / 86_400).max(1),
        Value::Datetime(_) | Value::Timestamp(_) => step.saturating_mul(SECOND),
        _ => step,
    };
    let (Some(low), Some(top)) = (number(from.first()), number(high.first())) else {
        return Ok(1);
    };
    let span = top.saturating_sub(low).max(1);
    let count = span.div_euclid(step).saturating_add(i128::from(span.rem_euclid(step) > 0));
    u32::try_from(count).ok().filter(|count| *count <= MOST_PIECES).ok_or_else(|| {
        Error::new(
            ErrorKind::Configuration,
            format!("that step makes {count} pieces, and a backfill has at most {MOST_PIECES}"),
        )
        .with_hint("choose a larger --step, or --pieces")
    })
}

fn parse_step(text: &str, is_time: bool) -> Result<i128> {
    let parse = || {
        let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at_checked(end)?;
        let factor = match unit {
            "" => 1,
            "s" if is_time => 1,
            "m" if is_time => 60,
            "h" if is_time => 3_600,
            "d" if is_time => 86_400,
            _ => return None,
        };
        number.parse::<i128>().ok()?.checked_mul(factor).filter(|step| *step > 0)
    };
    parse().ok_or_else(|| {
        Error::new(ErrorKind::Configuration, format!("the step {text:?} is none for this cursor"))
            .with_hint(match is_time {
                true => "write seconds, or a number with m, h or d: 3600, 90m, 12h, 7d",
                false => "write a whole number above 0",
            })
    })
}

/// Whether ranges follow one another without a value between or in two of them,
/// from the lower end of `range` to its upper one.
pub(crate) fn tile(range: &Range, pieces: &[Range]) -> bool {
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return false };
    let meet = |pair: &[Range]| match pair {
        [before, after] => match (&before.high, &after.low) {
            (Some(high), Some(low)) => high.at == low.at && high.inclusive != low.inclusive,
            _ => false,
        },
        _ => false,
    };
    first.low == range.low && last.high == range.high && pieces.windows(2).all(meet)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidelake_watermark::{Bound, Kind};

    use super::*;

    fn range(low: Option<Value>, high: Value, inclusive: bool) -> Range {
        Range {
            low: low.map(|low| Bound { at: low.into(), inclusive: !inclusive }),
            high: Some(Bound { at: high.into(), inclusive }),
        }
    }

    fn instant(text: &str) -> Value {
        Value::parse(Kind::Timestamp, text).unwrap()
    }

    #[test]
    fn times_are_cut_at_round_moments() {
        let (low, high) = (instant("2024-01-01T00:00:00Z"), instant("2024-01-31T12:34:56.7Z"));
        let whole = range(Some(low.clone()), high, true);
        let cut = pieces(&whole, Some(&low.into()), 3, 1_000).unwrap();
        let ends: Vec<_> =
            cut.iter().map(|piece| piece.high.as_ref().unwrap().at.to_string()).collect();
        assert_eq!(
            ends,
            ["2024-01-11T00:00:00Z", "2024-01-21T00:00:00Z", "2024-01-31T12:34:56.7Z"]
        );
    }

    #[test]
    fn steps_become_pieces() {
        let of = |low: Value, high: Value, step| pieces_of_step(&low.into(), &high.into(), step);
        let (low, high) = (instant("2024-01-01T00:00:00Z"), instant("2024-01-08T00:00:01Z"));
        assert_eq!(of(low.clone(), high.clone(), "1d").unwrap(), 8);
        assert_eq!(of(low.clone(), high.clone(), "86400").unwrap(), 8);
        assert_eq!(of(Value::Date(0), Value::Date(10), "3d").unwrap(), 4);
        assert_eq!(of(Value::Integer(0), Value::Integer(100), "10").unwrap(), 10);
        for step in ["0", "", "1w", "-1"] {
            let error = of(low.clone(), high.clone(), step).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{step}");
        }
        assert!(of(low, high, "1s").unwrap_err().message().contains("604801 pieces"));
        assert!(of(Value::Integer(0), Value::Integer(9), "1d").is_err());
    }

    /// Values of one kind.
    fn values() -> impl Strategy<Value = (Value, Value)> {
        let times = -1_000_000_000i128..1_000_000_000;
        prop_oneof![
            (any::<i128>(), any::<i128>())
                .prop_map(|(left, right)| (Value::Integer(left), Value::Integer(right))),
            (0..200i128, 0..200i128)
                .prop_map(|(left, right)| (Value::Integer(left), Value::Integer(right))),
            (times.clone(), times).prop_map(|(left, right)| (
                Value::Timestamp(left * SECOND),
                Value::Timestamp(right * SECOND)
            )),
            (-90_000i64..90_000, -90_000i64..90_000)
                .prop_map(|(left, right)| (Value::Date(left), Value::Date(right))),
            ("[0-9]{1,9}(\\.[0-9]{1,4})?", "[0-9]{1,9}(\\.[0-9]{1,4})?").prop_map(
                |(left, right)| {
                    let number = |text: &str| {
                        Value::Number(tidelake_watermark::Decimal::parse(text).unwrap())
                    };
                    (number(&left), number(&right))
                }
            ),
            (any::<[u8; 8]>(), any::<[u8; 8]>()).prop_map(|(left, right)| (
                Value::Binary(left.to_vec()),
                Value::Binary(right.to_vec())
            )),
        ]
    }

    proptest! {
        #[test]
        fn pieces_tile_the_range(
            pair in values(), of in 1..60u32, open in any::<bool>(), inclusive in any::<bool>(),
            probe in 0..=20i128,
        ) {
            let (low, high) = match pair.0.compare(&pair.1).unwrap() {
                std::cmp::Ordering::Greater => (pair.1, pair.0),
                _ => (pair.0, pair.1),
            };
            let whole = range((!open).then(|| low.clone()), high.clone(), inclusive);
            let from = Position::from(low.clone());
            let cut = pieces(&whole, Some(&from), of, 1_000).unwrap();
            prop_assert!(tile(&whole, &cut), "{whole:?} {cut:?}");
            prop_assert!(!cut.is_empty() && cut.len() <= usize::try_from(of).unwrap());
            // Any value of the range lies in exactly one piece.
            let (bottom, top) = (number(&low).unwrap(), number(&high).unwrap());
            let between = top.checked_sub(bottom).map_or(top, |span| bottom + span / 20 * probe);
            if let Some(found) = value_like(&high, between) {
                let found = Position::from(found);
                let holds = cut.iter().filter(|piece| piece.contains(&found).unwrap()).count();
                prop_assert_eq!(holds, usize::from(whole.contains(&found).unwrap()));
            }
            // Cut again, it is cut the same: a backfill can be continued.
            let again = u32::try_from(cut.len()).unwrap();
            prop_assert_eq!(&cut, &pieces(&whole, Some(&from), again, 1_000).unwrap());
        }
    }
}
