//! The page of types, made from the samples and from what the reader saw.

use std::fs;
use std::path::Path;

use crate::bench::{Bench, Database, Found, column};
use crate::mysql_database::Server;
use crate::sample::{Becomes, Odd, Sample};
use crate::terminal::Desk;
use crate::{mysql, mysql_table, postgres, postgres_table, sqlite, sqlite_table};

const INTRODUCTION: &str = "\
# Types, seen by another reader

Made by the tests in `crates/cli/tests/types`; `TIDELAKE_UPDATE=1` writes it anew. Each line
was a column of a real database, which the program wrote and pyarrow and DuckDB read back, each
value compared with the text that the database itself prints: lowest and highest, zero,
negative, NULL, empty, a megabyte, odd unicode. What the policies mean is in the
[guide](guides/types.md).

A value that its column's type in the lake cannot hold follows a policy of the sync. What
became NULL or another value is counted by column, in the result of the run, in the manifest
and in `tidelake status --output json`; what fails names table, column and value. Dates and
times are shown as the count that the file holds.
";

/// A cell of a table in Markdown.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|")
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", cell(text)) }
}

/// What pyarrow says of a logical type, in fewer words.
fn logical(text: &str) -> String {
    let is_not_said = |part: &str| {
        ["is_from_converted_type=", "force_set_converted_type="]
            .iter()
            .any(|name| part.trim().starts_with(name))
    };
    let parts: Vec<_> =
        text.trim_end_matches(')').split(',').filter(|part| !is_not_said(part)).collect();
    let text = parts.join(",");
    if text.contains('(') { format!("{text})") } else { text }
}

fn types(samples: &[Sample], found: &Found) -> String {
    let mut text = "| type | Arrow | Parquet | |\n|---|---|---|---|\n".to_owned();
    for (number, sample) in samples.iter().enumerate() {
        let seen = &found[&column(number)];
        let part = |name: &str| seen[name].as_str().unwrap();
        let logical = logical(part("logical"));
        let parquet = match logical.as_str() {
            "" => part("physical").to_owned(),
            logical => format!("{}, {logical}", part("physical")),
        };
        let kind = if sample.kind.is_empty() { "—".to_owned() } else { code(sample.kind) };
        text.push_str(&format!(
            "| {kind} | {} | {} | {} |\n",
            cell(part("arrow")),
            cell(&parquet),
            cell(sample.note)
        ));
    }
    text
}

fn odd_values(odd_values: &[Odd]) -> String {
    let mut text =
        "| value | in | option | becomes | counted as |\n|---|---|---|---|---|\n".to_owned();
    for odd in odd_values {
        let (becomes, counted) = match odd.becomes {
            Becomes::Text(value, count) => (code(value), count),
            Becomes::Null(count) => ("NULL".to_owned(), Some(count)),
            Becomes::Error(message, _) => (format!("an error: {}", cell(message)), None),
        };
        let counted = counted.map(|name| code(&format!("{name}:COLUMN"))).unwrap_or_default();
        text.push_str(&format!(
            "| {} | {} | {} | {becomes} | {counted} |\n",
            code(odd.value),
            code(odd.kind),
            code(&odd.options.replace("{c}", "TABLE:COLUMN")),
        ));
    }
    text
}

fn chapter(
    name: &str,
    (desk, database): (Desk, &dyn Database),
    samples: &[Sample],
    odd: &[Odd],
) -> String {
    let bench = Bench { desk, database };
    bench.fill(samples);
    format!(
        "\n## {name}\n\n{}\n### Values that do not fit\n\n{}",
        types(samples, &bench.samples()),
        odd_values(odd)
    )
}

#[test]
fn the_page_says_what_was_seen() {
    let (
        Some((sqlite_desk, sqlite)),
        Some((postgres_desk, postgres)),
        Some((mariadb_desk, mariadb)),
    ) = (sqlite::sqlite(), postgres::postgres(), mysql::mysql(Server::MariaDb))
    else {
        return;
    };
    let page = [
        INTRODUCTION.to_owned(),
        chapter(
            "PostgreSQL",
            (postgres_desk, &postgres),
            postgres_table::SAMPLES,
            postgres_table::ODD,
        ),
        chapter(
            "MySQL and MariaDB",
            (mariadb_desk, &mariadb),
            &mysql::samples(Server::MariaDb),
            mysql_table::ODD,
        ),
        chapter("SQLite", (sqlite_desk, &sqlite), sqlite_table::SAMPLES, sqlite_table::ODD),
    ]
    .concat();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/types.md");
    if std::env::var_os("TIDELAKE_UPDATE").is_some_and(|on| on == "1") {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(page.lines()).find(|(written, seen)| written != seen);
    assert!(
        written == page,
        "docs/types.md is not what was seen, write it anew with TIDELAKE_UPDATE=1: {differs:?}"
    );
}
