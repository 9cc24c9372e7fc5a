//! Typed, lossless cursor values.

use std::cmp::Ordering;
use std::fmt;

use crate::calendar::{Zone, parse_date, parse_instant, print_date, print_instant};
use crate::decimal::Decimal;

/// The kind of a watermark value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A calendar day.
    Date,
    /// A naive time stamp, without a zone and never given one.
    Datetime,
    /// An instant, kept in UTC.
    Timestamp,
    /// A whole number in the range of `i128`.
    Integer,
    /// An exact decimal.
    Number,
    /// Text; only the source knows its order.
    Text,
    /// Bytes, compared as unsigned; a row version, for example.
    Binary,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Date,
        Self::Datetime,
        Self::Timestamp,
        Self::Integer,
        Self::Number,
        Self::Text,
        Self::Binary,
    ];

    /// The name used in stored documents and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::Datetime => "datetime",
            Self::Timestamp => "timestamp",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Text => "text",
            Self::Binary => "binary",
        }
    }

    /// The kind of that [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether values are days or moments, so that a clock can bound them.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Date | Self::Datetime | Self::Timestamp)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One cursor value, lossless at its column's own precision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Days since 1970-01-01.
    Date(i64),
    /// Nanoseconds since 1970-01-01T00:00:00, in no zone.
    Datetime(i128),
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    Timestamp(i128),
    /// A whole number.
    Integer(i128),
    /// An exact decimal.
    Number(Decimal),
    /// Text as the source gave it.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

/// A text that is not a value of the kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The kind that was asked for.
    pub kind: Kind,
    /// The text as it was written.
    pub text: String,
}

impl ParseError {
    /// A text of this kind that would have been accepted.
    pub fn example(&self) -> &'static str {
        match self.kind {
            Kind::Date => "2026-11-30",
            Kind::Datetime => "2026-11-30T09:15:00",
            Kind::Timestamp => "2026-11-30T09:15:00Z",
            Kind::Integer => "42",
            Kind::Number => "3.14",
            Kind::Text => "any text",
            Kind::Binary => "0x00000000000007D1",
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, text } = self;
        write!(formatter, "{text:?} is not a value of kind {kind} such as {}", self.example())
    }
}

impl std::error::Error for ParseError {}

/// Two values that cannot be compared here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareError {
    /// The kinds differ; comparing across kinds would be a guess.
    Kinds(Kind, Kind),
    /// Text has the order of the source's collation, which only it knows.
    Text,
    /// The positions have different numbers of components.
    Length,
}

impl fmt::Display for CompareError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kinds(left, right) => write!(formatter, "cannot compare {left} with {right}"),
            Self::Text => formatter.write_str("only the source can compare text"),
            Self::Length => formatter.write_str("cannot compare cursors of different columns"),
        }
    }
}

impl std::error::Error for CompareError {}

impl Value {
    /// Parses the canonical text of a kind, and what people paste for it.
    ///
    /// A naive value with a zone is refused; an instant without one is taken as
    /// UTC. Nothing is rounded: digits that the kind cannot hold are an error.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, ParseError> {
        let value = match kind {
            Kind::Date => parse_date(text).map(Self::Date),
            Kind::Datetime => match parse_instant(text) {
                Some((nanos, Zone::None)) => Some(Self::Datetime(nanos)),
                _ => None,
            },
            Kind::Timestamp => parse_instant(text).map(|(nanos, _)| Self::Timestamp(nanos)),
            Kind::Integer => parse_integer(text).map(Self::Integer),
            Kind::Number => Decimal::parse(text).map(Self::Number),
            Kind::Text => Some(Self::Text(text.to_owned())),
            Kind::Binary => parse_binary(text).map(Self::Binary),
        };
        value.ok_or_else(|| ParseError { kind, text: text.to_owned() })
    }

    /// The kind of the value.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Date(_) => Kind::Date,
            Self::Datetime(_) => Kind::Datetime,
            Self::Timestamp(_) => Kind::Timestamp,
            Self::Integer(_) => Kind::Integer,
            Self::Number(_) => Kind::Number,
            Self::Text(_) => Kind::Text,
            Self::Binary(_) => Kind::Binary,
        }
    }

    /// Compares two values of one kind. Text that is not equal is an error.
    pub fn compare(&self, other: &Self) -> Result<Ordering, CompareError> {
        match (self, other) {
            (Self::Date(a), Self::Date(b)) => Ok(a.cmp(b)),
            (Self::Datetime(a), Self::Datetime(b))
            | (Self::Timestamp(a), Self::Timestamp(b))
            | (Self::Integer(a), Self::Integer(b)) => Ok(a.cmp(b)),
            (Self::Number(a), Self::Number(b)) => Ok(a.cmp(b)),
            (Self::Binary(a), Self::Binary(b)) => Ok(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) if a == b => Ok(Ordering::Equal),
            (Self::Text(_), Self::Text(_)) => Err(CompareError::Text),
            _ => Err(CompareError::Kinds(self.kind(), other.kind())),
        }
    }
}

