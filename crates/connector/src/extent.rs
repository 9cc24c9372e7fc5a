//! Cursor values in record batches.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use tidelake_model::{CursorRead, Error, ErrorKind, Result};
use tidelake_watermark::{Cursor, Decimal, Kind, Position, Range, Value};

/// Lowest and highest cursor value of some rows, and how many had none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CursorExtent {
    /// Lowest value; `None` where there is none, or only the source can compare.
    pub lowest: Option<Position>,
    /// Highest value.
    pub highest: Option<Position>,
    /// Rows whose cursor is NULL.
    pub nulls: u64,
}

impl CursorExtent {
    /// Joins the extents of two sets of rows.
    pub fn join(self, other: Self) -> Result<Self> {
        let pick = |left: Option<Position>, right: Option<Position>, wanted: Ordering| {
            Ok::<_, Error>(match (left, right) {
                (Some(left), Some(right)) => {
                    if right.compare(&left).map_err(not_comparable)? == wanted {
                        Some(right)
                    } else {
                        Some(left)
                    }
                }
                (left, right) => left.or(right),
            })
        };
        Ok(Self {
            lowest: pick(self.lowest, other.lowest, Ordering::Less)?,
            highest: pick(self.highest, other.highest, Ordering::Greater)?,
            nulls: self.nulls.saturating_add(other.nulls),
        })
    }
}

fn not_comparable(error: tidelake_watermark::CompareError) -> Error {
    Error::new(ErrorKind::Data, "cursor values cannot be compared").with_source(error)
}

fn columns<'a>(batch: &'a RecordBatch, cursor: &CursorRead) -> Result<Vec<&'a ArrayRef>> {
    let names = cursor.cursor.columns();
    names
        .iter()
        .map(|name| {
            batch.column_by_name(name).ok_or_else(|| {
                Error::new(ErrorKind::Internal, format!("cursor column {name:?} was not read"))
            })
        })
        .collect()
}

fn kind_of(cursor: &CursorRead, component: usize) -> Result<Kind> {
    let kinds = &cursor.kinds;
    kinds
        .get(component)
        .or(kinds.first())
        .copied()
        .ok_or_else(|| Error::new(ErrorKind::Internal, "a cursor without a kind"))
}

/// The cursor's position in one row; `None` where it is NULL (for a composite
/// cursor: where any component is).
fn position(cursor: &CursorRead, columns: &[&ArrayRef], row: usize) -> Result<Option<Position>> {
    let value = |component: usize, column: &ArrayRef| -> Result<Option<Value>> {
        if column.is_null(row) {
            return Ok(None);
        }
        value_at(column, row, kind_of(cursor, component)?).map(Some)
    };
    let mut values = Vec::with_capacity(columns.len());
    for (component, column) in columns.iter().enumerate() {
        match (&cursor.cursor, value(component, column)?) {
            (Cursor::Fallback(_), Some(found)) => return Ok(Some(found.into())),
            (Cursor::Fallback(_), None) => {}
            (_, Some(found)) => values.push(found),
            (_, None) => return Ok(None),
        }
    }
    Ok(Position::tuple(values))
}

/// The extent of the cursor over a batch. For a cursor that holds text only the
/// NULLs are counted: its order is known to the source alone.
pub fn cursor_extent(batch: &RecordBatch, cursor: &CursorRead) -> Result<CursorExtent> {
    let columns = columns(batch, cursor)?;
    let is_text = cursor.kinds.contains(&Kind::Text);
    if let (Cursor::Single(_), [column]) = (&cursor.cursor, columns.as_slice())
        && let Some(extent) = simple_extent(column, kind_of(cursor, 0)?)
    {
        return Ok(extent);
    }
    let mut extent = CursorExtent::default();
    for row in 0..batch.num_rows() {
        match position(cursor, &columns, row)? {
            None => extent.nulls += 1,
            Some(_) if is_text => {}
            Some(at) => {
                let one = CursorExtent { lowest: Some(at.clone()), highest: Some(at), nulls: 0 };
                extent = extent.join(one)?;
            }
        }
    }
    Ok(extent)
}

/// The extent of the common fixed-width columns, without a value per row.
fn simple_extent(column: &ArrayRef, kind: Kind) -> Option<CursorExtent> {
    match (column.data_type(), kind) {
        (DataType::Date32, Kind::Date) => {
            primitive_extent::<Date32Type>(column, |days| Value::Date(days.into()))
        }
        (DataType::Timestamp(TimeUnit::Microsecond, _), Kind::Datetime | Kind::Timestamp) => {
            primitive_extent::<TimestampMicrosecondType>(column, |count| time(kind, count, 1_000))
        }
        (DataType::Int64, Kind::Integer) => {
            primitive_extent::<Int64Type>(column, |value| Value::Integer(value.into()))
        }
        (DataType::Int32, Kind::Integer) => {
            primitive_extent::<Int32Type>(column, |value| Value::Integer(value.into()))
        }
        _ => None,
    }
}

