//! Rows that a test wrote become the batches that it meant.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType as T, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType, Field,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema, TimeUnit,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type, i256,
};
use proptest::prelude::*;

use super::*;
use tidelake_model::ZeroDate;

fn plan(columns: &[(&str, Wire, T)], policies: Policies, batch_bytes: u64) -> DecodePlan {
    let fields: Vec<_> =
        columns.iter().map(|(name, _, kind)| Field::new(*name, kind.clone(), true)).collect();
    DecodePlan {
        schema: Arc::new(Schema::new(fields)),
        wires: columns.iter().map(|(_, wire, _)| *wire).collect(),
        policies,
        batch_bytes,
        cursor: vec![],
        counters: Counters::default(),
    }
}

/// A row as the server writes it.
fn row(cells: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut packet = vec![0; 1 + (cells.len() + 9) / 8];
    for (index, cell) in cells.iter().enumerate() {
        match cell {
            None => packet[1 + (index + 2) / 8] |= 1 << ((index + 2) % 8),
            Some(bytes) => packet.extend(bytes),
        }
    }
    packet
}

fn text(text: &[u8]) -> Vec<u8> {
    let mut bytes = match text.len() {
        short @ 0..=250 => vec![u8::try_from(short).unwrap()],
        long => [&[0xFD][..], &u32::try_from(long).unwrap().to_le_bytes()[..3]].concat(),
    };
    bytes.extend(text);
    bytes
}

fn decoded(plan: &DecodePlan, rows: &[Vec<u8>]) -> Result<Vec<RecordBatch>> {
    let mut decoder = RowDecoder::new(plan)?;
    let mut batches = vec![];
    for row in rows {
        decoder.row(row)?;
        batches.extend(decoder.full_batch()?);
    }
    assert_eq!(decoder.rows(), u64::try_from(rows.len()).unwrap());
    batches.extend(decoder.last_batch()?);
    Ok(batches)
}

fn one(wire: Wire, kind: T, cell: Vec<u8>) -> Result<RecordBatch> {
    let plan = plan(&[("c", wire, kind)], Policies::default(), 1 << 20);
    Ok(decoded(&plan, &[row(&[Some(cell)])])?.remove(0))
}

