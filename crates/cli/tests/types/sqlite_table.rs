//! The types of SQLite.

use crate::sample::Becomes::*;
use crate::sample::Printed::*;
use crate::sample::{Odd, Sample, odd, sample};

const TEXT: crate::sample::Printed = As("CAST({c} AS TEXT)");
const AS_IS: crate::sample::Printed = As("{c}");
/// Days of a text, of epoch seconds or of a julian day.
const DAYS: crate::sample::Printed = As("CAST(round(CASE typeof({c}) WHEN 'integer'
    THEN {c} / 86400.0 ELSE julianday({c}) - 2440587.5 END) AS INTEGER)");
/// Microseconds of a text. SQLite itself counts milliseconds, so that the fraction
/// is looked at apart.
const MICROSECONDS: crate::sample::Printed = As("(WITH
    parts(v, behind) AS (SELECT {c}, CASE instr({c}, '.') WHEN 0 THEN ''
        ELSE substr({c}, instr({c}, '.') + 1) END),
    fraction(v, digits) AS (SELECT v,
        substr(behind, 1, length(behind) - length(ltrim(behind, '0123456789'))) FROM parts)
    SELECT strftime('%s', replace(v, '.' || digits, '')) * 1000000
        + substr(digits || '000000', 1, 6) FROM fraction)");
const BOOLEAN: crate::sample::Printed = As(
    "CASE WHEN {c} IS NULL THEN NULL WHEN lower({c}) IN ('1', 'true') THEN 'true' ELSE 'false' END",
);

