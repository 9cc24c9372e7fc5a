//! The binary COPY format to record batches.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tidelake_connector::Counters;
use tidelake_model::{Error, ErrorKind, Policies, Result};

use crate::column::Column;
use crate::rows::{Cell, Form, Run, Shape, Stopped, malformed};
use crate::types::Wire;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
const MOST_ROWS: usize = 65_536;
/// One more cell of the largest size (1 GiB) still fits 32-bit offsets.
const MOST_BYTES: usize = 512 << 20;

/// Where in the stream the decoder stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Header,
    Rows,
    End,
}

/// Turns the bytes of `COPY … TO STDOUT (FORMAT binary)` into record batches.
///
/// Bytes are fed in pieces of any size; a piece that holds whole rows, as the
/// server sends them, is decoded where it lies. Malformed input is an error of
/// kind `Data`, after which the decoder is of no more use.
pub struct CopyDecoder {
    schema: SchemaRef,
    columns: Vec<Column>,
    place: Place,
    /// Bytes of an unfinished row.
    pending: Vec<u8>,
    shape: Shape,
    rows: usize,
    total_rows: u64,
    bytes: usize,
    finished: VecDeque<RecordBatch>,
    counters: Counters,
}

impl CopyDecoder {
    /// A decoder of rows with that schema, sent in those forms. A batch ends at
    /// `batch_bytes` or 65,536 rows.
    pub fn new(
        schema: &SchemaRef,
        wires: &[Wire],
        policies: Policies,
        batch_bytes: u64,
        counters: Counters,
    ) -> Result<Self> {
        if schema.fields().len() != wires.len() {
            return Err(crate::internal("a schema and its wire forms differ in length"));
        }
        let columns = schema.fields().iter().zip(wires);
        let columns: Vec<_> = columns
            .map(|(field, wire)| Column::new(Arc::clone(field), *wire, policies))
            .collect::<Result<_>>()?;
        let row_width = columns.iter().map(Column::fixed_width).sum();
        let mut shape = Shape::new(columns.iter().map(Column::is_variable), row_width);
        shape.batch_rows = MOST_ROWS;
        shape.batch_bytes = usize::try_from(batch_bytes).unwrap_or(MOST_BYTES).clamp(1, MOST_BYTES);
        Ok(Self {
            schema: Arc::clone(schema),
            columns,
            place: Place::Header,
            pending: vec![],
            shape,
            rows: 0,
            total_rows: 0,
            bytes: 0,
            finished: VecDeque::new(),
            counters,
        })
    }

    /// The same, for rows of a window that is cut by these columns: a policy may
    /// not turn their values into NULL.
    pub(crate) fn with_cursor(mut self, names: &[String]) -> Self {
        for column in &mut self.columns {
            if names.iter().any(|name| name == column.name()) {
                column.be_cursor();
            }
        }
        self
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, piece: &[u8]) -> Result<()> {
        if self.pending.is_empty() {
            let rest = self.consume(piece)?;
            self.pending.extend_from_slice(rest);
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.pending);
        bytes.extend_from_slice(piece);
        let left = self.consume(&bytes)?.len();
        let used = bytes.len().saturating_sub(left);
        bytes.drain(..used);
        self.pending = bytes;
        Ok(())
    }

    /// Takes messages of the server from the front of some bytes, for as long as
    /// each is a whole row and no batch is full; returns how many bytes they were.
    pub fn feed_messages(&mut self, bytes: &[u8]) -> Result<usize> {
        if self.place != Place::Rows || !self.pending.is_empty() {
            return Ok(0);
        }
        let mut run = self.shape.run(bytes);
        loop {
            let stopped = self.shape.look(&mut run, Form::Messages, self.rows, self.bytes);
            self.keep(&run)?;
            match stopped {
                Stopped::Full => {}
                Stopped::Batch => break self.end_batch()?,
                Stopped::Other | Stopped::End => break,
                Stopped::Failed(error) => return Err(error),
            }
        }
        Ok(bytes.len().saturating_sub(run.rest.len()))
    }

