//! The types of PostgreSQL.

use crate::sample::Becomes::*;
use crate::sample::Printed::{self, *};
use crate::sample::{Odd, Sample, odd, sample};

const TEXT: Printed = As("{c}::text");
const DAYS: Printed = As("({c} - date '1970-01-01')::text");
const MICROSECONDS: Printed = As("(extract(epoch FROM {c}) * 1000000)::bigint::text");
const HEXADECIMAL: Printed = As("encode({c}, 'hex')");
const PARTS: Printed = Json("to_json({c})::text");
/// Padding belongs to the value; a cast to text takes it away.
const PADDED: Printed = As("rpad({c}::text, octet_length({c}))");

const JSON: &str = "extension<arrow.json>";

/// What the types need to be there.
pub(crate) const TYPES: &str = "
    CREATE EXTENSION hstore; CREATE EXTENSION citext;
    CREATE TYPE mood AS ENUM ('sad', 'it''s ok', 'Ünï 🌊');
    CREATE TYPE pair AS (a integer, b text);
    CREATE TYPE nested AS (p pair, list integer[], at timestamptz);
    CREATE DOMAIN positive AS integer CHECK (value > 0);
    CREATE DOMAIN cents AS numeric(10,2);
    CREATE DOMAIN word AS text;
    CREATE DOMAIN words AS text[];
    CREATE DOMAIN small AS cents CHECK (value < 100);
";

