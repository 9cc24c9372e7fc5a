//! The types of MySQL and MariaDB.

use crate::sample::Becomes::*;
use crate::sample::Printed::{self, *};
use crate::sample::{Odd, Sample, odd, sample};

const TEXT: Printed = As("CAST({c} AS CHAR)");
const UNICODE: Printed = As("CONVERT({c} USING utf8mb4)");
const DAYS: Printed = As("CAST(TO_DAYS({c}) - TO_DAYS('1970-01-01') AS CHAR)");
const MICROSECONDS: Printed = As("CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {c}) AS CHAR)");
const HEXADECIMAL: Printed = As("LOWER(HEX({c}))");
const NUMBER: Printed = As("CAST({c} + 0 AS CHAR)");

const JSON: &str = "extension<arrow.json>";

/// Values of each type that both servers know.
pub(crate) const SAMPLES: &[Sample] = &[
    sample("tinyint(1)", "int8", TEXT, &["0", "1", "2", "-128", "127"])
        .note("`--type-cast` makes it a boolean where it is one"),
    sample("tinyint", "int8", TEXT, &["0", "-128", "127"]),
    sample("tinyint unsigned", "uint8", TEXT, &["0", "255"]),
    sample("smallint", "int16", TEXT, &["0", "-32768", "32767"]),
    sample("smallint unsigned", "uint16", TEXT, &["0", "65535"]),
    sample("mediumint", "int32", TEXT, &["0", "-8388608", "8388607"]),
    sample("mediumint unsigned", "uint32", TEXT, &["0", "16777215"]),
    sample("int", "int32", TEXT, &["0", "-2147483648", "2147483647"]),
    sample("int unsigned", "uint32", TEXT, &["0", "4294967295"]),
    sample("int(5) zerofill", "uint32", NUMBER, &["0", "42"]).note("without the zeros"),
    sample("bigint", "int64", TEXT, &["0", "-9223372036854775808", "9223372036854775807"]),
    sample(
        "bigint unsigned",
        "uint64",
        TEXT,
        &["0", "9223372036854775808", "18446744073709551615"],
    ),
    sample("float", "float", Bits, &["0", "1.5", "0.1", "-3.4028234e38", "1.17549435e-38"]),
    sample(
        "double",
        "double",
        Bits,
        &["0", "0.1", "1.7976931348623157e308", "-2.2250738585072014e-308"],
    ),
    sample("decimal(1,0)", "decimal128(1, 0)", TEXT, &["0", "9", "-9"]),
    sample("decimal(9,4)", "decimal128(9, 4)", TEXT, &["0", "99999.9999", "-0.0001"]),
    sample("decimal(9,4) unsigned", "decimal128(9, 4)", TEXT, &["0", "99999.9999"]),
    sample(
        "decimal(38,10)",
        "decimal128(38, 10)",
        TEXT,
        &["0", "9999999999999999999999999999.9999999999", "-0.0000000001"],
    ),
    sample(
        "decimal(30,30)",
        "decimal128(30, 30)",
        TEXT,
        &["0.999999999999999999999999999999", "-0.000000000000000000000000000001"],
    ),
    sample(
        "decimal(65,30)",
        "decimal256(65, 30)",
        TEXT,
        &[
            "0",
            "99999999999999999999999999999999999.999999999999999999999999999999",
            "-99999999999999999999999999999999999.999999999999999999999999999999",
        ],
    )
    .pyarrow_only(),
    sample(
        "bit(1)",
        "bool",
        As("CASE {c} + 0 WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"),
        &["b'0'", "b'1'"],
    ),
    sample("bit(8)", "uint64", NUMBER, &["b'0'", "b'11111111'"]),
    sample("bit(64)", "uint64", NUMBER, &["0", "0xFFFFFFFFFFFFFFFF", "0x8000000000000000"]),
    sample("year", "int16", NUMBER, &["0", "1901", "2155"]),
    sample(
        "date",
        "date32[day]",
        DAYS,
        &["'1970-01-01'", "'0001-01-01'", "'9999-12-31'", "'2000-02-29'"],
    ),
    sample(
        "datetime",
        "timestamp[us]",
        MICROSECONDS,
        &["'1970-01-01 00:00:00'", "'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'"],
    ),
    sample(
        "datetime(6)",
        "timestamp[us]",
        MICROSECONDS,
        &[
            "'1969-12-31 23:59:59.999999'",
            "'2026-11-30 09:15:00.1'",
            "'9999-12-31 23:59:59.999999'",
        ],
    ),
    sample(
        "timestamp(6) NULL",
        "timestamp[us, tz=UTC]",
        MICROSECONDS,
        &["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07.999999'", "'2026-11-30 09:15:00.12345'"],
    )
    .note("the instant, whatever the zone of the server"),
    sample("timestamp NULL", "timestamp[us, tz=UTC]", MICROSECONDS, &["'2024-03-31 01:30:00'"]),
    sample("time", "string", TEXT, &["'00:00:00'", "'-838:59:59'", "'838:59:59'", "'-00:00:01'"])
        .note("a span of time; Parquet has none"),
    sample("time(6)", "string", TEXT, &["'-838:59:58.999999'", "'00:00:00.000001'", "'12:00:00'"]),
    sample("char(5)", "string", TEXT, &["''", "'a'", "' b'"])
        .note("without blanks at the end, as the server itself"),
    sample(
        "varchar(40)",
        "string",
        TEXT,
        &["''", "' '", "'it''s'", "'Grüße 名前 🌊'", "'e\u{301}'", "X'610062'", "'NULL'"],
    ),
    sample("varchar(5) CHARACTER SET ascii", "string", TEXT, &["''", "'abc?'"]),
    sample("varchar(9) CHARACTER SET utf8mb3", "string", TEXT, &["'äöü€'", "'名前'"]),
    sample("varchar(9) CHARACTER SET latin1", "string", UNICODE, &["'äöü€?'", "X'818D8F90A0FF'"]),
    sample("varchar(9) CHARACTER SET latin2", "string", UNICODE, &["'Łódź?'"]),
    sample("varchar(9) CHARACTER SET cp1251", "string", UNICODE, &["'Привет?'"]),
    sample("varchar(9) CHARACTER SET cp1257", "string", UNICODE, &["'ąčę?'"]),
    sample("varchar(9) CHARACTER SET koi8r", "string", UNICODE, &["'Привет'"]),
    sample("varchar(9) CHARACTER SET greek", "string", UNICODE, &["'αβγ'"]),
    sample("varchar(9) CHARACTER SET hebrew", "string", UNICODE, &["'שלום'"]),
    sample("varchar(9) CHARACTER SET tis620", "string", UNICODE, &["'ไทย'"]),
    sample("varchar(9) CHARACTER SET sjis", "string", UNICODE, &["'ソ表?'", "'日本'"]),
    sample("varchar(9) CHARACTER SET cp932", "string", UNICODE, &["'①髙'", "X'8790'", "X'81E0'"])
        .note("two codes of one character become that character"),
    sample("varchar(9) CHARACTER SET ujis", "string", UNICODE, &["'日本'"]),
    sample("varchar(9) CHARACTER SET euckr", "string", UNICODE, &["'한국'"]),
    sample("varchar(9) CHARACTER SET gbk", "string", UNICODE, &["'中文?'"]),
    sample("varchar(9) CHARACTER SET big5", "string", UNICODE, &["'中文'"]),
    sample("varchar(9) CHARACTER SET ucs2", "string", UNICODE, &["'äб中?'"]),
    sample("varchar(9) CHARACTER SET utf16", "string", UNICODE, &["'ä🌊'"]),
    sample("varchar(9) CHARACTER SET utf32", "string", UNICODE, &["'ä🌊'"]),
    sample("tinytext", "string", TEXT, &["''", "REPEAT('x', 255)"]),
    sample("text", "string", TEXT, &["''", "REPEAT('x', 65535)"]),
    sample("longtext", "string", TEXT, &["''", "REPEAT('🌊', 250000)"]),
    sample("longtext CHARACTER SET latin1", "string", UNICODE, &["REPEAT('ä', 1000000)"]),
    sample("enum('a','it''s','名')", "string", TEXT, &["'a'", "'it''s'", "'名'"]),
    sample("enum('ä') CHARACTER SET latin1", "string", UNICODE, &["'ä'"]),
    sample("set('a','b','ü')", "string", TEXT, &["''", "'a'", "'a,ü'"]),
    sample(
        "json",
        JSON,
        Json("CAST({c} AS CHAR)"),
        &["'{\"a\": [1, null, \"ü🌊\"]}'", "'[]'", "'\"text\"'", "'null'", "'1.5'"],
    )
    .note("in MariaDB a `longtext` with a check that says so"),
    sample("binary(4)", "binary", HEXADECIMAL, &["X'00'", "X'00FF27FE'"])
        .note("with the zeros at the end"),
    sample("varbinary(9)", "binary", HEXADECIMAL, &["''", "X'00'", "X'FF00FF'"]),
    sample("tinyblob", "binary", HEXADECIMAL, &["''", "X'00FF'"]),
    sample("longblob", "binary", HEXADECIMAL, &["''", "REPEAT(X'00FF', 500000)"]),
    sample(
        "point",
        "binary",
        As("LOWER(HEX(ST_AsBinary({c})))"),
        &["ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('POINT(-3.5 1e100)')"],
    )
    .note("as WKB, without the reference system"),
    sample(
        "geometry",
        "binary",
        As("LOWER(HEX(ST_AsBinary({c})))"),
        &[
            "ST_GeomFromText('POLYGON((0 0, 0 3, 3 0, 0 0))')",
            "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1))')",
        ],
    ),
];

