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

    fn decoder(&self, counters: &Counters) -> Result<CopyDecoder> {
        let (schema, policies) = (&self.schema, self.policies);
        CopyDecoder::new(schema, &self.wires, policies, self.batch_bytes, counters.clone())
    }

    /// Decodes a stream that arrives in pieces of a size.
    fn decode(&self, stream: &[u8], piece: usize) -> Decoded {
        let counters = Counters::default();
        let mut decoder = self.decoder(&counters)?;
        let mut batches = vec![];
        for piece in stream.chunks(piece) {
            decoder.feed(piece)?;
            batches.extend(std::iter::from_fn(|| decoder.next_batch()));
        }
        finished(decoder, batches, &counters)
    }

    /// Decodes messages of the server, of which so many bytes more are there each
    /// time, as a reader does.
    fn decode_messages(&self, messages: &[u8], piece: usize) -> Decoded {
        let counters = Counters::default();
        let mut decoder = self.decoder(&counters)?;
        let mut batches = vec![];
        let (mut start, mut end) = (0, 0);
        loop {
            let there = messages.get(start..end).unwrap_or(&[]);
            let used = decoder.feed_messages(there)?;
            assert!(used <= there.len(), "more was taken than was there");
            start += used;
            batches.extend(std::iter::from_fn(|| decoder.next_batch()));
            if used > 0 {
                continue;
            }
            let body = there.split_first_chunk::<5>().and_then(|([_, length @ ..], body)| {
                body.get(..u32::from_be_bytes(*length).checked_sub(4)? as usize)
            });
            if let Some(body) = body {
                decoder.feed(body)?;
                start += 5 + body.len();
            } else if end == messages.len() {
                return finished(decoder, batches, &counters);
            } else {
                end = messages.len().min(end + piece);
            }
        }
    }
}

/// Batches, rows, and whether a value followed a policy.
type Decoded = Result<(Vec<RecordBatch>, u64, bool)>;

fn finished(
    mut decoder: CopyDecoder,
    mut batches: Vec<RecordBatch>,
    counters: &Counters,
) -> Decoded {
    decoder.finish()?;
    batches.extend(std::iter::from_fn(|| decoder.next_batch()));
    let changed = counters.snapshot().values().any(|count| *count > 0);
    Ok((batches, decoder.rows(), changed))
}

/// The stream as a server sends it: a message for so many rows, which are one, the
/// first with the header before it, and what is no row in one of its own.
fn in_messages(stream: &[u8], rows: usize) -> Vec<u8> {
    let mut messages = vec![];
    let mut from = 0;
    let mut at = stream.get(15..19).map_or(stream.len(), |length| {
        19usize.saturating_add(length.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)))
    });
    while let Some(end) =
        (0..rows).try_fold(at, |at, _| end_of_row(stream, at)).filter(|end| *end > at)
    {
        message(stream.get(from..end).unwrap_or(&[]), &mut messages);
        (from, at) = (end, end);
    }
    if from < stream.len() {
        message(stream.get(from..).unwrap_or(&[]), &mut messages);
    }
    messages
}

fn message(body: &[u8], messages: &mut Vec<u8>) {
    messages.push(b'd');
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    messages.extend(length.saturating_add(4).to_be_bytes());
    messages.extend(body);
}

/// Where the row ends that begins there.
fn end_of_row(stream: &[u8], start: usize) -> Option<usize> {
    let count = i16::from_be_bytes(*stream.get(start..)?.first_chunk()?);
    let mut at = start + 2;
    for _ in 0..u16::try_from(count).ok()? {
        let length = i32::from_be_bytes(*stream.get(at..)?.first_chunk()?);
        at = (at + 4).checked_add(usize::try_from(length.max(0)).ok()?)?;
    }
    (at <= stream.len()).then_some(at)
}

pub(crate) fn target(bytes: &[u8]) {
    let Some((setting, stream)) = Setting::read(bytes) else { return };
    let whole = setting.decode(stream, stream.len().max(1));
    let messages = in_messages(stream, 1);
    same("pieces", &whole, &setting.decode(stream, setting.piece));
    same("messages", &whole, &setting.decode_messages(&messages, messages.len()));
    same("pieces of messages", &whole, &setting.decode_messages(&messages, setting.piece));
    let messages = in_messages(stream, 2);
    same("larger messages", &whole, &setting.decode_messages(&messages, messages.len()));
    // Messages need not be such as a server sends.
    if let Ok(mut decoder) = setting.decoder(&Counters::default())
        && decoder.feed(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0").is_ok()
        && let Ok(used) = decoder.feed_messages(stream)
    {
        assert!(used <= stream.len(), "more was taken than was there");
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

/// However the bytes arrive, they are the same rows or the same error.
fn same(how: &str, whole: &Decoded, other: &Decoded) {
    match (whole, other) {
        (Ok(whole), Ok(other)) => assert_eq!(whole, other, "{how} give other rows"),
        (Err(whole), Err(other)) => {
            assert_eq!(whole.message(), other.message(), "{how} give another error");
        }
        _ => panic!("{how} end otherwise: {whole:?}, {other:?}"),
    }
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
