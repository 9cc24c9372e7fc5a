//! The binary COPY format: rows that a server sends, or something else in its name.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow_schema::extension;
use tidelake_connector::Counters;
use tidelake_model::{InfiniteTime, Policies, Result, SpecialNumber};
use tidelake_postgres::{CopyDecoder, Wire, fuzzing};

use crate::{pick, take};

/// What a batch may take beyond its bytes on the wire: each column's buffers
/// begin with some room.
const ROOM: usize = 64 << 10;

/// Forms and types of columns that a reader asks for.
fn kinds() -> [(Wire, DataType); 24] {
    let moment =
        |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    [
        (Wire::Bool, DataType::Boolean),
        (Wire::Int2, DataType::Int16),
        (Wire::Int4, DataType::Int32),
        (Wire::Int8, DataType::Int64),
        (Wire::Oid, DataType::UInt32),
        (Wire::Xid8, DataType::UInt64),
        (Wire::Float4, DataType::Float32),
        (Wire::Float8, DataType::Float64),
        (Wire::Numeric, DataType::Decimal128(10, 2)),
        (Wire::Numeric, DataType::Decimal128(38, 38)),
        (Wire::Numeric, DataType::Decimal128(7, 0)),
        (Wire::Numeric, DataType::Decimal256(76, 20)),
        (Wire::Date, DataType::Date32),
        (Wire::Time, DataType::Time64(TimeUnit::Microsecond)),
        (Wire::Timestamp, moment(None)),
        (Wire::Timestamptz, moment(Some("UTC"))),
        (Wire::Uuid, DataType::FixedSizeBinary(16)),
        (Wire::Jsonb, DataType::Utf8),
        (Wire::Bytea, DataType::Binary),
        (Wire::Text, DataType::Utf8),
        (Wire::Cast, DataType::Utf8),
        (Wire::NumberText, DataType::Utf8),
        (Wire::Json, DataType::Utf8),
        (Wire::Numeric, DataType::Decimal128(38, 9)),
    ]
}

/// A field that a publisher sends in the form in which it was read.
fn field(number: usize, wire: Wire, data_type: &DataType, nullable: bool) -> Field {
    let field = Field::new(format!("column {number}"), data_type.clone(), nullable);
    match wire {
        Wire::Uuid => field.with_extension_type(extension::Uuid),
        Wire::Jsonb | Wire::Json => field.with_extension_type(extension::Json::default()),
        _ => field,
    }
}

/// How a stream is to be read.
struct Setting {
    schema: SchemaRef,
    wires: Vec<Wire>,
    policies: Policies,
    batch_bytes: u64,
    piece: usize,
}

impl Setting {
    /// Reads the first bytes as a setting; the rest is the stream.
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (flags, bytes) = take(bytes)?;
        let (sizes, bytes) = take(bytes)?;
        let (count, mut bytes) = take(bytes)?;
        let (mut fields, mut wires) = (vec![], vec![]);
        for number in 0..usize::from(count % 8) {
            let (byte, rest) = take(bytes)?;
            bytes = rest;
            let kinds = kinds();
            let (wire, data_type) = kinds.get(usize::from(byte & 0x7f) % kinds.len())?;
            fields.push(field(number, *wire, data_type, byte & 0x80 == 0));
            wires.push(*wire);
        }
        let policies = Policies {
            special_number: pick(
                flags,
                &[SpecialNumber::Nan, SpecialNumber::Null, SpecialNumber::Fail],
            )?,
            infinite_time: pick(
                flags >> 3,
                &[InfiniteTime::Null, InfiniteTime::Clamp, InfiniteTime::Fail],
            )?,
            ..Policies::default()
        };
        let setting = Self {
            schema: Arc::new(Schema::new(fields)),
            wires,
            policies,
            batch_bytes: pick(sizes, &[1, 64, 1 << 10, 1 << 20])?,
            piece: usize::from(sizes >> 2).max(1),
        };
        Some((setting, bytes))
    }

    /// Decodes a stream that arrives in pieces of a size.
    fn decode(&self, stream: &[u8], piece: usize) -> Result<(Vec<RecordBatch>, u64, bool)> {
        let counters = Counters::default();
        let mut decoder = CopyDecoder::new(
            &self.schema,
            &self.wires,
            self.policies,
            self.batch_bytes,
            counters.clone(),
        )?;
        let mut batches = vec![];
        for piece in stream.chunks(piece) {
            decoder.feed(piece)?;
            batches.extend(std::iter::from_fn(|| decoder.next_batch()));
        }
        decoder.finish()?;
        batches.extend(std::iter::from_fn(|| decoder.next_batch()));
        let changed = counters.snapshot().values().any(|count| *count > 0);
        Ok((batches, decoder.rows(), changed))
    }
}

pub(crate) fn target(bytes: &[u8]) {
    let Some((setting, stream)) = Setting::read(bytes) else { return };
    let whole = setting.decode(stream, stream.len().max(1));
    let pieces = setting.decode(stream, setting.piece);
    match (&whole, &pieces) {
        (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces, "pieces give other rows"),
        (Err(whole), Err(pieces)) => {
            assert_eq!(whole.message(), pieces.message(), "pieces give another error");
        }
        _ => panic!("pieces end otherwise: {whole:?}, {pieces:?}"),
    }
    let Ok((batches, rows, _)) = whole else { return };
    let held: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(u64::try_from(held), Ok(rows), "rows were lost");
    for batch in &batches {
        for column in batch.columns() {
            assert_eq!(column.len(), batch.num_rows(), "columns of different lengths");
        }
    }
    let room = ROOM * (1 + setting.wires.len());
    for batch in &batches {
        let taken = batch.get_array_memory_size();
        assert!(taken <= 64 * stream.len() + room, "{taken} bytes from {}", stream.len());
    }
    copied_and_read_again(&setting, &batches);
}

/// What was read is written for another server, and read from there.
fn copied_and_read_again(setting: &Setting, batches: &[RecordBatch]) {
    // The first two arrive in wider columns, the last one in another form.
    let same = |wire: &Wire| !matches!(wire, Wire::Oid | Wire::Xid8 | Wire::Json);
    if !setting.wires.iter().all(same) {
        return;
    }
    // What infinity became is infinity again, and is read by the same policy.
    let policies = Policies { infinite_time: InfiniteTime::Clamp, ..setting.policies };
    let again = Setting {
        schema: Arc::clone(&setting.schema),
        wires: setting.wires.clone(),
        policies,
        batch_bytes: 1 << 30,
        piece: 1,
    };
    for batch in batches {
        // A target takes no NUL in a text, and no time before its own first one.
        let Ok(stream) = fuzzing::copied(batch) else { continue };
        let (read, _, _) = again.decode(&stream, stream.len()).expect("what was written is read");
        assert_eq!(read.as_slice(), std::slice::from_ref(batch), "the copy differs");
    }
}