/// Values of each declared type.
pub(crate) const SAMPLES: &[Sample] = &[
    sample(
        "INTEGER",
        "int64",
        TEXT,
        &["0", "-1", "-9223372036854775808", "9223372036854775807", "'7'", "1.0"],
    ),
    sample("BIGINT UNSIGNED", "int64", TEXT, &["0", "9223372036854775807"])
        .note("and every name with `INT` in it"),
    sample("TINYINT(1)", "int64", TEXT, &["0", "1", "127", "-128"]),
    sample("BOOLEAN", "bool", BOOLEAN, &["0", "1", "'true'", "'False'", "TRUE"]),
    sample(
        "REAL",
        "double",
        Bits,
        &["0", "-0.0", "1.5", "0.1 + 0.2", "1.7976931348623157e308", "5e-324", "-9e999", "9e999", "3"],
    )
    .note("also `FLOAT`, `DOUBLE`; infinity as it is, see below"),
    sample(
        "DECIMAL(10,2)",
        "decimal128(10, 2)",
        As("CASE WHEN {c} IS NOT NULL THEN printf('%.2f', {c}) END"),
        &["0", "19.99", "-0.07", "99999999.99", "-99999999.99", "'12.50'", "1e3"],
    ),
    sample("DECIMAL(38,0)", "decimal128(38, 0)", TEXT, &["0", "-9223372036854775808", "'42'"]),
    sample(
        "NUMERIC",
        "string",
        TEXT,
        &["0", "-19.99", "5", "123456789012345", "'abc'", "'NaN'", "9e999"],
    )
    .note("without a precision, or with more than 38 digits"),
    sample(
        "DATE",
        "date32[day]",
        DAYS,
        &["'1970-01-01'", "'0000-01-01'", "'9999-12-31'", "'2024-02-29'", "'-4712-01-01'",
          "'2026-11-30T00:00:00Z'", "1795996800"],
    ),
    sample(
        "DATETIME",
        "timestamp[us]",
        MICROSECONDS,
        &["'1970-01-01'", "'2026-11-30 09:15'", "'2026-11-30T09:15:00Z'", "'2026-11-30 23:59:59.999999'",
          "'2026-11-30 10:15:00.5+01:00'", "'0000-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'",
          "'1969-12-31 23:59:59.000001'", "'-0043-03-15 12:00:00'"],
    )
    .note("stored as text"),
    sample("TIMESTAMP", "timestamp[us]", As("{c} * 1000000"), &["0", "1796030100", "-86400"])
        .note("stored as epoch seconds"),
    sample("TIMESTAMP(3)", "timestamp[us]", As("{c} * 1000"), &["1796030100123", "1796030100000"])
        .note("stored as epoch milliseconds"),
    sample("TIMESTAMP(6)", "timestamp[us]", AS_IS, &["1796030100123456", "1796030100000000"])
        .note("stored as epoch microseconds"),
    sample(
        "DATETIME(0)",
        "timestamp[us]",
        As("CAST(round(({c} - 2440587.5) * 86400000) AS INTEGER) * 1000"),
        &["julianday('2026-11-30 09:15:00')", "julianday('2026-11-30 09:15:00.123')"],
    )
    .note("stored as julian days"),
    sample(
        "TIMESTAMPTZ",
        "timestamp[us, tz=UTC]",
        MICROSECONDS,
        &["'2026-11-30 10:15:00+01:00'", "'2026-11-30T09:15:00.123456Z'", "'2026-03-29 02:30:00'"],
    )
    .note("also `TIMESTAMP WITH TIME ZONE`, `DATETIMEOFFSET`"),
    sample(
        "TEXT",
        "string",
        AS_IS,
        &["''", "' '", "'it''s \"x\" \\ é 名 🌊 \\N'", "'a' || char(9, 13, 10) || 'b'",
          "'a' || char(0) || 'b'", "'e' || char(769)", "'אבג' || char(8238) || 'x'",
          "char(65535, 1114111)", "'👩‍👩‍👧'", "'NULL'", "7", "1.5",
          "replace(hex(zeroblob(524288)), '00', 'ü')"],
    )
    .note("also `CHAR`, `VARCHAR(n)`, `CLOB` and every name with one of them in it"),
    sample("TIME", "string", TEXT, &["'09:15:00'", "'24:00'", "'-838:59:59'"])
        .note("also `STRING`, `ENUM`"),
    sample("JSON", "extension<arrow.json>", TEXT, &["'{\"a\": [null, 1.10]}'", "'null'", "5"]),
    sample(
        "UUID",
        "string",
        As("CASE typeof({c}) WHEN 'blob' THEN lower(substr(hex({c}), 1, 8) || '-' || substr(hex({c}), 9, 4)
            || '-' || substr(hex({c}), 13, 4) || '-' || substr(hex({c}), 17, 4) || '-'
            || substr(hex({c}), 21)) ELSE {c} END"),
        &["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "x'A0EEBC999C0B4EF8BB6D6BB9BD380A11'"],
    ),
    sample("BLOB", "binary", AS_IS, &["x''", "x'00FF5C270A'", "zeroblob(1048576)"])
        .note("also `BINARY`, `VARBINARY`, `BYTEA`"),
    sample("", "string", TEXT, &["1", "1.5", "'a'", "1e300", "''"]).note("no type is declared"),
    sample("MONEY", "string", TEXT, &["19.99", "'$1'"]).note("every name that is not known"),
];

/// Values that do not fit.
pub(crate) const ODD: &[Odd] = &[
    odd(
        "INTEGER",
        "'seven'",
        "",
        Error("the text 'seven', which is no integer", "--type-cast {c}:text"),
    ),
    odd(
        "INTEGER",
        "1.5",
        "",
        Error("the real number 1.5, which is no integer", "--type-cast {c}:text"),
    ),
    odd("INTEGER", "1.5", "--type-cast {c}:text", Text("1.5", None)),
    odd("INTEGER", "'seven'", "--type-cast {c}:text", Text("seven", None)),
    odd("INTEGER", "x'00ff'", "--type-cast {c}:text", Text("X'00FF'", Some("blob_as_text"))),
    odd("INTEGER", "12", "--decimal {c}:12,3", Text("12.000", None)),
    odd("BOOLEAN", "2", "", Error("the integer 2, which is no boolean", "--type-cast {c}:text")),
    odd(
        "TEXT",
        "x'00ff'",
        "",
        Error("the blob X'00FF', which is no text", "--type-cast {c}:binary"),
    ),
    odd("TEXT", "x'00ff'", "--type-cast {c}:text", Text("X'00FF'", Some("blob_as_text"))),
    odd(
        "TEXT",
        "CAST(x'C328' AS TEXT)",
        "",
        Error("no valid UTF-8, X'C328'", "--type-cast {c}:text"),
    ),
    odd(
        "TEXT",
        "CAST(x'C328' AS TEXT)",
        "--type-cast {c}:text",
        Text("X'C328'", Some("invalid_text")),
    ),
    odd("TEXT", "'1.25'", "--decimal {c}:12,3", Text("1.250", None)),
    odd("TEXT", "'1.2345'", "--decimal {c}:12,3", Error("1.2345", "")),
    odd("JSON", "''", "", Error("the text '', which is no JSON", "--type-cast {c}:text")),
    odd("JSON", "'{a: 1}'", "--type-cast {c}:text", Text("{a: 1}", None)),
    odd("REAL", "0.1", "--decimal {c}:12,3", Text("0.100", None)),
    odd(
        "REAL",
        "0.1 + 0.2",
        "--decimal {c}:12,3",
        Error("no decimal of exactly 12 digits, 3", "--type-cast {c}:text"),
    ),
    odd("BLOB", "'text'", "", Error("the text 'text', which is no blob", "--type-cast {c}:text")),
    odd("REAL", "9e999", "--on-special-number null", Null("special_number")),
    odd(
        "REAL",
        "9e999",
        "--on-special-number fail",
        Error("the real number Inf", "--on-special-number null"),
    ),
    odd("REAL", "0.1 + 0.2", "--type-cast {c}:text", Text("0.30000000000000004", None)),
    odd(
        "DECIMAL(10,2)",
        "0.1 + 0.2",
        "",
        Error("no decimal of exactly 10 digits, 2", "--type-cast {c}:text"),
    ),
    odd(
        "DECIMAL(10,2)",
        "100000000",
        "",
        Error("no decimal of exactly 10 digits, 2", "--type-cast {c}:text"),
    ),
    odd("DECIMAL(10,2)", "9e999", "", Null("special_number")),
    odd("DECIMAL(10,2)", "'NaN'", "", Null("special_number")),
    odd("DECIMAL(10,2)", "'-Infinity'", "--on-special-number null", Null("special_number")),
    odd("DECIMAL(10,2)", "'NaN'", "--on-special-number text", Text("NaN", None)),
    odd("DECIMAL(10,2)", "19.99", "--on-special-number text", Text("19.99", None)),
    odd(
        "DECIMAL(10,2)",
        "'NaN'",
        "--on-special-number fail",
        Error("the text 'NaN'", "--on-special-number null"),
    ),
    odd("NUMERIC", "'NaN'", "--on-special-number null", Null("special_number")),
    odd("DATE", "'2026-11-30 12:00'", "", Error("it is not midnight", "--type-cast {c}:text")),
    odd("DATE", "'infinity'", "", Null("infinite_time")),
    odd("DATE", "'5000000-01-01'", "", Text("1825492972", None)),
    odd("DATE", "'2026-11-30'", "--on-infinite-time text", Text("2026-11-30", None)),
    odd("DATETIME", "'infinity'", "", Null("infinite_time")),
    odd("DATETIME", "'+300000-01-01'", "", Null("infinite_time")),
    odd(
        "DATETIME",
        "'-infinity'",
        "--on-infinite-time clamp",
        Text("-9223372036854775808", Some("infinite_time")),
    ),
    odd("DATETIME", "'infinity'", "--on-infinite-time text", Text("infinity", None)),
    odd(
        "DATETIME",
        "'infinity'",
        "--on-infinite-time fail",
        Error("the text 'infinity'", "--on-infinite-time null"),
    ),
    odd(
        "DATETIME",
        "'2026-11-30 24:00'",
        "",
        Error("the text '2026-11-30 24:00', which is no time", "--type-cast {c}:text"),
    ),
    odd("DATETIME", "'2016-12-31 23:59:60'", "", Error("which is no time", "--type-cast {c}:text")),
    odd("DATETIME", "'0000-00-00 00:00:00'", "", Null("zero_date")),
    odd("DATE", "'2026-11-00'", "--on-zero-date text", Text("2026-11-00", None)),
    odd(
        "DATE",
        "'0000-00-00'",
        "--on-zero-date fail",
        Error("the text '0000-00-00', which is no day of any calendar", "--on-zero-date null"),
    ),
    odd(
        "DATETIME",
        "'2026-11-30 09:15:00.1234567'",
        "",
        Error("more than six digits", "--timestamp-unit ns"),
    ),
    odd(
        "DATETIME",
        "'2026-11-30 09:15:00.123456789'",
        "--timestamp-unit ns",
        Text("1796030100123456789", None),
    ),
    odd("DATETIME", "'9999-12-31'", "--timestamp-unit ns", Null("infinite_time")),
    odd("DATETIME", "'soon'", "--type-cast {c}:text", Text("soon", None)),
    odd("", "x'00ff'", "", Error("the blob X'00FF', which is no text", "--type-cast {c}:text")),
];