fn parse_integer(text: &str) -> Option<i128> {
    // `parse` alone would also take a leading plus sign.
    if text.starts_with('+') { None } else { text.parse().ok() }
}

fn parse_binary(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..digits.len()).step_by(2).map(byte).collect()
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date(days) => formatter.write_str(&print_date(*days)),
            Self::Datetime(nanos) => formatter.write_str(&print_instant(*nanos)),
            Self::Timestamp(nanos) => write!(formatter, "{}Z", print_instant(*nanos)),
            Self::Integer(number) => write!(formatter, "{number}"),
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Text(text) => formatter.write_str(text),
            Self::Binary(bytes) => {
                formatter.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02X}"))
            }
        }
    }
}

/// Where a cursor stands: one value, or a tuple for a composite cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    first: Value,
    rest: Vec<Value>,
}

impl From<Value> for Position {
    fn from(first: Value) -> Self {
        Self { first, rest: Vec::new() }
    }
}

impl Position {
    /// A tuple; `None` when there is no value in it.
    pub fn tuple(values: impl IntoIterator<Item = Value>) -> Option<Self> {
        let mut values = values.into_iter();
        Some(Self { first: values.next()?, rest: values.collect() })
    }

    /// The first value: the only one unless the cursor is composite.
    pub fn first(&self) -> &Value {
        &self.first
    }

    /// Every value in order.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// The kinds of the values in order.
    pub fn kinds(&self) -> Vec<Kind> {
        self.values().map(Value::kind).collect()
    }

    /// The same position with another first value.
    #[must_use]
    pub fn with_first(&self, first: Value) -> Self {
        Self { first, rest: self.rest.clone() }
    }

    /// Compares as a tuple: the first difference decides.
    pub fn compare(&self, other: &Self) -> Result<Ordering, CompareError> {
        if self.rest.len() != other.rest.len() {
            return Err(CompareError::Length);
        }
        for (left, right) in self.values().zip(other.values()) {
            match left.compare(right)? {
                Ordering::Equal => {}
                unequal => return Ok(unequal),
            }
        }
        Ok(Ordering::Equal)
    }

    /// The larger of two positions. Where only the source could tell (text),
    /// `other` is taken: the caller has it from the source as the later one.
    pub fn max(&self, other: &Self) -> Result<Self, CompareError> {
        match self.compare(other) {
            Ok(Ordering::Greater) => Ok(self.clone()),
            Ok(_) | Err(CompareError::Text) => Ok(other.clone()),
            Err(error) => Err(error),
        }
    }

    /// Parses the canonical text: the value's own, and for a composite cursor
    /// the values joined by commas, with `\` before a comma or `\` inside one.
    pub fn parse(kinds: &[Kind], text: &str) -> Result<Self, ParseError> {
        let error = |kind| ParseError { kind, text: text.to_owned() };
        let Some((first, rest)) = kinds.split_first() else {
            return Err(error(Kind::Text));
        };
        if rest.is_empty() {
            return Value::parse(*first, text).map(Self::from);
        }
        let parts = split_escaped(text);
        if parts.len() != kinds.len() {
            return Err(error(*first));
        }
        let values: Result<Vec<_>, _> =
            kinds.iter().zip(parts).map(|(kind, part)| Value::parse(*kind, &part)).collect();
        Self::tuple(values?).ok_or_else(|| error(*first))
    }
}

fn split_escaped(text: &str) -> Vec<String> {
    let mut parts = vec![];
    let mut part = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => part.extend(characters.next()),
            ',' => parts.push(std::mem::take(&mut part)),
            other => part.push(other),
        }
    }
    parts.push(part);
    parts
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rest.is_empty() {
            return self.first.fmt(formatter);
        }
        for (at, value) in self.values().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let text = value.to_string().replace('\\', "\\\\").replace(',', "\\,");
            write!(formatter, "{comma}{text}")?;
        }
        Ok(())
    }
}