/// Values of each type.
pub(crate) const SAMPLES: &[Sample] = &[
    sample("boolean", "bool", TEXT, &["true", "false"]),
    sample("smallint", "int16", TEXT, &["0", "-1", "-32768", "32767"]),
    sample("integer", "int32", TEXT, &["0", "-1", "-2147483648", "2147483647"]),
    sample("bigint", "int64", TEXT, &["0", "-1", "-9223372036854775808", "9223372036854775807"]),
    sample("oid", "uint32", TEXT, &["0", "4294967295"]),
    sample("xid8", "uint64", TEXT, &["'0'", "'18446744073709551615'"]),
    sample(
        "real",
        "float",
        Bits,
        &["0", "'-0'", "1.5", "3.4028235e38", "-1e-45", "'NaN'", "'Infinity'", "'-Infinity'"],
    )
    .note("NaN and infinity as they are"),
    sample(
        "double precision",
        "double",
        Bits,
        &[
            "0",
            "'-0'",
            "0.1",
            "1.7976931348623157e308",
            "'-5e-324'",
            "'NaN'",
            "'Infinity'",
            "'-Infinity'",
        ],
    )
    .note("NaN and infinity as they are"),
    sample("numeric(1,0)", "decimal128(1, 0)", TEXT, &["0", "9", "-9"]),
    sample("numeric(9,4)", "decimal128(9, 4)", TEXT, &["0", "99999.9999", "-0.0001"]),
    sample(
        "numeric(38,10)",
        "decimal128(38, 10)",
        TEXT,
        &["0", "9999999999999999999999999999.9999999999", "-0.0000000001"],
    ),
    sample(
        "numeric(38,38)",
        "decimal128(38, 38)",
        TEXT,
        &["0.99999999999999999999999999999999999999", "-0.00000000000000000000000000000000000001"],
    ),
    sample(
        "numeric(39,5)",
        "decimal256(39, 5)",
        TEXT,
        &[
            "0",
            "9999999999999999999999999999999999.99999",
            "-9999999999999999999999999999999999.99999",
        ],
    )
    .pyarrow_only(),
    sample(
        "numeric(76,38)",
        "decimal256(76, 38)",
        As("round({c}, 38)::text"),
        &[
            "-99999999999999999999999999999999999999.99999999999999999999999999999999999999",
            "1",
            "0",
        ],
    )
    .pyarrow_only(),
    sample("numeric(5,-2)", "decimal128(7, 0)", TEXT, &["9999900", "-100", "0"])
        .note("a negative scale: the narrowest decimal that holds every value"),
    sample("numeric(3,5)", "decimal128(5, 5)", TEXT, &["0.00999", "-0.00001", "0"])
        .note("a scale above the precision: likewise"),
    sample(
        "numeric(77,1)",
        "string",
        TEXT,
        &["1.0", "-9999999999999999999999999999999999999999999999999999999999999999999999999999.9"],
    )
    .note("beyond 76 digits"),
    sample("numeric(1000,0)", "string", TEXT, &["0", "('9' || repeat('8', 999))::numeric"]),
    sample(
        "numeric",
        "string",
        TEXT,
        &[
            "0",
            "1.10",
            "-1e-40",
            "1e60",
            "'NaN'",
            "'Infinity'",
            "'-Infinity'",
            "repeat('7', 131072)::numeric",
        ],
    )
    .note("without a precision; `--decimal` makes it a decimal"),
    sample(
        "money",
        "string",
        TEXT,
        &["'0'", "'-12.34'", "'-92233720368547758.08'", "'92233720368547758.07'"],
    ),
    sample(
        "date",
        "date32[day]",
        DAYS,
        &[
            "'1970-01-01'",
            "'1969-12-31'",
            "'4713-01-01 BC'",
            "'5874897-12-31'",
            "'2000-02-29'",
            "'0001-01-01'",
        ],
    )
    .pyarrow_only(),
    sample("time", "time64[us]", MICROSECONDS, &["'00:00'", "'23:59:59.999999'", "'12:00:00.5'"]),
    sample("time(0)", "time64[us]", MICROSECONDS, &["'00:00:01'", "'23:59:59'"]),
    sample("timetz", "string", TEXT, &["'00:00+15:59'", "'23:59:59.999999-15:59'", "'24:00+00'"]),
    sample(
        "timestamp",
        "timestamp[us]",
        MICROSECONDS,
        &[
            "'1970-01-01'",
            "'1969-12-31 23:59:59.999999'",
            "'4713-01-01 BC'",
            "'294246-12-31 23:59:59.999999'",
            "'2016-12-31 23:59:60'",
            "'2026-11-30 24:00'",
        ],
    )
    .note("a second 60 and a 24:00 are the next minute and day to the server itself"),
    sample("timestamp(0)", "timestamp[us]", MICROSECONDS, &["'2026-11-30 09:15:00'"]),
    sample(
        "timestamptz",
        "timestamp[us, tz=UTC]",
        MICROSECONDS,
        &[
            "'1970-01-01Z'",
            "'4713-01-01Z BC'",
            "'294246-12-31 23:59:59.999999Z'",
            "'2026-03-29 02:30:00.123456+02'",
            "'2026-10-25 02:30:00 Europe/Berlin'",
        ],
    ),
    sample(
        "timestamptz(3)",
        "timestamp[us, tz=UTC]",
        MICROSECONDS,
        &["'2026-11-30 09:15:00.123Z'"],
    ),
    sample(
        "interval",
        "string",
        TEXT,
        &[
            "'1 year 2 months -3 days 04:05:06.789'",
            "'0'",
            "'-178000000 years'",
            "'-0.000001 s'",
            "'2147483647 days'",
        ],
    )
    .note("in ISO 8601"),
    sample(
        "uuid",
        "extension<arrow.uuid>",
        TEXT,
        &[
            "'00000000-0000-0000-0000-000000000000'",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
            "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
        ],
    ),
    sample("json", JSON, TEXT, &["'{\"b\": 1,  \"a\": [null]}'", "'null'", "'\"é\"'", "'1.10'"])
        .note("as it was written"),
    sample(
        "jsonb",
        JSON,
        TEXT,
        &[
            "'{\"b\": 1,  \"a\": [null]}'",
            "'1e5'",
            "'\"\\u0001\"'",
            "to_jsonb(repeat('é', 524288))",
        ],
    ),
    sample(
        "bytea",
        "binary",
        HEXADECIMAL,
        &["''", "'\\x00ff5c270a'", "decode(repeat('00ff', 524288), 'hex')"],
    ),
    sample(
        "text",
        "string",
        TEXT,
        &[
            "''",
            "' '",
            "'it''s \"x\" \\ é 名 🌊 \\N'",
            "E'a\\tb\\r\\nc'",
            "'NULL'",
            "U&'e\\0301'",
            "U&'\\05D0\\05D1\\202Ex'",
            "U&'\\FFFF\\+10FFFF'",
            "'👩‍👩‍👧'",
            "U&'\\0001\\007F\\0085'",
            "repeat('ü', 524288)",
        ],
    ),
    sample("varchar(10)", "string", TEXT, &["''", "'0123456789'"]),
    sample("char(4)", "string", PADDED, &["'ab'", "''", "'abcd'"]).note("keeps its padding"),
    sample("\"char\"", "string", TEXT, &["'a'"]),
    sample("name", "string", TEXT, &["'a name'", "''"]),
    sample("citext", "string", TEXT, &["'MiXed'"]),
    sample("inet", "string", TEXT, &["'10.0.0.1/8'", "'192.168.1.1'", "'::1'"]),
    sample("cidr", "string", TEXT, &["'10.0.0.0/8'", "'0.0.0.0/0'"]),
    sample("macaddr", "string", TEXT, &["'08:00:2b:01:02:03'"]),
    sample("macaddr8", "string", TEXT, &["'08:00:2b:01:02:03:04:05'"]),
    sample("bit(4)", "string", TEXT, &["'1010'", "'0000'"]),
    sample("varbit", "string", TEXT, &["''", "'10111'"]),
    sample("xml", "string", TEXT, &["'<a>é</a>'"]),
    sample("point", "string", TEXT, &["'(1.5,-2)'", "'(NaN,Infinity)'"])
        .note("and the other shapes"),
    sample("line", "string", TEXT, &["'{1,-1,0}'"]),
    sample("lseg", "string", TEXT, &["'[(0,0),(1,1)]'"]),
    sample("box", "string", TEXT, &["'(1,1),(0,0)'"]),
    sample("path", "string", TEXT, &["'((0,0),(1,1))'", "'[(0,0)]'"]),
    sample("polygon", "string", TEXT, &["'((0,0),(1,1),(2,0.1))'"]),
    sample("circle", "string", TEXT, &["'<(0,0),1.5>'"]),
    sample("pg_lsn", "string", TEXT, &["'16/B374D848'", "'0/0'", "'FFFFFFFF/FFFFFFFF'"]),
    sample("tsvector", "string", TEXT, &["'a:1 b:2'", "''"]),
    sample("tsquery", "string", TEXT, &["'a & b'"]),
    sample("jsonpath", "string", TEXT, &["'$.\"a\"[*]'"]),
    sample("tid", "string", TEXT, &["'(1,2)'"]),
    sample("regclass", "string", TEXT, &["'pg_class'"]),
    sample(
        "integer[]",
        JSON,
        PARTS,
        &[
            "'{}'",
            "'{1,NULL,3}'",
            "'{{1,2},{3,4}}'",
            "'{{{1},{NULL}},{{3},{4}}}'",
            "'[0:1]={5,6}'",
            "'{NULL}'",
        ],
    )
    .note("of any number of dimensions, as JSON"),
    sample(
        "text[]",
        JSON,
        PARTS,
        &["'{a,\"b c\",NULL,\"NULL\",\"\",\"é \\\"q\\\" \\\\\"}'", "'{}'"],
    ),
    sample("numeric[]", JSON, PARTS, &["'{1.10,-1e-40,1e60}'"]),
    sample("timestamptz[]", JSON, PARTS, &["'{2026-11-30 09:15:00.5Z,NULL}'"]),
    sample("jsonb[]", JSON, PARTS, &["ARRAY['{\"a\": [1]}', 'null']::jsonb[]"]),
    sample("pair", JSON, PARTS, &["'(1,\"a b\")'", "'(,)'", "'(0,\"\")'"])
        .note("a composite type, as JSON"),
    sample(
        "nested",
        JSON,
        PARTS,
        &[
            "ROW(ROW(1, 'x')::pair, ARRAY[1, NULL], '2026-11-30Z')::nested",
            "ROW(NULL, '{}', NULL)::nested",
        ],
    ),
    sample("pair[]", JSON, PARTS, &["ARRAY[ROW(1, 'a')::pair, NULL, ROW(NULL, NULL)::pair]"]),
    sample("hstore", JSON, PARTS, &["'a=>1, \"b c\"=>NULL'", "''"]).note("as JSON"),
    sample("int4range", "string", TEXT, &["'[1,5)'", "'empty'", "'(,)'", "'(,5]'"]),
    sample("numrange", "string", TEXT, &["'[1.10,2.5)'", "'empty'"]),
    sample(
        "tstzrange",
        "string",
        TEXT,
        &["'[2026-01-01Z,2026-02-01Z)'", "'empty'", "'[2026-01-01Z,infinity)'"],
    ),
    sample("int4multirange", "string", TEXT, &["'{[1,3),[5,9)}'", "'{}'", "'{(,)}'"]),
    sample("mood", "string", TEXT, &["'sad'", "'it''s ok'", "'Ünï 🌊'"]).note("an enum"),
    sample("positive", "int32", TEXT, &["1", "2147483647"]).note("a domain: as its base"),
    sample("cents", "decimal128(10, 2)", TEXT, &["0.01", "-12.50"]),
    sample("small", "decimal128(10, 2)", TEXT, &["99.99"]).note("a domain over a domain"),
    sample("word", "string", TEXT, &["''", "'x'"]),
    sample("words", JSON, PARTS, &["'{a,NULL}'"]),
];