    /// A batch that is full.
    pub fn next_batch(&mut self) -> Option<RecordBatch> {
        self.finished.pop_front()
    }

    /// Rows decoded so far.
    pub fn rows(&self) -> u64 {
        self.total_rows
    }

    /// Ends the stream; the last batch is among those that are full then. An
    /// error where the stream was cut off.
    pub fn finish(&mut self) -> Result<()> {
        if self.place != Place::End || !self.pending.is_empty() {
            return Err(malformed("it ends before its trailer"));
        }
        self.end_batch()
    }

    /// Decodes what is complete and returns the rest.
    fn consume<'a>(&mut self, mut bytes: &'a [u8]) -> Result<&'a [u8]> {
        if self.place == Place::Header {
            match header(bytes)? {
                None => return Ok(bytes),
                Some(rest) => {
                    bytes = rest;
                    self.place = Place::Rows;
                }
            }
        }
        if self.place == Place::Rows {
            let mut run = self.shape.run(bytes);
            loop {
                let stopped = self.shape.look(&mut run, Form::Stream, self.rows, self.bytes);
                self.keep(&run)?;
                match stopped {
                    Stopped::Full => {}
                    Stopped::Batch => self.end_batch()?,
                    Stopped::Other => return Ok(run.rest),
                    Stopped::Failed(error) => return Err(error),
                    Stopped::End => {
                        self.place = Place::End;
                        break bytes = run.rest;
                    }
                }
            }
        }
        if bytes.is_empty() {
            return Ok(bytes);
        }
        Err(malformed("something follows its trailer"))
    }

    /// Decodes rows that were found.
    fn keep(&mut self, run: &Run<'_>) -> Result<()> {
        let width = self.columns.len();
        let cells = run.cells.get(..run.rows * width).unwrap_or(&[]);
        let stored = self.columns.iter_mut().enumerate().try_for_each(|(place, column)| {
            let cells = cells.get(place..).unwrap_or(&[]);
            column.store(cells.iter().step_by(width).copied())
        });
        if let Err(error) = stored {
            return Err(self.first_error(cells).err().unwrap_or(error));
        }
        self.rows += run.rows;
        self.total_rows = self.total_rows.saturating_add(run.rows.try_into().unwrap_or(u64::MAX));
        self.bytes += run.bytes;
        Ok(())
    }

    /// Of all cells that are refused, the one to tell of is the first of the first
    /// row, however many rows were looked at together.
    #[cold]
    fn first_error(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        let rows = self.rows;
        self.columns.iter_mut().for_each(|column| column.truncate(rows));
        cells.chunks_exact(self.columns.len().max(1)).try_for_each(|row| {
            self.columns.iter_mut().zip(row).try_for_each(|(column, cell)| column.push(*cell))
        })
    }

    fn end_batch(&mut self) -> Result<()> {
        for column in &mut self.columns {
            let changed = column.take_changed();
            for (policy, count) in [
                ("special_number", changed.special_numbers),
                ("infinite_time", changed.infinite_times),
            ] {
                if count > 0 {
                    self.counters.add(&format!("{policy}:{}", column.name()), count);
                }
            }
        }
        if self.rows == 0 {
            return Ok(());
        }
        let arrays: Result<Vec<_>> = self.columns.iter_mut().map(Column::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays?).map_err(|error| {
            Error::new(ErrorKind::Data, "the rows do not fit the schema").with_source(error)
        })?;
        self.finished.push_back(batch);
        self.rows = 0;
        self.bytes = 0;
        Ok(())
    }
}

