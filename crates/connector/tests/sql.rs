//! The statements that all SQL sources share, judged by a real SQL engine.

// Helpers of tests may stop at the first surprise, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use proptest::prelude::*;
use rusqlite::Connection;
use tidelake_connector::memory::column;
use tidelake_connector::sql::{
    Dialect, check, cursor_expression, order_by, qualified, quote_ansi, quote_text,
    range_condition, select, window_where,
};
use tidelake_model::{Column, CursorRead, ErrorKind, Policies, TableName, TableRead};
use tidelake_watermark::{Bound, Cursor, Kind, Position, Range, Value};

/// Names in double quotes, texts in single ones, numbers as they are.
struct Ansi {
    row_values: bool,
}

impl Dialect for Ansi {
    fn quote(&self, name: &str) -> String {
        quote_ansi(name)
    }

    fn literal(&self, value: &Value) -> String {
        match value {
            Value::Integer(number) => format!("CAST({number} AS INTEGER)"),
            other => quote_text(&other.to_string()),
        }
    }

    fn row_values(&self) -> bool {
        self.row_values
    }
}

const ANSI: Ansi = Ansi { row_values: true };

fn integer(name: &str) -> Column {
    column(name, arrow::datatypes::DataType::Int64, true).unwrap()
}

fn read(cursor: Option<CursorRead>, range: Option<Range>, null_cursors: bool) -> TableRead {
    TableRead {
        table: TableName::new("main", "t"),
        columns: vec![integer("id"), integer("a"), integer("b")],
        cursor,
        range,
        null_cursors,
        policies: Policies::default(),
        batch_bytes: 1 << 20,
    }
}

fn single(name: &str, kind: Kind) -> CursorRead {
    CursorRead { cursor: Cursor::Single(name.to_owned()), kinds: vec![kind] }
}

fn both(composite: bool) -> CursorRead {
    let names = vec!["a".to_owned(), "b".to_owned()];
    if composite {
        let kinds = vec![Kind::Integer; 2];
        CursorRead { cursor: Cursor::Composite(names), kinds }
    } else {
        CursorRead { cursor: Cursor::Fallback(names), kinds: vec![Kind::Integer] }
    }
}

// ---- Golden statements. ----

fn range(low: Option<(Position, bool)>, high: Option<(Position, bool)>) -> Range {
    let bound = |(at, inclusive)| Bound { at, inclusive };
    Range { low: low.map(bound), high: high.map(bound) }
}

fn at(number: i128) -> Position {
    Value::Integer(number).into()
}

