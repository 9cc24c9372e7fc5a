//! Types with their lowest, highest and oddest values, as plain data.

/// Name, type, values as literals.
pub(crate) type Sample = (&'static str, &'static str, &'static [&'static str]);

pub(crate) const SAMPLES: &[Sample] = &[
    ("bool", "boolean", &["true", "false"]),
    ("int2", "smallint", &["-32768", "32767", "0", "-1"]),
    ("int4", "integer", &["-2147483648", "2147483647", "0"]),
    ("int8", "bigint", &["-9223372036854775808", "9223372036854775807", "0"]),
    ("oid", "oid", &["0", "4294967295"]),
    ("xid8", "xid8", &["0", "18446744073709551615"]),
    (
        "float4",
        "real",
        &["0", "-0", "1.5", "3.4028235e38", "-1e-45", "NaN", "Infinity", "-Infinity", "0.1"],
    ),
    (
        "float8",
        "double precision",
        &["0", "-0", "1.7976931348623157e308", "-5e-324", "NaN", "Infinity", "-Infinity", "0.1"],
    ),
    (
        "n_15_2",
        "numeric(15,2)",
        &["0", "0.01", "-0.01", "9999999999999.99", "-9999999999999.99", "100"],
    ),
    (
        "n_38_10",
        "numeric(38,10)",
        &["9999999999999999999999999999.9999999999", "-0.0000000001", "12345678901234567890"],
    ),
    (
        "n_38_0",
        "numeric(38)",
        &["99999999999999999999999999999999999999", "-1", "10000", "20000000"],
    ),
    ("n_1_0", "numeric(1,0)", &["0", "9", "-9"]),
    ("n_4_0", "numeric(4,0)", &["2013", "-9999", "0"]),
    (
        "n_38_38",
        "numeric(38,38)",
        &["0.99999999999999999999999999999999999999", "-0.00000000000000000000000000000000000001"],
    ),
    (
        "n_76_76",
        "numeric(76,76)",
        &["0.9999999999999999999999999999999999999999999999999999999999999999999999999999", "0"],
    ),
    ("n_39_1", "numeric(39,1)", &["99999999999999999999999999999999999999.9", "-0.1"]),
    (
        "n_76_38",
        "numeric(76,38)",
        &["-99999999999999999999999999999999999999.99999999999999999999999999999999999999", "1"],
    ),
    (
        "n_77_0",
        "numeric(77,0)",
        &["1", "-99999999999999999999999999999999999999999999999999999999999999999999999999999"],
    ),
    ("n_5_m2", "numeric(5,-2)", &["9999900", "-100", "0"]),
    ("n_3_5", "numeric(3,5)", &["0.00999", "-0.00001", "0"]),
    ("n_30_m40", "numeric(30,-40)", &["999999999999999999999999999999e40", "-1e40", "0"]),
    ("n_70_m10", "numeric(70,-10)", &["9e79", "-1e10"]),
    ("n_2_1000", "numeric(2,1000)", &["99e-1000", "0"]),
    (
        "n_free",
        "numeric",
        &["0", "1.10", "-1e-40", "1e60", "1e-16383", "-9e131000", "NaN", "Infinity", "-Infinity"],
    ),
    (
        "date",
        "date",
        &[
            "1970-01-01",
            "2000-01-01",
            "4714-11-24 BC",
            "0001-12-31 BC",
            "5874897-12-31",
            "1999-12-31",
        ],
    ),
    ("time", "time", &["00:00", "23:59:59.999999", "12:00:00.5"]),
    ("time0", "time(0)", &["00:00:01", "23:59:59"]),
    ("timetz", "timetz", &["00:00+15:59", "23:59:59.999999-15:59"]),
    (
        "ts",
        "timestamp",
        &[
            "1970-01-01",
            "4714-11-24 BC",
            "294246-12-31 23:59:59.999999",
            "1999-12-31 23:59:59.999999",
            "0044-03-15 12:00 BC",
        ],
    ),
    ("ts0", "timestamp(0)", &["2026-11-30 09:15:00"]),
    (
        "tstz",
        "timestamptz",
        &[
            "1970-01-01Z",
            "4714-11-24Z BC",
            "294246-12-31 23:59:59.999999Z",
            "2026-11-30 09:15:00.123456+02",
        ],
    ),
    ("tstz3", "timestamptz(3)", &["2026-11-30 09:15:00.123Z"]),
    (
        "interval",
        "interval",
        &["1 year 2 months -3 days 04:05:06.789", "0", "-178000000 years", "-0.000001 s"],
    ),
    (
        "uuid",
        "uuid",
        &[
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ],
    ),
    (
        "json",
        "json",
        &["{\"b\": 1,  \"a\": [null]}", "null", "\"é\"", "\"\\u0000\"", " 1e5 ", "{}"],
    ),
    ("jsonb", "jsonb", &["{\"b\": 1,  \"a\": [null]}", "1e5", "\"\\u0001\"", "{}"]),
    ("bytea", "bytea", &["", "\\x00ff5c27", "abc"]),
    (
        "text",
        "text",
        &[
            "",
            " ",
            "it's \"x\" \\ é 名 🌊 \\N",
            "a\tb\r\nc",
            "NULL",
            "\u{feff}\u{202e}e\u{301}\u{10ffff}\u{1}",
        ],
    ),
    ("varchar", "varchar(10)", &["", "0123456789", "🌊🌊🌊🌊🌊🌊🌊🌊🌊🌊"]),
    ("char1", "\"char\"", &["a", ""]),
    ("name", "name", &["a name"]),
    ("inet", "inet", &["10.0.0.1/8", "192.168.1.1", "::1", "0.0.0.0/0"]),
    ("cidr", "cidr", &["10.0.0.0/8", "2001:db8::/32"]),
    ("macaddr", "macaddr", &["08:00:2b:01:02:03"]),
    ("macaddr8", "macaddr8", &["08:00:2b:01:02:03:04:05"]),
    ("bit", "bit(4)", &["1010"]),
    ("varbit", "varbit", &["", "10111"]),
    ("xml", "xml", &["<a>é</a>", "", "<?xml version=\"1.0\"?><a/>"]),
    ("money", "money", &["0", "-12.34", "92233720368547758.07", "-92233720368547758.08"]),
    ("point", "point", &["(1.5,-2)"]),
    ("line", "line", &["{1,-1,0}"]),
    ("lseg", "lseg", &["[(0,0),(1,1)]"]),
    ("box", "box", &["(1,1),(0,0)"]),
    ("path", "path", &["((0,0),(1,1))", "[(0,0),(NaN,Infinity)]"]),
    ("circle", "circle", &["<(0,0),1.5>"]),
    ("polygon", "polygon", &["((0,0),(1,1),(2,0.1))"]),
    ("pg_lsn", "pg_lsn", &["16/B374D848"]),
    ("tsvector", "tsvector", &["'a':1 'b':2", ""]),
    ("tsquery", "tsquery", &["'a' & 'b'", ""]),
    ("jsonpath", "jsonpath", &["$.\"a\"[*]"]),
    ("tid", "tid", &["(1,2)"]),
    ("xid", "xid", &["0", "4294967295"]),
    ("cid", "cid", &["7"]),
    ("refcursor", "refcursor", &["a cursor"]),
    ("snapshot", "pg_snapshot", &["10:20:10,14"]),
    ("int2vector", "int2vector", &["1 2 3", ""]),
    ("oidvector", "oidvector", &["1 2 3"]),
    ("aclitem", "aclitem", &["pg_monitor=r/pg_monitor"]),
    ("regclass", "regclass", &["pg_class", "-"]),
    ("regtype", "regtype", &["integer", "timestamp with time zone"]),
    ("regproc", "regproc", &["now"]),
    ("regrole", "regrole", &["pg_monitor"]),
    ("regnamespace", "regnamespace", &["pg_catalog"]),
    ("range", "tstzrange", &["[2026-01-01,2026-02-01)", "empty", "(,)", "[-infinity,infinity]"]),
    ("int4range", "int4range", &["[1,5)", "(,-2147483647)", "[2147483646,2147483647)"]),
    ("numrange", "numrange", &["(1.10,NaN]", "[-1e-40,)"]),
    ("of ours", "spell", &["[a,\"b, c\")"]),
    ("multirange", "int4multirange", &["{[1,3),[5,9)}", "{}"]),
    ("mood", "mood", &["sad", "it's ok", "Sad", "名 🌊"]),
    ("positive", "positive", &["1", "2147483647"]),
    ("cents", "cents", &["0.01", "-12.50"]),
    ("deep", "deep", &["99.99"]),
];