fn primitive_extent<T: ArrowPrimitiveType>(
    column: &ArrayRef,
    wrap: impl Fn(T::Native) -> Value,
) -> Option<CursorExtent>
where
    T::Native: Ord,
{
    let values = column.as_primitive_opt::<T>()?;
    Some(CursorExtent {
        lowest: values.iter().flatten().min().map(|value| wrap(value).into()),
        highest: values.iter().flatten().max().map(|value| wrap(value).into()),
        nulls: u64::try_from(column.null_count()).unwrap_or(u64::MAX),
    })
}

fn time(kind: Kind, count: i64, nanos: i128) -> Value {
    let nanos = i128::from(count) * nanos;
    match kind {
        Kind::Datetime => Value::Datetime(nanos),
        _ => Value::Timestamp(nanos),
    }
}

/// One non-null cell as a cursor value of the kind.
pub(crate) fn value_at(column: &ArrayRef, row: usize, kind: Kind) -> Result<Value> {
    use DataType as T;
    let integer = |value: i128| match kind {
        Kind::Number => Decimal::parse(&value.to_string()).map(Value::Number),
        _ => Some(Value::Integer(value)),
    };
    let parsed = |text: &str| Value::parse(kind, text).ok();
    let at_unit = |count: i64, nanos: i128| kind.is_time().then(|| time(kind, count, nanos));
    let value = match (column.data_type(), kind) {
        (T::Int8, _) => integer(cell::<Int8Type>(column, row).into()),
        (T::Int16, _) => integer(cell::<Int16Type>(column, row).into()),
        (T::Int32, _) => integer(cell::<Int32Type>(column, row).into()),
        (T::Int64, _) => integer(cell::<Int64Type>(column, row).into()),
        (T::UInt8, _) => integer(cell::<UInt8Type>(column, row).into()),
        (T::UInt16, _) => integer(cell::<UInt16Type>(column, row).into()),
        (T::UInt32, _) => integer(cell::<UInt32Type>(column, row).into()),
        (T::UInt64, _) => integer(cell::<UInt64Type>(column, row).into()),
        (T::Decimal128(_, _), _) => {
            parsed(&column.as_primitive::<Decimal128Type>().value_as_string(row))
        }
        (T::Decimal256(_, _), _) => {
            parsed(&column.as_primitive::<Decimal256Type>().value_as_string(row))
        }
        (T::Date32, Kind::Date) => Some(Value::Date(cell::<Date32Type>(column, row).into())),
        (T::Timestamp(TimeUnit::Second, _), _) => {
            at_unit(cell::<TimestampSecondType>(column, row), 1_000_000_000)
        }
        (T::Timestamp(TimeUnit::Millisecond, _), _) => {
            at_unit(cell::<TimestampMillisecondType>(column, row), 1_000_000)
        }
        (T::Timestamp(TimeUnit::Microsecond, _), _) => {
            at_unit(cell::<TimestampMicrosecondType>(column, row), 1_000)
        }
        (T::Timestamp(TimeUnit::Nanosecond, _), _) => {
            at_unit(cell::<TimestampNanosecondType>(column, row), 1)
        }
        (T::Utf8, _) => parsed(column.as_string::<i32>().value(row)),
        (T::LargeUtf8, _) => parsed(column.as_string::<i64>().value(row)),
        (T::Binary, Kind::Binary) => {
            Some(Value::Binary(column.as_binary::<i32>().value(row).to_vec()))
        }
        (T::FixedSizeBinary(_), Kind::Binary) => {
            Some(Value::Binary(column.as_fixed_size_binary().value(row).to_vec()))
        }
        _ => None,
    };
    value.ok_or_else(|| {
        let message = format!("a cursor of kind {kind} cannot be read from {}", column.data_type());
        Error::new(ErrorKind::Data, message)
    })
}

fn cell<T: ArrowPrimitiveType>(column: &ArrayRef, row: usize) -> T::Native {
    column.as_primitive::<T>().value(row)
}

/// Which rows of a batch lie outside a range: `true` is kept. Rows with a NULL
/// cursor are outside.
pub fn rows_outside(
    batch: &RecordBatch,
    cursor: &CursorRead,
    range: &Range,
) -> Result<BooleanArray> {
    let columns = columns(batch, cursor)?;
    (0..batch.num_rows())
        .map(|row| match position(cursor, &columns, row)? {
            None => Ok(Some(true)),
            Some(at) => Ok(Some(!range.contains(&at).map_err(not_comparable)?)),
        })
        .collect()
}
