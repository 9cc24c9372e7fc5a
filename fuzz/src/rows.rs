//! Rows of the binary protocol: those that a server sends, or something else in
//! their name.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tidelake_connector::Counters;
use tidelake_model::{ErrorKind, Policies, Result, ZeroDate};
use tidelake_mysql::fuzzing::{DecodePlan, RowDecoder, Wire};

use crate::{pick, take};

/// Forms and types of columns that a reader asks for.
fn kinds() -> [(Wire, DataType); 26] {
    let moment =
        |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    [
        (Wire::Tiny, DataType::Int8),
        (Wire::Tiny, DataType::Boolean),
        (Wire::UnsignedTiny, DataType::UInt8),
        (Wire::Short, DataType::Int16),
        (Wire::UnsignedShort, DataType::UInt16),
        (Wire::Long, DataType::Int32),
        (Wire::UnsignedLong, DataType::UInt32),
        (Wire::LongLong, DataType::Int64),
        (Wire::UnsignedLongLong, DataType::UInt64),
        (Wire::Year, DataType::Int16),
        (Wire::Float, DataType::Float32),
        (Wire::Double, DataType::Float64),
        (Wire::Decimal, DataType::Decimal128(10, 2)),
        (Wire::Decimal, DataType::Decimal128(38, 30)),
        (Wire::Decimal, DataType::Decimal128(7, 0)),
        (Wire::Decimal, DataType::Decimal256(65, 30)),
        (Wire::Date, DataType::Date32),
        (Wire::Datetime, moment(None)),
        (Wire::Datetime, moment(Some("UTC"))),
        (Wire::Time, DataType::Duration(TimeUnit::Microsecond)),
        (Wire::Bit, DataType::Boolean),
        (Wire::Bit, DataType::UInt64),
        (Wire::Text, DataType::Utf8),
        (Wire::Uuid, DataType::FixedSizeBinary(16)),
        (Wire::Bytes, DataType::Binary),
        (Wire::Geometry, DataType::Binary),
    ]
}

/// How rows are to be read.
struct Setting {
    schema: SchemaRef,
    wires: Vec<Wire>,
    policies: Policies,
    cursor: Vec<String>,
    batch_bytes: u64,
}

impl Setting {
    /// Reads the first bytes as a setting; the rest is the rows.
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (flags, bytes) = take(bytes)?;
        let (count, mut bytes) = take(bytes)?;
        let (mut fields, mut wires) = (vec![], vec![]);
        for number in 0..usize::from(count % 16) {
            let (byte, rest) = take(bytes)?;
            bytes = rest;
            let kinds = kinds();
            let (wire, data_type) = kinds.get(usize::from(byte & 0x7f) % kinds.len())?;
            fields.push(Field::new(
                format!("column {number}"),
                data_type.clone(),
                byte & 0x80 == 0,
            ));
            wires.push(*wire);
        }
        let zero_date = pick(flags, &[ZeroDate::Null, ZeroDate::Text, ZeroDate::Fail])?;
        let setting = Self {
            schema: Arc::new(Schema::new(fields)),
            wires,
            policies: Policies { zero_date, ..Policies::default() },
            cursor: if flags & 0x40 == 0 { vec![] } else { vec!["column 0".into()] },
            batch_bytes: pick(flags >> 2, &[1, 64, 1 << 10, 1 << 20])?,
        };
        Some((setting, bytes))
    }

    fn decode(&self, rows: &[&[u8]], batch_bytes: u64) -> Result<Vec<RecordBatch>> {
        let plan = DecodePlan {
            schema: Arc::clone(&self.schema),
            wires: self.wires.clone(),
            policies: self.policies,
            batch_bytes,
            cursor: self.cursor.clone(),
            counters: Counters::default(),
        };
        let mut decoder = RowDecoder::new(&plan)?;
        let mut batches = vec![];
        for row in rows {
            decoder.row(row)?;
            batches.extend(decoder.full_batch()?);
        }
        batches.extend(decoder.last_batch()?);
        assert_eq!(decoder.rows(), u64::try_from(rows.len()).unwrap(), "rows were lost");
        Ok(batches)
    }
}

/// Rows, each with its length in front.
fn cut(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut rows = vec![];
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length));
        let (row, after) = rest.split_at(length.min(rest.len()));
        rows.push(row);
        bytes = after;
    }
    rows
}

pub(crate) fn target(bytes: &[u8]) {
    let Some((setting, stream)) = Setting::read(bytes) else { return };
    let rows = cut(stream);
    let small = setting.decode(&rows, setting.batch_bytes);
    let whole = setting.decode(&rows, 1 << 30);
    for result in [&small, &whole] {
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::Data, "{error:?}");
        }
    }
    assert_eq!(small.is_ok(), whole.is_ok(), "the size of batches decides: {small:?}, {whole:?}");
    let (Ok(small), Ok(whole)) = (small, whole) else { return };
    let Some(all) = whole.first() else {
        assert!(small.is_empty() && rows.is_empty(), "rows were lost");
        return;
    };
    assert_eq!(all.num_rows(), rows.len(), "rows were lost");
    let mut done = 0;
    for batch in small {
        for column in batch.columns() {
            assert_eq!(column.len(), batch.num_rows(), "columns of different lengths");
        }
        assert_eq!(batch, all.slice(done, batch.num_rows()), "batches give other rows");
        done += batch.num_rows();
    }
    assert_eq!(done, all.num_rows(), "rows were lost");
}
