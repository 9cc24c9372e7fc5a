//! What is accepted as a value, what it is stored as, and what is refused.

// Helpers of tests may stop at the first surprise, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use tidelake_value::{Cursor, Decimal, Kind, Position, Value};

#[track_caller]
fn accepts(kind: Kind, pairs: &[(&str, &str)]) {
    for (text, canonical) in pairs {
        let value = Value::parse(kind, text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(value.to_string(), *canonical, "{kind} from {text:?}");
        assert_eq!(Value::parse(kind, canonical).as_ref(), Ok(&value), "{canonical:?} again");
    }
}

#[track_caller]
fn refuses(kind: Kind, texts: &[&str]) {
    for text in texts {
        let refused = Value::parse(kind, text);
        let error = refused.err().unwrap_or_else(|| panic!("{text:?} was taken for a {kind}"));
        assert_eq!((error.kind, error.text.as_str()), (kind, *text));
        assert!(Value::parse(kind, error.example()).is_ok(), "a bad example for {kind}");
        assert!(error.to_string().contains(error.example()));
    }
}

#[test]
fn dates() {
    accepts(
        Kind::Date,
        &[
            ("2026-11-30", "2026-11-30"),
            ("1970-01-01", "1970-01-01"),
            ("2024-02-29", "2024-02-29"),
            ("2000-02-29", "2000-02-29"),
            ("0001-01-01", "0001-01-01"),
            ("0000-12-31", "0000-12-31"),
            ("0001-12-31 BC", "0000-12-31"),
            ("0044-03-15 BC", "-0043-03-15"),
            ("4713-01-01 BC", "-4712-01-01"),
            ("-0043-03-15", "-0043-03-15"),
            ("+10000-01-01", "+10000-01-01"),
            ("294276-12-31", "+294276-12-31"),
            ("+5874897-12-31", "+5874897-12-31"),
        ],
    );
    refuses(
        Kind::Date,
        &[
            "",
            " ",
            "2026-11-30 ",
            " 2026-11-30",
            "2026-11-31",
            "2023-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-01-00",
            "2026-1-1",
            "26-11-30",
            "2026-11",
            "2026-11-30-01",
            "2026/11/30",
            "30.11.2026",
            "0000-00-00",
            "2200-0-8",
            "20261130",
            "2026-11-30T00:00:00",
            "today",
            "infinity",
            "0000-01-01 BC",
            "-0043-03-15 BC",
            "2026-11-30 AD",
            "2026-11-30 BC BC",
            "10000000-01-01",
            "--2026-11-30",
            "2026-+1-30",
            "２０２６-11-30",
            "NaN",
        ],
    );
}

#[test]
fn naive_times() {
    accepts(
        Kind::Datetime,
        &[
            ("2026-11-30", "2026-11-30T00:00:00"),
            ("2026-11-30 09:15:00", "2026-11-30T09:15:00"),
            ("2026-11-30T09:15", "2026-11-30T09:15:00"),
            ("2026-11-30T09:15:00.1234567", "2026-11-30T09:15:00.1234567"),
            ("2026-11-30T09:15:00.123456789", "2026-11-30T09:15:00.123456789"),
            ("2026-11-30T09:15:00.1234567890", "2026-11-30T09:15:00.123456789"),
            ("2026-11-30T09:15:00.500", "2026-11-30T09:15:00.5"),
            ("2026-11-30T09:15:00.000000001", "2026-11-30T09:15:00.000000001"),
            ("1969-12-31 23:59:59.999999999", "1969-12-31T23:59:59.999999999"),
            ("0044-03-15 12:00:00 BC", "-0043-03-15T12:00:00"),
            ("294276-12-31 23:59:59.999999", "+294276-12-31T23:59:59.999999"),
        ],
    );
    refuses(
        Kind::Datetime,
        &[
            "",
            "2026-11-30T",
            "2026-11-30T09",
            "2026-11-30T9:15:00",
            "2026-11-30T24:00:00",
            "2026-11-30T09:60:00",
            "2026-11-30T09:15:60",
            "2026-11-30T09:15:00.",
            "2026-11-30T09:15:00.1234567891",
            "2026-11-30T09:15:00,5",
            "2026-11-30T09:15:00Z",
            "2026-11-30T09:15:00+02:00",
            "2026-11-30  09:15:00",
            "2026-11-30 09:15:00 PM",
            "2026-11-30T09:15:00.5.5",
            "2026-11-30T09:15:00:00",
            "1764494100",
            "now()",
        ],
    );
}

#[test]
fn instants() {
    accepts(
        Kind::Timestamp,
        &[
            ("2026-11-30T09:15:00.123456Z", "2026-11-30T09:15:00.123456Z"),
            ("2026-11-30T09:15:00z", "2026-11-30T09:15:00Z"),
            ("2026-11-30T09:15:00+02:00", "2026-11-30T07:15:00Z"),
            ("2026-11-30 09:15:00+02", "2026-11-30T07:15:00Z"),
            ("2026-11-30 09:15:00-0330", "2026-11-30T12:45:00Z"),
            ("2026-11-30T00:30:00+05:45", "2026-11-29T18:45:00Z"),
            ("2026-12-31T23:59:59.999999999-14:00", "2027-01-01T13:59:59.999999999Z"),
            ("2026-11-30 09:15:00", "2026-11-30T09:15:00Z"),
            ("2026-11-30", "2026-11-30T00:00:00Z"),
            ("0044-03-15 12:00:00+00 BC", "-0043-03-15T12:00:00Z"),
            ("294276-12-31 23:59:59.999999+00", "+294276-12-31T23:59:59.999999Z"),
        ],
    );
    refuses(
        Kind::Timestamp,
        &[
            "",
            "Z",
            "2026-11-30Z",
            "2026-11-30T09:15:00+2",
            "2026-11-30T09:15:00+02:0",
            "2026-11-30T09:15:00+02:60",
            "2026-11-30T09:15:00+19:00",
            "2026-11-30T09:15:00+:02",
            "2026-11-30T09:15:00+02:",
            "2026-11-30T09:15:00+0:200",
            "2026-11-30T09:15:00+02:00Z",
            "2026-11-30T09:15:00ZZ",
            "2026-11-30T09:15:00 UTC",
            "2026-11-30T09:15:00+",
            "infinity",
            "-infinity",
            "2026-11-30T09:15:00 Europe/Berlin",
        ],
    );
}

#[test]
fn integers() {
    accepts(
        Kind::Integer,
        &[
            ("-42", "-42"),
            ("0", "0"),
            ("-0", "0"),
            ("007", "7"),
            ("18446744073709551615", "18446744073709551615"),
            ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
            (
                "-170141183460469231731687303715884105728",
                "-170141183460469231731687303715884105728",
            ),
        ],
    );
    refuses(
        Kind::Integer,
        &[
            "",
            " ",
            "1.5",
            "1.0",
            "+1",
            "1e3",
            " 1",
            "1 ",
            "1_000",
            "1,000",
            "0x10",
            "-",
            "--1",
            "ten",
            "170141183460469231731687303715884105728",
            "٣",
            "NaN",
        ],
    );
}

#[test]
fn numbers() {
    accepts(
        Kind::Number,
        &[
            ("3.1400", "3.1400"),
            ("-0.07", "-0.07"),
            ("0", "0"),
            ("-0.00", "0.00"),
            ("007.5", "7.5"),
            ("42", "42"),
            (
                "12345678901234567890123456789012345678901234567890.000000001",
                "12345678901234567890123456789012345678901234567890.000000001",
            ),
        ],
    );
    refuses(
        Kind::Number,
        &[
            "", "-", ".", "1.", ".5", "+1", "1e3", "1,5", "1.5.5", " 1", "1 ", "NaN", "Infinity",
            "0x1", "--1", "-.5",
        ],
    );
    let number = |text| Value::parse(Kind::Number, text).unwrap();
    assert_eq!(number("3.1400"), number("3.14"));
}

#[test]
fn texts_and_bytes() {
    accepts(
        Kind::Text,
        &[("", ""), (" as is ", " as is "), ("0x1", "0x1"), ("O'Brien", "O'Brien")],
    );
    accepts(
        Kind::Binary,
        &[("0x00000000000007D1", "0x00000000000007D1"), ("0X07d1", "0x07D1"), ("0x", "0x")],
    );
    refuses(Kind::Binary, &["", "07D1", "0x7", "0xGG", "0x 07", "0x0é", "x07"]);
}

#[test]
fn decimals_of_any_length_print_as_they_were_read() {
    // A padded width beyond 65,535 is more than the formatter can take.
    let long = format!("0.{}1", "0".repeat(70_000));
    assert_eq!(Decimal::parse(&long).unwrap().to_string(), long);
}

#[test]
fn decimals_subtract_and_round_down() {
    let decimal = |text: &str| Decimal::parse(text).unwrap();
    for (left, right, difference) in [
        ("5", "3", "2"),
        ("3", "5", "-2"),
        ("-3", "5", "-8"),
        ("3", "-5", "8"),
        ("-3", "-5", "2"),
        ("1", "0.001", "0.999"),
        ("1000", "0.5", "999.5"),
        ("0.10", "0.1", "0.00"),
        ("99", "-1", "100"),
    ] {
        assert_eq!(decimal(left).minus(&decimal(right)).to_string(), difference, "{left} {right}");
    }
    for (text, floor) in
        [("1.9", 1), ("-1.1", -2), ("-1.0", -1), ("0.9", 0), ("-0.1", -1), ("7", 7)]
    {
        assert_eq!(decimal(text).floor(), Some(floor), "{text}");
    }
    assert_eq!(decimal(&"9".repeat(60)).floor(), None);
    assert!(decimal("-2") < decimal("-1.5"));
    assert!(decimal("10") > decimal("9.99"));
    assert_eq!(decimal("-0"), decimal("0.00"));
}

#[test]
fn composite_positions() {
    let kinds = [Kind::Timestamp, Kind::Text, Kind::Integer];
    let text = r"2026-11-30T09:15:00Z,a\,b\\,7";
    let position = Position::parse(&kinds, text).unwrap();
    assert_eq!(position.to_string(), text);
    assert_eq!(position.values().nth(1), Some(&Value::Text(r"a,b\".to_owned())));
    for refused in ["", "2026-11-30", "2026-11-30,a", "2026-11-30,a,b", "2026-11-30,a,1,2"] {
        assert!(Position::parse(&kinds, refused).is_err(), "{refused:?}");
    }
    assert!(Position::parse(&[], "1").is_err());
    // A single value is taken as it is, commas included.
    let single = Position::parse(&[Kind::Text], r"a,b\").unwrap();
    assert_eq!(single.to_string(), r"a,b\");
}

#[test]
fn cursors() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    for (text, cursor) in [
        ("updated_at", Cursor::Single("updated_at".to_owned())),
        ("a.b", Cursor::Single("a.b".to_owned())),
        ("a b", Cursor::Single("a b".to_owned())),
        ("\"a,b\"", Cursor::Single("a,b".to_owned())),
        ("\"a\"\"b\"", Cursor::Single("a\"b".to_owned())),
        ("updated_at,id", Cursor::Composite(names(&["updated_at", "id"]))),
        ("\"a|b\",c", Cursor::Composite(names(&["a|b", "c"]))),
        ("updated_at|created_at", Cursor::Fallback(names(&["updated_at", "created_at"]))),
    ] {
        assert_eq!(Cursor::parse(text), Some(cursor), "{text}");
    }
    for refused in ["", ",", "a,", "a|", ",a", "a,b|c", "\"a", "\"\"", "a\"b", "\"a\"b", "a,,b"] {
        assert_eq!(Cursor::parse(refused), None, "{refused}");
    }
}