#[test]
fn a_window_is_written_by_its_bounds_and_by_what_becomes_of_nulls() {
    let low = || Some((at(1), false));
    let high = || Some((at(2), true));
    let one = r#""a" > CAST(1 AS INTEGER)"#;
    let two = r#""a" <= CAST(2 AS INTEGER)"#;
    for (range, null_cursors, wanted) in [
        (None, true, None),
        (None, false, Some(r#""a" IS NOT NULL"#.to_owned())),
        (Some(range(None, None)), true, None),
        (Some(range(None, None)), false, Some(r#""a" IS NOT NULL"#.to_owned())),
        (Some(range(low(), high())), false, Some(format!("{one} AND {two}"))),
        (Some(range(low(), high())), true, Some(format!(r#"(({one} AND {two}) OR "a" IS NULL)"#))),
        (Some(range(None, high())), false, Some(two.to_owned())),
        (Some(range(None, high())), true, Some(format!(r#"(({two}) OR "a" IS NULL)"#))),
        (Some(range(low(), None)), false, Some(one.to_owned())),
        (
            Some(range(Some((at(1), true)), Some((at(2), false)))),
            false,
            Some(r#""a" >= CAST(1 AS INTEGER) AND "a" < CAST(2 AS INTEGER)"#.to_owned()),
        ),
    ] {
        let read = read(Some(single("a", Kind::Integer)), range, null_cursors);
        assert_eq!(window_where(&ANSI, &read), wanted, "{read:?}");
    }
    assert_eq!(window_where(&ANSI, &read(None, None, false)), None);
}

#[test]
fn cursors_of_several_columns_are_expressions() {
    assert_eq!(cursor_expression(&ANSI, &both(false)), r#"coalesce("a", "b")"#);
    assert_eq!(cursor_expression(&ANSI, &both(true)), r#"("a", "b")"#);
    assert_eq!(order_by(&ANSI, &both(true), "DESC"), r#""a" DESC, "b" DESC"#);
    assert_eq!(order_by(&ANSI, &both(false), "DESC"), r#"coalesce("a", "b") DESC"#);
    let tuple = Position::tuple([Value::Integer(1), Value::Integer(2)]).unwrap();
    let above = range(Some((tuple, false)), None);
    assert_eq!(
        range_condition(&ANSI, &both(true), &above).unwrap(),
        r#"("a", "b") > (CAST(1 AS INTEGER), CAST(2 AS INTEGER)) AND ("a" IS NOT NULL AND "b" IS NOT NULL)"#
    );
    assert_eq!(
        range_condition(&Ansi { row_values: false }, &both(true), &above).unwrap(),
        r#"("a" > CAST(1 AS INTEGER) OR ("a" = CAST(1 AS INTEGER) AND "b" > CAST(2 AS INTEGER))) AND ("a" IS NOT NULL AND "b" IS NOT NULL)"#
    );
}

#[test]
fn a_select_keeps_its_conditions_apart() {
    let window = Some(range(Some((at(1), false)), None));
    let read = read(Some(single("a", Kind::Integer)), window, true);
    let name = |column: &Column| quote_ansi(column.name());
    assert_eq!(
        select(&ANSI, &read, name, Some("1 = 1 OR 2 = 2")),
        r#"SELECT "id", "a", "b" FROM "main"."t" WHERE ((("a" > CAST(1 AS INTEGER)) OR "a" IS NULL)) AND (1 = 1 OR 2 = 2)"#
    );
}

#[test]
fn a_read_that_no_statement_can_express_is_refused() {
    let window = || Some(range(Some((at(1), false)), None));
    let text = Position::from(Value::Text("x".to_owned()));
    let refused = [
        read(None, window(), false),
        read(Some(single("missing", Kind::Integer)), window(), false),
        read(Some(single("a", Kind::Timestamp)), window(), false),
        read(Some(both(true)), window(), false),
        read(Some(single("a", Kind::Integer)), Some(range(None, Some((text, true)))), false),
        read(Some(CursorRead { kinds: vec![], ..single("a", Kind::Integer) }), None, false),
    ];
    for read in refused {
        let error = check(&read).expect_err("a read that no statement can express");
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
    for accepted in [
        read(None, None, false),
        read(None, Some(Range::default()), false),
        read(Some(single("a", Kind::Integer)), window(), true),
        read(Some(both(false)), window(), true),
    ] {
        check(&accepted).unwrap();
    }
}

// ---- A statement means what the algebra means. ----

type TestRow = (Option<i64>, Option<i64>);

fn position(cursor: &CursorRead, (a, b): TestRow) -> Option<Position> {
    let value = |number: i64| Value::Integer(number.into());
    match &cursor.cursor {
        Cursor::Single(_) => a.map(|a| value(a).into()),
        Cursor::Fallback(_) => a.or(b).map(|found| value(found).into()),
        Cursor::Composite(_) => Position::tuple([value(a?), value(b?)]),
    }
}

fn rows() -> impl Strategy<Value = Vec<TestRow>> {
    let cell = || prop::option::weighted(0.8, -3i64..4);
    prop::collection::vec((cell(), cell()), 0..12)
}

fn cursors() -> impl Strategy<Value = CursorRead> {
    prop_oneof![Just(single("a", Kind::Integer)), Just(both(false)), Just(both(true))]
}

/// A cursor with a range of its shape.
fn cursors_with_ranges() -> impl Strategy<Value = (CursorRead, Option<Range>)> {
    let end = || prop::option::of(((-4i128..5, -4i128..5), any::<bool>()));
    (cursors(), prop::option::weighted(0.8, (end(), end()))).prop_map(|(cursor, ends)| {
        let composite = cursor.kinds.len() > 1;
        let bound = |((first, second), inclusive)| {
            let values = [Value::Integer(first), Value::Integer(second)];
            let count = if composite { 2 } else { 1 };
            (Position::tuple(values.into_iter().take(count)).unwrap(), inclusive)
        };
        (cursor, ends.map(|(low, high)| range(low.map(bound), high.map(bound))))
    })
}

proptest! {
    #[test]
    fn a_statement_takes_the_rows_that_the_range_contains(
        rows in rows(),
        (cursor, range) in cursors_with_ranges(),
        null_cursors: bool,
        row_values: bool,
        halves in prop::option::of(0i64..2),
    ) {
        let database = Connection::open_in_memory().unwrap();
        database.execute("CREATE TABLE t (id INTEGER, a INTEGER, b INTEGER)", ()).unwrap();
        for (id, (a, b)) in (0i64..).zip(&rows) {
            database.execute("INSERT INTO t VALUES (?, ?, ?)", (id, a, b)).unwrap();
        }
        let read = read(Some(cursor.clone()), range.clone(), null_cursors);
        check(&read).unwrap();
        // A second condition that would leak if it were not kept apart.
        let extra = halves.map(|half| format!("id % 2 = {half} OR 1 = 0"));
        let name = |column: &Column| quote_ansi(column.name());
        let text = select(&Ansi { row_values }, &read, name, extra.as_deref());
        let mut statement = database.prepare(&format!("{text} ORDER BY id")).unwrap();
        let found: Vec<i64> =
            statement.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();

        let range = range.unwrap_or_default();
        let wanted: Vec<i64> = (0i64..)
            .zip(&rows)
            .filter(|(id, _)| halves.is_none_or(|half| id % 2 == half))
            .filter(|(_, row)| match position(&cursor, **row) {
                None => null_cursors,
                Some(at) => range.contains(&at).unwrap(),
            })
            .map(|(id, _)| id)
            .collect();
        prop_assert_eq!(found, wanted, "{}", text);
    }

    #[test]
    fn both_spellings_of_a_tuple_comparison_agree(
        rows in rows(),
        (cursor, range) in cursors_with_ranges(),
    ) {
        let range = range.unwrap_or_default();
        let database = Connection::open_in_memory().unwrap();
        let count = |row_values| -> Vec<bool> {
            let condition = range_condition(&Ansi { row_values }, &cursor, &range);
            let condition = condition.unwrap_or_else(|| "1 = 1".to_owned());
            let text = format!("SELECT coalesce(({condition}), 0) FROM (SELECT ? AS a, ? AS b)");
            let mut statement = database.prepare(&text).unwrap();
            rows.iter().map(|(a, b)| statement.query_row((a, b), |row| row.get(0)).unwrap()).collect()
        };
        prop_assert_eq!(count(true), count(false));
    }
}

// ---- Nothing breaks out of its quotes. ----

/// Text made of what ends quotes, escapes, comments and statements somewhere.
fn hostile() -> impl Strategy<Value = String> {
    let characters = [
        '\'', '"', '`', '\\', ';', '-', '/', '*', '\n', '\r', '\0', '(', ')', ',', '.', '%', '$',
        '?', ':', '[', ']', ' ', 'a', 'Z', '0', '名', '\u{301}', '\u{2019}', '\u{ff07}',
    ];
    let chosen = prop::collection::vec(prop::sample::select(characters.to_vec()), 0..16);
    prop_oneof![chosen.prop_map(String::from_iter), any::<String>()]
}

fn named() -> impl Strategy<Value = String> {
    hostile().prop_filter("a name is not empty", |name| !name.is_empty())
}

#[derive(Debug, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    Other(char),
}

/// What a server makes of a statement; `None` where a quote is never closed.
fn tokens(statement: &str) -> Option<Vec<Token>> {
    let mut tokens = vec![];
    let mut rest = statement.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '"' && character != '\'' {
            tokens.push(Token::Other(character));
            continue;
        }
        let mut content = String::new();
        loop {
            let next = rest.next()?;
            if next != character {
                content.push(next);
            } else if rest.next_if_eq(&character).is_some() {
                content.push(character);
            } else {
                break;
            }
        }
        let quoted = if character == '"' { Token::Name } else { Token::Text };
        tokens.push(quoted(content));
    }
    Some(tokens)
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i32>().prop_map(|days| Value::Date(days.into())),
        any::<i64>().prop_map(|nanos| Value::Datetime(nanos.into())),
        any::<i64>().prop_map(|nanos| Value::Timestamp(nanos.into())),
        any::<i128>().prop_map(Value::Integer),
        "-?[0-9]{1,40}\\.[0-9]{1,20}".prop_map(|text| Value::parse(Kind::Number, &text).unwrap()),
        hostile().prop_map(Value::Text),
        any::<Vec<u8>>().prop_map(Value::Binary),
    ]
}

proptest! {
    #[test]
    fn no_name_or_text_ends_its_own_quotes(
        schema in named(), table in named(), cursor in named(), text in hostile(),
    ) {
        let bound = Some((Value::Text(text.clone()).into(), false));
        let read = TableRead {
            table: TableName::new(&*schema, &*table),
            columns: vec![],
            cursor: Some(single(&cursor, Kind::Text)),
            range: Some(range(bound, None)),
            ..read(None, None, true)
        };
        let statement = select(&ANSI, &read, |_| String::new(), None);
        let found = tokens(&statement);
        prop_assert!(found.is_some(), "a quote is left open in {}", statement);
        let quoted: Vec<_> =
            found.unwrap().into_iter().filter(|token| !matches!(token, Token::Other(_))).collect();
        let name = |text: &str| Token::Name(text.to_owned());
        let wanted =
            vec![name(&schema), name(&table), name(&cursor), Token::Text(text), name(&cursor)];
        prop_assert_eq!(quoted, wanted);
    }

    #[test]
    fn a_literal_is_one_token_that_reads_back_as_the_value(value in any_value()) {
        let literal = ANSI.literal(&value);
        match &value {
            Value::Integer(number) => {
                prop_assert_eq!(literal, format!("CAST({number} AS INTEGER)"));
            }
            _ => {
                let found = tokens(&literal).unwrap();
                let [Token::Text(text)] = found.as_slice() else {
                    return Err(TestCaseError::fail(format!("{literal} is {found:?}")));
                };
                prop_assert_eq!(Value::parse(value.kind(), text).unwrap(), value);
            }
        }
    }

    #[test]
    fn a_server_reads_back_the_names_and_texts_that_were_meant(
        name in named(), text in hostile(),
    ) {
        // The engine ends a statement at a NUL, whatever quotes are open.
        let (name, text) = (name.replace('\0', "0"), text.replace('\0', "0"));
        let database = Connection::open_in_memory().unwrap();
        let table = qualified(&ANSI, &TableName::new("main", &*name));
        let created = database.execute(&format!("CREATE TABLE {table} (a)"), ());
        if !name.to_lowercase().starts_with("sqlite_") {
            prop_assert!(created.is_ok(), "{:?}", created);
            let stored: String = database
                .query_row("SELECT name FROM sqlite_schema", (), |row| row.get(0))
                .unwrap();
            prop_assert_eq!(&stored, &name);
        }
        let select = format!("SELECT {} AS {}", quote_text(&text), quote_ansi(&name));
        let mut statement = database.prepare(&select).unwrap();
        prop_assert_eq!(statement.column_name(0).unwrap(), &name);
        let found: String = statement.query_row((), |row| row.get(0)).unwrap();
        prop_assert_eq!(found, text);
    }
}