pub(crate) const TYPES: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'it''s ok', 'Sad', '名 🌊');
    CREATE TYPE spell AS RANGE (subtype = text);
    CREATE TYPE pair AS (a integer, b text);
    CREATE DOMAIN positive AS integer CHECK (value > 0);
    CREATE DOMAIN cents AS numeric(10,2);
    CREATE DOMAIN deep AS cents;";

/// Columns of parts, with their JSON.
pub(crate) const PARTS: &[(&str, &[(&str, &str)])] = &[
    (
        "integer[]",
        &[
            ("{}", "[]"),
            ("{1,NULL,3}", "[1,null,3]"),
            ("{{1,2},{3,NULL}}", "[[1,2],[3,null]]"),
            ("{{{1}}}", "[[[1]]]"),
            ("[0:1]={5,6}", "[5,6]"),
        ],
    ),
    ("bigint[]", &[("{9223372036854775807}", "[9223372036854775807]")]),
    (
        "numeric[]",
        &[
            (
                "{1.10,NaN,-Infinity,1e40}",
                "[1.10,\"NaN\",\"-Infinity\",10000000000000000000000000000000000000000]",
            ),
            (
                "{-0.00000000000000000000000000000000000000001}",
                "[-0.00000000000000000000000000000000000000001]",
            ),
        ],
    ),
    ("real[]", &[("{0.1,NaN,Infinity,-0}", "[0.1,\"NaN\",\"Infinity\",-0]")]),
    ("boolean[]", &[("{t,f,NULL}", "[true,false,null]")]),
    (
        "text[]",
        &[
            ("{a,\"b c\",NULL,\"NULL\",\"\"}", r#"["a","b c",null,"NULL",""]"#),
            (r#"{"q\"\\",é名🌊}"#, r#"["q\"\\","é名🌊"]"#),
            ("{\"a\tb\nc\"}", r#"["a\tb\nc"]"#),
        ],
    ),
    ("char(3)[]", &[("{a}", r#"["a  "]"#)]),
    ("bytea[]", &[(r#"{"\\x00ff"}"#, r#"["\\x00ff"]"#)]),
    (
        "date[]",
        &[("{2026-11-30,infinity,0044-03-15 BC}", r#"["2026-11-30","infinity","0044-03-15 BC"]"#)],
    ),
    (
        "timestamptz[]",
        &[(
            "{2026-11-30 09:15:00.5+02,-infinity}",
            r#"["2026-11-30T07:15:00.5+00:00","-infinity"]"#,
        )],
    ),
    ("interval[]", &[("{1 mon}", r#"["P1M"]"#)]),
    (
        "uuid[]",
        &[(
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            r#"["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]"#,
        )],
    ),
    ("jsonb[]", &[(r#"{"{\"a\": [1.0]}",NULL}"#, r#"[{"a": [1.0]},null]"#)]),
    ("int4range[]", &[("{\"[1,5)\",empty}", r#"["[1,5)","empty"]"#)]),
    ("mood[]", &[("{sad,\"it's ok\"}", r#"["sad","it's ok"]"#)]),
    ("money[]", &[("{1}", r#"["$1.00"]"#)]),
    ("pair", &[("(1,\"a b\")", r#"{"a":1,"b":"a b"}"#), ("(,)", r#"{"a":null,"b":null}"#)]),
    ("pair[]", &[("{\"(1,x)\",NULL}", r#"[{"a":1,"b":"x"},null]"#)]),
    (
        "nest",
        &[(
            r#"("(1,""a, b"")","{1.50,2}",sad)"#,
            r#"{"p":{"a":1,"b":"a, b"},"Ns":[1.50,2],"m":"sad"}"#,
        )],
    ),
    ("numbers", &[("{1,2}", "[1,2]")]),
    ("couple", &[("(7,y)", r#"{"a":7,"b":"y"}"#)]),
    ("hstore", &[("a=>1, b=>NULL, \"c \\\"\"=>\"\"", r#"{"a": "1", "b": null, "c \"": ""}"#)]),
];

pub(crate) const PART_TYPES: &str = "
    CREATE EXTENSION hstore;
    CREATE TYPE nest AS (p pair, \"Ns\" numeric[], gone integer, m mood);
    ALTER TYPE nest DROP ATTRIBUTE gone;
    CREATE DOMAIN numbers AS integer[];
    CREATE DOMAIN couple AS pair;";
