//! Stored forms of the algebra's types, which know nothing of serialisation.
//!
//! A position is `{"kind": "timestamp", "value": "2026-11-30T09:15:00Z"}`; the
//! kinds of a composite one are joined by commas.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tidelake_watermark::{Bound, Cursor, Direction, Kind, Position, Progress, Range, Value};

/// A position as `{kind, value}`.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct PositionText {
    kind: String,
    value: String,
}

/// The kinds of a position joined by commas.
fn kinds_text(position: &Position) -> String {
    position.kinds().iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",")
}

impl From<&Position> for PositionText {
    fn from(position: &Position) -> Self {
        Self { kind: kinds_text(position), value: position.to_string() }
    }
}

impl TryFrom<PositionText> for Position {
    type Error = String;

    fn try_from(text: PositionText) -> Result<Self, String> {
        position_text::from_parts(&text.kind, &text.value)
    }
}

/// `serde(with)` for an optional [`Position`], and its two text columns.
pub mod position_text {
    use super::*;

    /// Kinds joined by commas, and the canonical value.
    pub fn to_parts(position: &Position) -> (String, String) {
        (kinds_text(position), position.to_string())
    }

    /// Reads what [`to_parts`] wrote.
    pub fn from_parts(kinds: &str, value: &str) -> Result<Position, String> {
        let kinds: Option<Vec<_>> = kinds.split(',').map(Kind::from_name).collect();
        let kinds = kinds.ok_or("unknown kind of watermark value")?;
        Position::parse(&kinds, value).map_err(|error| error.to_string())
    }

    /// Writes the position.
    pub fn serialize<S: Serializer>(
        position: &Option<Position>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        position.as_ref().map(PositionText::from).serialize(serializer)
    }

    /// Reads the position.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Position>, D::Error> {
        let text = Option::<PositionText>::deserialize(deserializer)?;
        text.map(|text| text.try_into().map_err(D::Error::custom)).transpose()
    }
}

/// `serde(with)` for a [`Kind`], by its name.
pub(crate) mod kind {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(kind.name())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Kind, D::Error> {
        let name = String::deserialize(deserializer)?;
        Kind::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown kind {name:?}")))
    }
}

/// `serde(with)` for a list of [`Kind`]s, by their names.
pub(crate) mod kinds {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        kinds: &[Kind],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Kind>, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        let kinds: Option<Vec<_>> = names.iter().map(|name| Kind::from_name(name)).collect();
        kinds.ok_or_else(|| D::Error::custom("unknown kind of watermark value"))
    }
}

/// `serde(with)` for a [`Cursor`], as it is written on the command line.
pub mod cursor_text {
    use super::*;

    /// Writes the cursor.
    pub fn serialize<S: Serializer>(cursor: &Cursor, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(cursor)
    }

    /// Reads the cursor.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cursor, D::Error> {
        let text = String::deserialize(deserializer)?;
        Cursor::parse(&text).ok_or_else(|| D::Error::custom(format!("not a cursor: {text:?}")))
    }
}

/// `serde(with)` for a [`Direction`]: `inclusive` is `(low, high]`, `exclusive`
/// is `[low, high)`.
pub(crate) mod direction {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        direction: &Direction,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match direction {
            Direction::Inclusive => "inclusive",
            Direction::Exclusive => "exclusive",
        })
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Direction, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "inclusive" => Ok(Direction::Inclusive),
            "exclusive" => Ok(Direction::Exclusive),
            other => Err(D::Error::custom(format!("unknown direction {other:?}"))),
        }
    }
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct BoundText {
    #[serde(flatten)]
    at: PositionText,
    inclusive: bool,
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct RangeText {
    low: Option<BoundText>,
    high: Option<BoundText>,
}

/// `serde(with)` for an optional [`Range`].
pub mod range_text {
    use super::*;

    fn write(bound: Option<&Bound>) -> Option<BoundText> {
        bound.map(|bound| BoundText { at: (&bound.at).into(), inclusive: bound.inclusive })
    }

    fn read(bound: Option<BoundText>) -> Result<Option<Bound>, String> {
        bound
            .map(|text| Ok(Bound { at: text.at.try_into()?, inclusive: text.inclusive }))
            .transpose()
    }

    /// Writes the range.
    pub fn serialize<S: Serializer>(
        range: &Option<Range>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text = range.as_ref().map(|range| RangeText {
            low: write(range.low.as_ref()),
            high: write(range.high.as_ref()),
        });
        text.serialize(serializer)
    }

    /// Reads the range.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Range>, D::Error> {
        let Some(text) = Option::<RangeText>::deserialize(deserializer)? else {
            return Ok(None);
        };
        let low = read(text.low).map_err(D::Error::custom)?;
        let high = read(text.high).map_err(D::Error::custom)?;
        Ok(Some(Range { low, high }))
    }
}

#[derive(Serialize, Deserialize)]
struct ProgressText {
    #[serde(with = "position_text")]
    watermark: Option<Position>,
    #[serde(with = "position_text")]
    max_seen: Option<Position>,
    #[serde(with = "position_text")]
    first: Option<Position>,
    #[serde(with = "direction")]
    direction: Direction,
}

/// `serde(with)` for a [`Progress`].
pub mod progress_text {
    use super::*;

    /// Writes the progress.
    pub fn serialize<S: Serializer>(progress: &Progress, serializer: S) -> Result<S::Ok, S::Error> {
        let Progress { watermark, max_seen, first, direction } = progress.clone();
        ProgressText { watermark, max_seen, first, direction }.serialize(serializer)
    }

    /// Reads the progress.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Progress, D::Error> {
        let ProgressText { watermark, max_seen, first, direction } =
            ProgressText::deserialize(deserializer)?;
        Ok(Progress { watermark, max_seen, first, direction })
    }
}

/// An instant (nanoseconds since the epoch) as `2026-11-30T09:15:00Z`.
pub fn instant_text(nanos: i128) -> String {
    Value::Timestamp(nanos).to_string()
}