/// Those that only MariaDB knows.
pub(crate) const SAMPLES_OF_MARIADB: &[Sample] = &[
    sample(
        "uuid",
        "extension<arrow.uuid>",
        TEXT,
        &[
            "'00000000-0000-0000-0000-000000000000'",
            "'123e4567-e89b-12d3-a456-426655440000'",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        ],
    )
    .note("MariaDB only"),
    sample("inet4", "string", TEXT, &["'0.0.0.0'", "'255.255.255.255'"]).note("MariaDB only"),
    sample("inet6", "string", TEXT, &["'::'", "'2001:db8::ff00:42:8329'", "'::ffff:192.0.2.1'"])
        .note("MariaDB only"),
];

/// Values that the lake's type cannot hold.
pub(crate) const ODD: &[Odd] = &[
    odd("date", "'0000-00-00'", "", Null("zero_date")),
    odd("date", "'2000-00-10'", "", Null("zero_date")),
    odd("date", "'0000-12-19'", "--on-zero-date text", Text("0000-12-19", None)),
    odd("date", "'2024-02-30'", "", Null("zero_date")),
    odd("date", "'0000-00-00'", "--on-zero-date text", Text("0000-00-00", None)),
    odd("date", "'2026-11-30'", "--on-zero-date text", Text("2026-11-30", None)),
    odd("date NOT NULL", "'0000-00-00'", "", Null("zero_date")),
    odd(
        "date",
        "'0000-00-00'",
        "--on-zero-date fail",
        Error("0000-00-00 is no day of any calendar", "--on-zero-date null"),
    ),
    odd("datetime", "'0000-00-00 00:00:00'", "", Null("zero_date")),
    odd(
        "datetime(3)",
        "'2024-00-00 12:00:00.5'",
        "--on-zero-date text",
        Text("2024-00-00 12:00:00.500", None),
    ),
    odd("timestamp NULL", "'0000-00-00 00:00:00'", "", Null("zero_date")),
    odd(
        "timestamp NULL",
        "'0000-00-00 00:00:00'",
        "--on-zero-date text",
        Text("0000-00-00 00:00:00", None),
    ),
    odd(
        "datetime",
        "'0000-00-00 00:00:00'",
        "--on-zero-date fail",
        Error("is no day of any calendar", "--on-zero-date null"),
    ),
    odd(
        "varchar(5) CHARACTER SET cp1257",
        "X'A1'",
        "",
        Error("the value is no UTF-8 text", "read the column as binary"),
    ),
    odd("varchar(5) CHARACTER SET cp1257", "X'A1'", "--type-cast {c}:binary", Text("a1", None)),
    odd(
        "varchar(5) CHARACTER SET ucs2",
        "X'D800'",
        "",
        Error("the value is no UTF-8 text", "binary"),
    ),
    odd("tinyint(1)", "1", "--type-cast {c}:boolean", Text("true", None)),
    odd("tinyint(1)", "2", "--type-cast {c}:boolean", Error("2", "")),
    odd("decimal(10,3)", "1.5", "--decimal {c}:12,3", Text("1.500", None)),
    odd(
        "decimal(10,5)",
        "1.23456",
        "--decimal {c}:12,3",
        Error("1.23456 does not fit Decimal128(12, 3)", ""),
    ),
    odd("double", "0.1", "--type-cast {c}:text", Text("0.1", None)),
    odd("float", "0.1", "--type-cast {c}:text", Text("0.10000000149011612", None)),
    odd(
        "timestamp NULL",
        "'2026-11-30 09:15:00'",
        "--type-cast {c}:text",
        Text("2026-11-30 09:15:00", None),
    ),
    odd("bit(8)", "b'101'", "--type-cast {c}:text", Text("5", None)),
    odd("point", "ST_GeomFromText('POINT(1 2)')", "--type-cast {c}:text", Text("POINT(1 2)", None)),
    odd("varchar(5)", "'42'", "--type-cast {c}:int64", Text("42", None)),
];
