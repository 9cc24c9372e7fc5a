//! Values of one type as another, exactly: what does not survive the way there
//! and back is an error that names column and value, never another value.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, FixedSizeBinaryBuilder, Int64Array,
    RecordBatch, RecordBatchOptions, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, UInt64Array, make_array, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, Field, SchemaRef, i256,
};
use arrow::util::display::array_value_to_string;
use tidelake_model::{Error, ErrorKind, Result};
use tidelake_watermark::{Kind, Value};

use crate::casts::{JSON, field_text};

const MICROS_PER_DAY: i64 = 86_400_000_000;
/// Longest value that a message shows.
const LONGEST_SHOWN: usize = 60;

/// The rows as the lake has them: each column by its name and in its type, NULL
/// where the source has the column no more.
pub(crate) fn in_schema(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let given = batch.schema();
    if given.fields() == schema.fields() {
        return Ok(batch);
    }
    let at = |place: usize| Some((given.fields().get(place)?, batch.columns().get(place)?));
    let column = |(place, field): (usize, &Arc<Field>)| -> Result<ArrayRef> {
        // Nearly always in the same place.
        let found = at(place)
            .filter(|(given, _)| given.name() == field.name())
            .or_else(|| at(given.index_of(field.name()).ok()?));
        let array = match found {
            Some((given, array)) => exactly(array, given, field)?,
            None => new_null_array(field.data_type(), rows),
        };
        if !field.is_nullable() && array.null_count() > 0 {
            return Err(Error::new(
                ErrorKind::Data,
                format!("the column {:?} is not nullable and holds NULL", field.name()),
            ));
        }
        Ok(array)
    };
    let columns = schema.fields().iter().enumerate().map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(|error| {
        Error::new(ErrorKind::Internal, "the rows do not fit the lake's columns").with_source(error)
    })
}

/// One column in its type.
fn exactly(array: &ArrayRef, from: &Field, to: &Field) -> Result<ArrayRef> {
    let becomes_json =
        to.extension_type_name() == Some(JSON) && from.extension_type_name() != Some(JSON);
    if array.data_type() == to.data_type() && !becomes_json {
        return Ok(Arc::clone(array));
    }
    let cast = match (array.as_string_opt::<i32>(), array.data_type(), to.data_type()) {
        (Some(texts), _, _) => from_text(texts, to.data_type()),
        (_, DataType::Date32, DataType::Timestamp(..)) => days_as_moments(array),
        (_, from, _) => there_and_back(array, from, to.data_type()),
    };
    cast.map_err(|row| refused(array, row, to))
}

/// The error for the value in a row.
fn refused(array: &ArrayRef, row: usize, to: &Field) -> Error {
    let shown = shown(array, row);
    let cut: String = shown.chars().take(LONGEST_SHOWN).collect();
    let dots = if cut.len() < shown.len() { "…" } else { "" };
    Error::new(
        ErrorKind::Data,
        format!(
            "column {:?} holds {cut:?}{dots}, which cannot become {} without a loss",
            to.name(),
            field_text(to)
        ),
    )
    .with_hint(
        "mend the value, or make the sync anew with another --type-cast: tidelake config delete, \
         then config create",
    )
}

/// A value for people to read.
fn shown(array: &ArrayRef, row: usize) -> String {
    let DataType::Timestamp(unit, Some(_)) = array.data_type() else {
        return array_value_to_string(array, row).unwrap_or_default();
    };
    // Zones have no names here; in the lake there is but one.
    let naive = DataType::Timestamp(*unit, None);
    let data = array.to_data().into_builder().data_type(naive).build().map(make_array);
    let text = data.and_then(|naive| array_value_to_string(&naive, row));
    text.map(|text| format!("{text}Z")).unwrap_or_default()
}