#[test]
fn every_form_is_read() {
    let micros = T::Timestamp(TimeUnit::Microsecond, None);
    let columns = [
        ("tiny", Wire::Tiny, T::Int8),
        ("utiny", Wire::UnsignedTiny, T::UInt8),
        ("flag", Wire::Tiny, T::Boolean),
        ("short", Wire::Short, T::Int16),
        ("ushort", Wire::UnsignedShort, T::UInt16),
        ("long", Wire::Long, T::Int32),
        ("ulong", Wire::UnsignedLong, T::UInt32),
        ("longlong", Wire::LongLong, T::Int64),
        ("ulonglong", Wire::UnsignedLongLong, T::UInt64),
        ("year", Wire::Year, T::Int16),
        ("float", Wire::Float, T::Float32),
        ("double", Wire::Double, T::Float64),
        ("decimal", Wire::Decimal, T::Decimal128(38, 4)),
        ("wide", Wire::Decimal, T::Decimal256(65, 30)),
        ("date", Wire::Date, T::Date32),
        ("datetime", Wire::Datetime, micros),
        ("time", Wire::Time, T::Duration(TimeUnit::Microsecond)),
        ("bit", Wire::Bit, T::Boolean),
        ("bits", Wire::Bit, T::UInt64),
        ("text", Wire::Text, T::Utf8),
        ("uuid", Wire::Uuid, T::FixedSizeBinary(16)),
        ("bytes", Wire::Bytes, T::Binary),
        ("geometry", Wire::Geometry, T::Binary),
    ];
    let digits = "-99999999999999999999999999999999999.000000000000000000000000000001";
    let cells = [
        vec![0x80],
        vec![0xFF],
        vec![1],
        (-300i16).to_le_bytes().to_vec(),
        60_000u16.to_le_bytes().to_vec(),
        i32::MIN.to_le_bytes().to_vec(),
        u32::MAX.to_le_bytes().to_vec(),
        i64::MIN.to_le_bytes().to_vec(),
        u64::MAX.to_le_bytes().to_vec(),
        2155i16.to_le_bytes().to_vec(),
        0.1f32.to_le_bytes().to_vec(),
        (-0.0f64).to_le_bytes().to_vec(),
        text(b"-12.3456"),
        text(digits.as_bytes()),
        vec![4, 0xD0, 7, 2, 29],
        vec![7, 0xB2, 7, 1, 1, 0, 0, 1],
        vec![8, 1, 1, 0, 0, 0, 1, 0, 0],
        text(&[1]),
        text(&[0xFF, 0, 0, 0, 0, 0, 0, 1]),
        text("grün".as_bytes()),
        text(b"00112233-4455-6677-8899-AABBccddeeff"),
        text(b"\0\xFF"),
        text(b"\x10\x0e\0\0\x01wkb"),
    ]
    .map(Some);
    let plan = plan(&columns, Policies::default(), 1 << 20);
    let nulls = vec![None; columns.len()];
    let batch = decoded(&plan, &[row(&cells), row(&nulls)]).unwrap().remove(0);
    let column = |name: &str| batch.column_by_name(name).unwrap();
    for column in batch.columns() {
        assert!(column.is_null(1) && column.is_valid(0));
    }
    assert_eq!(column("tiny").as_primitive::<Int8Type>().value(0), -128);
    assert_eq!(column("utiny").as_primitive::<UInt8Type>().value(0), 255);
    assert!(column("flag").as_boolean().value(0));
    assert_eq!(column("short").as_primitive::<Int16Type>().value(0), -300);
    assert_eq!(column("ushort").as_primitive::<UInt16Type>().value(0), 60_000);
    assert_eq!(column("long").as_primitive::<Int32Type>().value(0), i32::MIN);
    assert_eq!(column("ulong").as_primitive::<UInt32Type>().value(0), u32::MAX);
    assert_eq!(column("longlong").as_primitive::<Int64Type>().value(0), i64::MIN);
    assert_eq!(column("ulonglong").as_primitive::<UInt64Type>().value(0), u64::MAX);
    assert_eq!(column("year").as_primitive::<Int16Type>().value(0), 2155);
    assert_eq!(column("float").as_primitive::<Float32Type>().value(0).to_bits(), 0.1f32.to_bits());
    let double = column("double").as_primitive::<Float64Type>().value(0);
    assert_eq!(double.to_bits(), (-0.0f64).to_bits());
    assert_eq!(column("decimal").as_primitive::<Decimal128Type>().value(0), -123_456);
    let wide = i256::from_string(&digits.replace('.', "")).unwrap();
    assert_eq!(column("wide").as_primitive::<Decimal256Type>().value(0), wide);
    assert_eq!(column("date").as_primitive::<Date32Type>().value(0), 11_016);
    let micros = column("datetime").as_primitive::<TimestampMicrosecondType>().value(0);
    assert_eq!(micros, 1_000_000);
    let time = column("time").as_primitive::<DurationMicrosecondType>().value(0);
    assert_eq!(time, -25 * 3_600_000_000);
    assert!(column("bit").as_boolean().value(0));
    assert_eq!(column("bits").as_primitive::<UInt64Type>().value(0), 0xFF00_0000_0000_0001);
    assert_eq!(column("text").as_string::<i32>().value(0), "grün");
    let uuid = column("uuid").as_fixed_size_binary().value(0);
    assert_eq!((uuid[0], uuid[15], uuid[10]), (0, 0xFF, 0xAA));
    assert_eq!(column("bytes").as_binary::<i32>().value(0), b"\0\xFF");
    assert_eq!(column("geometry").as_binary::<i32>().value(0), b"\x01wkb");
}

#[test]
fn values_that_do_not_fit_are_named() {
    for (wire, kind, cell, wanted) in [
        (Wire::Decimal, T::Decimal128(5, 2), text(b"1234.50"), "1234.50 does not fit"),
        (Wire::Decimal, T::Decimal128(9, 1), text(b"1234.55"), "1234.55 does not fit"),
        (Wire::Decimal, T::Decimal256(40, 0), text(&[b'9'; 41]), "9 does not fit"),
        (Wire::Tiny, T::Boolean, vec![2], "2 does not fit"),
        (Wire::Decimal, T::Decimal128(5, 2), text(b"abc"), "another type"),
        (Wire::Bit, T::Boolean, text(&[2]), "another type"),
        (Wire::Bit, T::UInt64, text(&[0; 9]), "another type"),
        (Wire::Uuid, T::FixedSizeBinary(16), text(b"0011"), "another type"),
        (Wire::Geometry, T::Binary, text(b"abc"), "another type"),
        (Wire::Date, T::Date32, vec![9; 12], "another type"),
        (Wire::Text, T::Utf8, vec![200, b'a'], "another type"),
        (Wire::Long, T::Int32, vec![1, 2], "another type"),
        (Wire::Tiny, T::Int8, vec![1, 2], "follows a row's last column"),
    ] {
        let error = one(wire, kind, cell).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.to_string().contains(wanted), "{error} lacks {wanted:?}");
    }
    let plan = plan(&[("c", Wire::Long, T::Int64)], Policies::default(), 1);
    assert_eq!(RowDecoder::new(&plan).err().unwrap().kind(), ErrorKind::Internal);
}