/// Values that do not fit.
pub(crate) const ODD: &[Odd] = &[
    odd("numeric(10,2)", "'NaN'", "", Null("special_number")),
    odd("numeric(10,2)", "'NaN'", "--on-special-number null", Null("special_number")),
    odd("numeric(10,2)", "'NaN'", "--on-special-number text", Text("NaN", None)),
    odd("numeric(10,2)", "1.5", "--on-special-number text", Text("1.50", None)),
    odd(
        "numeric(10,2)",
        "'NaN'",
        "--on-special-number fail",
        Error("a number is NaN or infinite", "--on-special-number null"),
    ),
    odd("numeric", "'Infinity'", "", Text("Infinity", None)),
    odd("numeric", "'-Infinity'", "--on-special-number null", Null("special_number")),
    odd(
        "numeric",
        "'NaN'",
        "--on-special-number fail",
        Error("a number is NaN or infinite", "--on-special-number null"),
    ),
    odd("real", "'NaN'", "--on-special-number null", Null("special_number")),
    odd("double precision", "'Infinity'", "--on-special-number null", Null("special_number")),
    odd(
        "double precision",
        "'NaN'",
        "--on-special-number fail",
        Error("a number is NaN or infinite", "--on-special-number"),
    ),
    odd("date", "'infinity'", "", Null("infinite_time")),
    odd(
        "date",
        "'-infinity'",
        "--on-infinite-time clamp",
        Text("-2147483648", Some("infinite_time")),
    ),
    odd("date", "'infinity'", "--on-infinite-time text", Text("infinity", None)),
    odd("date", "'2026-11-30'", "--on-infinite-time text", Text("2026-11-30", None)),
    odd(
        "date",
        "'infinity'",
        "--on-infinite-time fail",
        Error("a time is infinite or beyond the range", "--on-infinite-time null"),
    ),
    odd("timestamp", "'infinity'", "", Null("infinite_time")),
    odd("timestamp", "'294276-12-31 23:59:59.999999'", "", Null("infinite_time")),
    odd(
        "timestamp",
        "'294276-12-31 23:59:59.999999'",
        "--on-infinite-time text",
        Text("294276-12-31 23:59:59.999999", None),
    ),
    odd(
        "timestamp",
        "'infinity'",
        "--on-infinite-time clamp",
        Text("9223372036854775807", Some("infinite_time")),
    ),
    odd("timestamptz", "'-infinity'", "", Null("infinite_time")),
    odd(
        "timestamptz",
        "'-infinity'",
        "--on-infinite-time clamp",
        Text("-9223372036854775808", Some("infinite_time")),
    ),
    odd("timestamptz", "'-infinity'", "--on-infinite-time text", Text("-infinity", None)),
    odd(
        "timestamptz",
        "'-infinity'",
        "--on-infinite-time fail",
        Error("a time is infinite or beyond the range", "--on-infinite-time null"),
    ),
    odd("time", "'24:00'", "", Null("infinite_time")),
    odd("time", "'24:00'", "--on-infinite-time text", Text("24:00:00", None)),
    odd("numeric", "1.5", "--decimal {c}:12,3", Text("1.500", None)),
    odd(
        "numeric",
        "1.23456",
        "--decimal {c}:12,3",
        Error("1.23456 does not fit Decimal128(12, 3)", ""),
    ),
    odd("numeric", "1e20", "--decimal {c}:12,3", Error("100000000000000000000 does not fit", "")),
    odd("bigint", "12", "--decimal {c}:12,3", Text("12.000", None)),
    odd("numeric(77,1)", "-12.3", "--decimal {c}:76,2", Text("-12.30", None)),
    odd(
        "timestamptz",
        "'2026-11-30 09:15Z'",
        "--type-cast {c}:text",
        Text("2026-11-30 09:15:00+00", None),
    ),
    odd("bytea", "'\\x00ff'", "--type-cast {c}:text", Text("\\x00ff", None)),
    odd("integer[]", "'{{1,2},{3,NULL}}'", "--type-cast {c}:text", Text("{{1,2},{3,NULL}}", None)),
    odd("double precision", "0.1", "--type-cast {c}:text", Text("0.1", None)),
    odd("text", "'42'", "--type-cast {c}:int64", Text("42", None)),
];