/// Arrow's own cast, believed where the way back gives the same values. The
/// error is the row that does not.
fn there_and_back(array: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef, usize> {
    let attempt = |array: &ArrayRef| -> Option<ArrayRef> {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let there = cast_with_options(array, to, &options).ok()?;
        // Not every cast looks at the digits that the decimal has room for.
        match to {
            DataType::Decimal128(precision, _) => {
                there.as_primitive_opt::<Decimal128Type>()?.validate_decimal_precision(*precision)
            }
            DataType::Decimal256(precision, _) => {
                there.as_primitive_opt::<Decimal256Type>()?.validate_decimal_precision(*precision)
            }
            _ => Ok(()),
        }
        .ok()?;
        let back = cast_with_options(&there, from, &options).ok()?;
        (back.as_ref() == array.as_ref()).then_some(there)
    };
    attempt(array).ok_or_else(|| {
        let mut rows = 0..array.len();
        rows.find(|row| attempt(&array.slice(*row, 1)).is_none()).unwrap_or(0)
    })
}

/// Days as their midnights, which a far one does not have.
fn days_as_moments(array: &ArrayRef) -> Result<ArrayRef, usize> {
    let days = array.as_primitive_opt::<Date32Type>().ok_or(0usize)?;
    let moment = |day: i32| i64::from(day).checked_mul(MICROS_PER_DAY);
    let moments: Option<TimestampMicrosecondArray> =
        days.iter().map(|day| day.map_or(Some(None), |day| moment(day).map(Some))).collect();
    match moments {
        Some(moments) => Ok(Arc::new(moments)),
        None => Err(days
            .iter()
            .position(|day| day.is_some_and(|day| moment(day).is_none()))
            .unwrap_or(0)),
    }
}

/// Text read as another type: strictly, so that it can be written again.
fn from_text(texts: &StringArray, to: &DataType) -> Result<ArrayRef, usize> {
    use DataType as T;
    match to {
        T::Utf8 => {
            each(texts, |text| serde_json::from_str::<serde::de::IgnoredAny>(text).ok())?;
            Ok(Arc::new(texts.clone()))
        }
        T::Binary => Ok(Arc::new(arrow::array::BinaryArray::from_iter(
            texts.iter().map(|text| text.map(str::as_bytes)),
        ))),
        T::Boolean => Ok(Arc::new(BooleanArray::from(each(texts, boolean)?))),
        T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {
            let wide: ArrayRef = Arc::new(UInt64Array::from(each(texts, whole::<u64>)?));
            there_and_back(&wide, &T::UInt64, to)
        }
        T::Int8 | T::Int16 | T::Int32 | T::Int64 => {
            let wide: ArrayRef = Arc::new(Int64Array::from(each(texts, whole::<i64>)?));
            there_and_back(&wide, &T::Int64, to)
        }
        T::Decimal128(precision, scale) => {
            let numbers = each(texts, |text| unscaled(text, *precision, *scale)?.to_i128())?;
            let array = arrow::array::Decimal128Array::from(numbers);
            Ok(Arc::new(array.with_precision_and_scale(*precision, *scale).map_err(|_| 0usize)?))
        }
        T::Decimal256(precision, scale) => {
            let numbers = each(texts, |text| unscaled(text, *precision, *scale))?;
            let array = arrow::array::Decimal256Array::from(numbers);
            Ok(Arc::new(array.with_precision_and_scale(*precision, *scale).map_err(|_| 0usize)?))
        }
        T::Date32 => Ok(Arc::new(Date32Array::from(each(texts, day)?))),
        T::Timestamp(_, zone) => {
            let kind = if zone.is_some() { Kind::Timestamp } else { Kind::Datetime };
            let moments = each(texts, |text| moment(text, kind))?;
            Ok(Arc::new(TimestampMicrosecondArray::from(moments).with_timezone_opt(zone.clone())))
        }
        T::Time64(_) => Ok(Arc::new(Time64MicrosecondArray::from(each(texts, time_of_day)?))),
        T::FixedSizeBinary(16) => {
            let mut builder = FixedSizeBinaryBuilder::with_capacity(texts.len(), 16);
            for (row, value) in each(texts, uuid)?.into_iter().enumerate() {
                match value {
                    Some(bytes) => builder.append_value(bytes).map_err(|_| row)?,
                    None => builder.append_null(),
                }
            }
            Ok(Arc::new(builder.finish()))
        }
        _ => Err(0),
    }
}

/// Each text as a value; the error is the first row that is none.
fn each<T>(texts: &StringArray, read: impl Fn(&str) -> Option<T>) -> Result<Vec<Option<T>>, usize> {
    texts
        .iter()
        .enumerate()
        .map(|(row, text)| match text {
            None => Ok(None),
            Some(text) => read(text).map(Some).ok_or(row),
        })
        .collect()
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "t" | "1" => Some(true),
        "false" | "f" | "0" => Some(false),
        _ => None,
    }
}

/// A whole number in the one form that it is printed in: `007` is no number.
fn whole<T: std::str::FromStr + ToString>(text: &str) -> Option<T> {
    text.parse::<T>().ok().filter(|number| number.to_string() == text)
}

/// The digits of a decimal of that scale.
fn unscaled(text: &str, precision: u8, scale: i8) -> Option<i256> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (unsigned, ""),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let leads = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty() || leads || !digits(whole) || !digits(fraction) {
        return None;
    }
    let scale = usize::try_from(scale).ok()?;
    // Zeros at the end say nothing about the value.
    let fraction = if fraction.len() > scale { fraction.trim_end_matches('0') } else { fraction };
    let significant = whole.trim_start_matches('0').len() + scale;
    if fraction.len() > scale || significant > usize::from(precision) {
        return None;
    }
    i256::from_string(&format!("{sign}{whole}{fraction:0<scale$}"))
}

fn day(text: &str) -> Option<i32> {
    match Value::parse(Kind::Date, text) {
        Ok(Value::Date(days)) => i32::try_from(days).ok(),
        _ => None,
    }
}

fn moment(text: &str, kind: Kind) -> Option<i64> {
    let nanos = match Value::parse(kind, text) {
        Ok(Value::Datetime(nanos)) => nanos,
        // An instant says which zone it is in.
        Ok(Value::Timestamp(nanos)) if Value::parse(Kind::Datetime, text).is_err() => nanos,
        _ => return None,
    };
    (nanos.rem_euclid(1_000) == 0).then_some(())?;
    i64::try_from(nanos.div_euclid(1_000)).ok()
}

fn time_of_day(text: &str) -> Option<i64> {
    // A date before it lets the one strict parser read it.
    let has_zone = text.contains(['Z', 'z', '+', '-']);
    if has_zone || text.len() < 5 {
        return None;
    }
    moment(&format!("1970-01-01T{text}"), Kind::Datetime)
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let mut parts = text.split('-');
    let lengths = [8, 4, 4, 4, 12];
    let fits = lengths.iter().all(|length| parts.next().is_some_and(|part| part.len() == *length));
    if !fits || parts.next().is_some() {
        return None;
    }
    let digits: String = text.chars().filter(|character| *character != '-').collect();
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| all_digits)?;
    Some(number.to_be_bytes())
}

#[cfg(test)]
#[path = "exact_tests.rs"]
mod tests;