#[test]
fn dates_that_no_calendar_has_follow_the_policy_and_are_counted() {
    let columns = [
        ("day", Wire::Date, T::Date32),
        ("moment", Wire::Datetime, T::Timestamp(TimeUnit::Microsecond, None)),
    ];
    let rows = [
        row(&[Some(vec![0]), Some(vec![0])]),
        row(&[Some(vec![4, 0xD0, 7, 0, 10]), Some(vec![7, 0, 0, 12, 19, 1, 1, 1])]),
        row(&[Some(vec![4, 0xD1, 7, 2, 29]), Some(vec![4, 0xD0, 7, 2, 29])]),
    ];
    for zero_date in [ZeroDate::Null, ZeroDate::Text] {
        let plan = plan(&columns, Policies { zero_date, ..Policies::default() }, 1 << 20);
        let batch = decoded(&plan, &rows).unwrap().remove(0);
        assert_eq!((batch.column(0).null_count(), batch.column(1).null_count()), (3, 2));
        let counts = plan.counters.snapshot();
        assert_eq!((counts["zero_date:day"], counts["zero_date:moment"]), (3, 2));
    }
    let fail = plan(&columns, Policies { zero_date: ZeroDate::Fail, ..Policies::default() }, 99);
    let error = decoded(&fail, &rows[1..]).unwrap_err();
    assert!(error.to_string().contains("\"day\": 2000-00-10"), "{error}");
    let mut cursor = plan(&columns, Policies::default(), 99);
    cursor.cursor = vec!["moment".into()];
    let error = decoded(&cursor, &rows).unwrap_err();
    assert!(error.to_string().contains("a cursor cannot become NULL"), "{error}");
    let mut fixed = plan(&columns, Policies::default(), 99);
    fixed.schema = Arc::new(Schema::new(vec![
        Field::new("day", T::Date32, false),
        fixed.schema.field(1).clone(),
    ]));
    let error = decoded(&fixed, &rows).unwrap_err();
    assert!(error.to_string().contains("the column cannot be NULL"), "{error}");
}

#[test]
fn text_that_is_no_utf8_names_its_row_and_column() {
    let plan = plan(&[("name", Wire::Text, T::Utf8)], Policies::default(), 40);
    // A character may not lie across two cells, either.
    for bad in [&[&b"\xFF"[..]][..], &[b"\xC3", b"\xBC"]] {
        let mut rows: Vec<_> = (0..30).map(|_| row(&[Some(text(b"fine enough"))])).collect();
        rows.extend(bad.iter().map(|cell| row(&[Some(text(cell))])));
        let error = decoded(&plan, &rows).unwrap_err();
        let wanted = "column \"name\": the value is no UTF-8 text (row 31 of the slice)";
        assert!(error.to_string().contains(wanted), "{error}");
        assert!(error.hint().unwrap().contains("binary"));
    }
}

#[test]
fn batches_end_at_their_size() {
    let columns = [("id", Wire::Long, T::Int32), ("name", Wire::Text, T::Utf8)];
    let cells = |id: i32| vec![Some(id.to_le_bytes().to_vec()), Some(text(&[b'x'; 92]))];
    let rows: Vec<_> = (0..1000).map(|id| row(&cells(id))).collect();
    // A row has 4 + 4 + 92 bytes.
    let batches = decoded(&plan(&columns, Policies::default(), 10_000), &rows).unwrap();
    assert_eq!(batches.len(), 10);
    assert!(batches.iter().all(|batch| batch.num_rows() == 100));
    let rows: Vec<_> =
        (0..70_000i32).map(|id| row(&[Some(id.to_le_bytes().to_vec()), None])).collect();
    let batches = decoded(&plan(&columns, Policies::default(), 1 << 30), &rows).unwrap();
    let sizes: Vec<_> = batches.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(sizes, [MOST_ROWS, 70_000 - MOST_ROWS]);
    assert_eq!(batches[1].column(1).null_count(), 70_000 - MOST_ROWS);
}

#[test]
fn a_null_where_none_may_be_is_an_error() {
    let mut plan = plan(&[("id", Wire::Long, T::Int32)], Policies::default(), 99);
    plan.schema = Arc::new(Schema::new(vec![Field::new("id", T::Int32, false)]));
    let error = decoded(&plan, &[row(&[None])]).unwrap_err();
    assert!(error.chain().contains("'id'"), "{error:?}");
}