/// What follows the header; `None` while it is not complete.
fn header(bytes: &[u8]) -> Result<Option<&[u8]>> {
    let Some((signature, rest)) = bytes.split_first_chunk::<11>() else { return Ok(None) };
    if signature != SIGNATURE {
        return Err(malformed("it has another signature"));
    }
    let Some((flags, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    // The upper half says that a reader that does not know a flag must give up.
    if u32::from_be_bytes(*flags) >> 16 != 0 {
        return Err(malformed("it has an unknown critical flag"));
    }
    let Some((length, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
        return Err(malformed("its header has a negative length"));
    };
    Ok(rest.split_at_checked(length).map(|(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{DataType, Field, Int32Type, Schema};
    use proptest::prelude::*;
    use tidelake_model::{InfiniteTime, SpecialNumber};

    use super::*;

    fn schema() -> (SchemaRef, Vec<Wire>) {
        let fields = vec![
            Field::new("id", DataType::Int32, false),
            Field::new("name", DataType::Utf8, true),
            Field::new("price", DataType::Decimal128(10, 2), true),
            Field::new("day", DataType::Date32, true),
        ];
        let wires = vec![Wire::Int4, Wire::Text, Wire::Numeric, Wire::Date];
        (Arc::new(Schema::new(fields)), wires)
    }

    fn decoder(policies: Policies, batch_bytes: u64) -> (CopyDecoder, Counters) {
        let (schema, wires) = schema();
        let counters = Counters::default();
        let decoder =
            CopyDecoder::new(&schema, &wires, policies, batch_bytes, counters.clone()).unwrap();
        (decoder, counters)
    }

    fn cell(out: &mut Vec<u8>, cell: Option<&[u8]>) {
        match cell {
            None => out.extend((-1i32).to_be_bytes()),
            Some(bytes) => {
                out.extend(i32::try_from(bytes.len()).unwrap().to_be_bytes());
                out.extend(bytes);
            }
        }
    }

    fn row(out: &mut Vec<u8>, id: i32, name: Option<&str>, price: Option<&[u8]>, day: i32) {
        out.extend(4i16.to_be_bytes());
        cell(out, Some(&id.to_be_bytes()));
        cell(out, name.map(str::as_bytes));
        cell(out, price);
        cell(out, Some(&day.to_be_bytes()));
    }

    fn start() -> Vec<u8> {
        let mut out = SIGNATURE.to_vec();
        out.extend([0; 8]);
        out
    }

    fn end(out: &mut Vec<u8>) {
        out.extend((-1i16).to_be_bytes());
    }

    const NAN: &[u8] = &[0, 0, 0, 0, 0xC0, 0, 0, 0];

    fn sample(rows: i32) -> Vec<u8> {
        let mut out = start();
        for id in 0..rows {
            let name = format!("näme {id}");
            let mut price = vec![];
            crate::numeric::write(false, &(id * 7).unsigned_abs().to_string(), 2, &mut price);
            let name = (id % 3 != 0).then_some(name.as_str());
            row(&mut out, id, name, (id % 5 != 0).then_some(&price), id);
        }
        end(&mut out);
        out
    }

    fn all(bytes: &[u8], pieces: &[usize], batch_bytes: u64) -> Result<Vec<RecordBatch>> {
        let (mut decoder, _) = decoder(Policies::default(), batch_bytes);
        let mut rest = bytes;
        for piece in pieces {
            let (head, tail) = rest.split_at((*piece).min(rest.len()));
            decoder.feed(head)?;
            rest = tail;
        }
        decoder.feed(rest)?;
        decoder.finish()?;
        Ok(std::iter::from_fn(|| decoder.next_batch()).collect())
    }

    #[test]
    fn rows_are_decoded() {
        let batches = all(&sample(10), &[], 1 << 20).unwrap();
        let [batch] = batches.as_slice() else { panic!("{batches:?}") };
        assert_eq!(batch.num_rows(), 10);
        assert_eq!(batch.column(0).as_primitive::<Int32Type>().value(9), 9);
        assert_eq!(batch.column(1).as_string::<i32>().value(1), "näme 1");
        assert!(batch.column(1).is_null(3) && batch.column(2).is_null(5));
    }

    /// The same rows as the server sends them, a message each.
    fn messages(rows: i32) -> Vec<u8> {
        let mut out = vec![];
        for id in 0..rows {
            let mut body = vec![];
            row(&mut body, id, (id % 3 != 0).then_some("name"), None, id);
            out.push(b'd');
            out.extend((u32::try_from(body.len()).unwrap() + 4).to_be_bytes());
            out.extend(body);
        }
        out
    }

    #[test]
    fn whole_messages_are_taken_up_to_a_batch_and_no_further() {
        let bytes = messages(100);
        let (mut decoder, _) = decoder(Policies::default(), 500);
        assert_eq!(decoder.feed_messages(&bytes).unwrap(), 0, "there was no header");
        decoder.feed(&start()).unwrap();
        let (mut at, mut rows) = (0, 0);
        while at < bytes.len() {
            // The last byte of a message is not there yet.
            let there = bytes.len() - 1;
            at += decoder.feed_messages(&bytes[at..there.max(at)]).unwrap();
            let Some(batch) = decoder.next_batch() else { break };
            assert!(decoder.next_batch().is_none(), "only one batch at a time");
            rows += batch.num_rows();
        }
        assert!(rows > 80 && at < bytes.len());
        at += decoder.feed_messages(&bytes[at..]).unwrap();
        assert_eq!(at, bytes.len());
        assert_eq!(decoder.feed_messages(b"C\0\0\0\x0aCOPY 1").unwrap(), 0);
        assert_eq!(decoder.feed_messages(b"d\0\0\0\x06\xff\xff").unwrap(), 0, "the trailer");
        let mut two = vec![];
        row(&mut two, 100, None, None, 0);
        row(&mut two, 101, None, None, 0);
        let mut head = vec![b'd'];
        head.extend((u32::try_from(two.len()).unwrap() + 4).to_be_bytes());
        two.splice(..0, head);
        assert_eq!(decoder.feed_messages(&two).unwrap(), 0, "two rows in one message");
        decoder.feed(&two[5..]).unwrap();
        assert_eq!(decoder.rows(), 102);
    }

    #[test]
    fn of_several_refused_cells_the_first_row_is_told() {
        let mut bytes = start();
        (0..20).for_each(|id| row(&mut bytes, id, None, None, id));
        row(&mut bytes, 20, None, None, i32::MAX);
        row(&mut bytes, 21, None, Some(NAN), 0);
        end(&mut bytes);
        let fail = Policies {
            infinite_time: InfiniteTime::Fail,
            special_number: SpecialNumber::Fail,
            ..Policies::default()
        };
        let (mut decoder, _) = decoder(fail, 1 << 20);
        let error = decoder.feed(&bytes).unwrap_err().to_string();
        assert!(error.contains("\"day\"") && error.contains("row 21"), "{error}");
    }

    #[test]
    fn no_rows_make_no_batch() {
        assert!(all(&sample(0), &[], 1 << 20).unwrap().is_empty());
    }

    #[test]
    fn batches_end_at_their_size() {
        let batches = all(&sample(100), &[], 200).unwrap();
        assert!(batches.len() > 10);
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 100);
        let batches = all(&sample(70_000), &[], 1 << 30).unwrap();
        let rows: Vec<_> = batches.iter().map(RecordBatch::num_rows).collect();
        assert_eq!(rows, [MOST_ROWS, 70_000 - MOST_ROWS]);
    }

    #[test]
    fn values_without_a_place_follow_the_policy_and_are_counted() {
        let mut bytes = start();
        row(&mut bytes, 1, None, Some(NAN), i32::MAX);
        row(&mut bytes, 2, None, None, i32::MIN);
        end(&mut bytes);
        let read = |policies| {
            let (mut decoder, counters) = decoder(policies, 1 << 20);
            decoder.feed(&bytes)?;
            decoder.finish()?;
            Ok::<_, Error>((decoder.next_batch().unwrap(), counters.snapshot()))
        };
        let (batch, counts) = read(Policies::default()).unwrap();
        assert_eq!((batch.column(2).null_count(), batch.column(3).null_count()), (2, 2));
        assert_eq!(counts["special_number:price"], 1);
        assert_eq!(counts["infinite_time:day"], 2);
        let clamp = Policies { infinite_time: InfiniteTime::Clamp, ..Policies::default() };
        let (batch, counts) = read(clamp).unwrap();
        let days = batch.column(3).as_primitive::<arrow::datatypes::Date32Type>();
        assert_eq!((days.value(0), days.value(1)), (i32::MAX, i32::MIN));
        assert_eq!(counts["infinite_time:day"], 2);
        let fail = Policies { infinite_time: InfiniteTime::Fail, ..Policies::default() };
        let error = read(fail).unwrap_err();
        assert!(error.kind() == ErrorKind::Data && error.to_string().contains("\"day\""));
        let fail = Policies { special_number: SpecialNumber::Fail, ..Policies::default() };
        assert!(read(fail).unwrap_err().to_string().contains("\"price\""));
    }

    #[test]
    fn a_cursor_does_not_become_null_by_a_policy() {
        let mut bytes = start();
        row(&mut bytes, 1, None, Some(NAN), i32::MIN);
        end(&mut bytes);
        let read = |cursor: &str, policies| {
            let (decoder, _) = decoder(policies, 1 << 20);
            let mut decoder = decoder.with_cursor(&[cursor.to_owned()]);
            decoder.feed(&bytes)?;
            decoder.finish()
        };
        let text = Policies { infinite_time: InfiniteTime::Text, ..Policies::default() };
        for policies in [Policies::default(), text] {
            let error = read("day", policies).unwrap_err();
            assert!(error.to_string().contains("a cursor cannot become NULL"), "{error}");
            assert!(error.hint().unwrap().contains("clamp"));
        }
        let clamp = Policies { infinite_time: InfiniteTime::Clamp, ..Policies::default() };
        read("day", clamp).unwrap();
        assert!(read("price", clamp).unwrap_err().to_string().contains("no value of a cursor"));
    }

    #[test]
    fn text_that_is_no_utf8_names_its_column() {
        let mut bytes = start();
        bytes.extend(4i16.to_be_bytes());
        cell(&mut bytes, Some(&1i32.to_be_bytes()));
        cell(&mut bytes, Some(b"\xff\xfe"));
        cell(&mut bytes, None);
        cell(&mut bytes, None);
        end(&mut bytes);
        let error = all(&bytes, &[], 1 << 20).unwrap_err();
        assert!(error.kind() == ErrorKind::Data && error.to_string().contains("\"name\""));
    }

    #[test]
    fn a_null_where_none_may_be_is_an_error() {
        let mut bytes = start();
        bytes.extend(4i16.to_be_bytes());
        (0..4).for_each(|_| cell(&mut bytes, None));
        end(&mut bytes);
        let error = all(&bytes, &[], 1 << 20).unwrap_err();
        assert!(error.chain().contains("'id'"), "{error:?}");
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_rows(
            pieces in proptest::collection::vec(0usize..90, 0..60),
            batch_bytes in 1u64..4000,
        ) {
            let bytes = sample(40);
            let whole = all(&bytes, &[], batch_bytes).unwrap();
            prop_assert_eq!(all(&bytes, &pieces, batch_bytes).unwrap(), whole);
        }

        #[test]
        fn a_stream_that_is_cut_off_is_an_error(keep in 0usize..1000) {
            let bytes = sample(20);
            let keep = keep.min(bytes.len() - 1);
            let error = all(&bytes[..keep], &[7], 300).unwrap_err();
            prop_assert_eq!(error.kind(), ErrorKind::Data);
        }

        #[test]
        fn damaged_bytes_are_survived(
            damage in proptest::collection::vec((0usize..1000, any::<u8>()), 1..20),
            pieces in proptest::collection::vec(0usize..90, 0..20),
        ) {
            let mut bytes = sample(20);
            for (at, byte) in damage {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            if let Err(error) = all(&bytes, &pieces, 300) {
                prop_assert_eq!(error.kind(), ErrorKind::Data);
            }
        }

        #[test]
        fn random_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut with_header = start();
            with_header.extend(&bytes);
            for bytes in [bytes, with_header] {
                if let Err(error) = all(&bytes, &[3, 50], 300) {
                    prop_assert_eq!(error.kind(), ErrorKind::Data);
                }
            }
        }
    }
}