#[test]
fn a_column_of_another_type_is_noticed_before_its_rows() {
    let plan = plan(&[("id", Wire::Long, T::Int32)], Policies::default(), 99);
    let decoder = RowDecoder::new(&plan).unwrap();
    let sent = |kind, unsigned| Sent { kind, unsigned, collation: 63 };
    decoder.check(&[sent(3, false)]).unwrap();
    // MEDIUMINT is sent in four bytes too.
    decoder.check(&[sent(9, false)]).unwrap();
    for other in [sent(8, false), sent(3, true), sent(200, false)] {
        assert_eq!(decoder.check(&[other]).unwrap_err().kind(), ErrorKind::Data);
    }
    assert_eq!(decoder.check(&[]).unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn text_has_to_come_in_utf8() {
    let sent = |collation| Sent { kind: 253, unsigned: false, collation };
    // utf8mb4, utf8mb3, ascii, none, and a collation that is younger than the tables.
    for utf8 in [45, 255, 33, 11, 63, 2304] {
        assert!(Wire::Text.takes(&sent(utf8)), "{utf8}");
    }
    // latin1, sjis, ucs2, cp1251.
    for other in [8, 13, 35, 51] {
        assert!(!Wire::Text.takes(&sent(other)), "{other}");
        assert!(Wire::Bytes.takes(&sent(other)));
    }
}

/// One row's values, as a test meant them.
type Meant = (Option<i64>, Option<String>, Option<i64>, Option<(u16, u8, u8)>, Option<Vec<u8>>);

fn meant() -> impl Strategy<Value = Meant> {
    (
        any::<Option<i64>>(),
        proptest::option::of(".{0,12}"),
        proptest::option::of(-99_999_999i64..=99_999_999),
        proptest::option::of((1u16..=9999, 1u8..=12, 1u8..=28)),
        proptest::option::of(proptest::collection::vec(any::<u8>(), 0..300)),
    )
}

const MEANT: [(&str, Wire, T); 5] = [
    ("id", Wire::LongLong, T::Int64),
    ("name", Wire::Text, T::Utf8),
    ("price", Wire::Decimal, T::Decimal128(10, 2)),
    ("day", Wire::Date, T::Date32),
    ("bytes", Wire::Bytes, T::Binary),
];

fn written((id, name, price, day, bytes): &Meant) -> Vec<u8> {
    row(&[
        id.map(|id| id.to_le_bytes().to_vec()),
        name.as_ref().map(|name| text(name.as_bytes())),
        price.map(|price| {
            let (whole, part) = (price.unsigned_abs() / 100, price.unsigned_abs() % 100);
            let sign = if price < 0 { "-" } else { "" };
            text(format!("{sign}{whole}.{part:02}").as_bytes())
        }),
        day.map(|(year, month, day)| [&[4][..], &year.to_le_bytes(), &[month, day]].concat()),
        bytes.as_ref().map(|bytes| text(bytes)),
    ])
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        rows in proptest::collection::vec(meant(), 0..60),
        batch_bytes in 1u64..4000,
    ) {
        let packets: Vec<_> = rows.iter().map(written).collect();
        let batches = decoded(&plan(&MEANT, Policies::default(), batch_bytes), &packets).unwrap();
        let mut rows = rows.into_iter();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                let (id, name, price, day, bytes) = rows.next().unwrap();
                let column = |at: usize| batch.column(at);
                let found = column(0).as_primitive::<Int64Type>();
                prop_assert_eq!(found.is_valid(row).then(|| found.value(row)), id);
                let found = column(1).as_string::<i32>();
                prop_assert_eq!(found.is_valid(row).then(|| found.value(row).to_owned()), name);
                let found = column(2).as_primitive::<Decimal128Type>();
                prop_assert_eq!(found.is_valid(row).then(|| found.value(row)), price.map(Into::into));
                let found = column(3).as_primitive::<Date32Type>();
                let shown = found.value_as_date(row).map(|date| date.to_string());
                let wanted = day.map(|(year, month, day)| format!("{year:04}-{month:02}-{day:02}"));
                prop_assert_eq!(found.is_valid(row).then_some(shown).flatten(), wanted);
                let found = column(4).as_binary::<i32>();
                prop_assert_eq!(found.is_valid(row).then(|| found.value(row).to_vec()), bytes);
            }
        }
        prop_assert!(rows.next().is_none());
    }

    #[test]
    fn damaged_rows_are_survived(
        rows in proptest::collection::vec(meant(), 1..10),
        damage in proptest::collection::vec((0usize..10, 0usize..400, any::<u8>()), 1..10),
        cut in 0usize..400,
    ) {
        let mut packets: Vec<_> = rows.iter().map(written).collect();
        for (packet, at, byte) in damage {
            let count = packets.len();
            let packet = &mut packets[packet % count];
            let at = at % packet.len();
            packet[at] = byte;
        }
        packets[0].truncate(cut);
        if let Err(error) = decoded(&plan(&MEANT, Policies::default(), 500), &packets) {
            prop_assert_eq!(error.kind(), ErrorKind::Data);
        }
    }
}
