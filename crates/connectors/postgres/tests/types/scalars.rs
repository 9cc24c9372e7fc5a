//! Every scalar type, in its own form and as text.

use arrow::array::Array;
use arrow::datatypes::{DataType, Field};
use tidelake_model::TableRead;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::common::{Database, collect, split, table, whole};
use crate::printed::same;
use crate::samples::{SAMPLES, TYPES};

/// Makes the server print as the source's sessions do.
pub(crate) const PRINTING: &str = "SET TimeZone = 'UTC'; SET IntervalStyle = 'iso_8601'; \
    SET DateStyle = 'ISO'; SET extra_float_digits = 3; SET bytea_output = 'hex'; \
    SET search_path = pg_catalog";

/// The one column of a query, as the server prints it.
pub(crate) async fn printed(client: &Client, statement: &str) -> Vec<Option<String>> {
    let answer = client.simple_query(statement).await;
    let answer = answer.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    answer
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
            _ => None,
        })
        .collect()
}

/// The column read as text.
pub(crate) fn as_text(read: TableRead, name: &str) -> TableRead {
    let columns = read.columns.into_iter().map(|mut column| {
        if column.name() == name {
            column.field = Field::new(name, DataType::Utf8, true);
            column.chosen = true;
        }
        column
    });
    TableRead { columns: columns.collect(), ..read }
}

#[tokio::test]
async fn every_scalar_type_is_what_the_server_prints() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    client.batch_execute(TYPES).await.unwrap();
    let printer = database.client().await;
    printer.batch_execute(PRINTING).await.unwrap();
    let source = database.source().await;
    let mut failures = vec![];
    // The server's text of a blank-padded type is without its padding.
    let padded = ("bpchar", "char(4)", &["a", "", "名"] as &[&str]);
    for (name, declared, values) in SAMPLES.iter().copied().chain([padded]) {
        let mut rows: Vec<_> =
            values.iter().map(|value| format!("('{}')", value.replace('\'', "''"))).collect();
        rows.push("(NULL)".to_owned());
        let statements = format!(
            "CREATE TABLE \"t {name}\" (n serial, v {declared}); INSERT INTO \"t {name}\" (v) VALUES {}",
            rows.join(", ")
        );
        client.batch_execute(&statements).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let found = table(&source, &format!("t {name}")).await;
        assert_eq!(found.columns[1].warning, None, "{name}");
        let text = if declared.starts_with("char(") { "rpad(v::text, 4)" } else { "v::text" };
        let statement = format!("SELECT {text} FROM public.\"t {name}\" ORDER BY n");
        let printed = printed(&printer, &statement).await;
        for read in [whole(&found), as_text(whole(&found), "v")] {
            let slices = split(&source, read, 1).await;
            let batches = match collect(&source, &slices).await {
                Ok(batches) => batches,
                Err(error) => {
                    failures.push(format!("{name}: {error:?}"));
                    continue;
                }
            };
            let column = batches[0].column(1);
            assert_eq!(printed.len(), column.len(), "{name}");
            for (row, text) in printed.iter().enumerate() {
                let fits = match text {
                    None => column.is_null(row),
                    Some(text) => !column.is_null(row) && same(column, row, text),
                };
                if !fits {
                    let shown = arrow::util::display::array_value_to_string(column, row);
                    failures
                        .push(format!("{name}: the server prints {text:?}, read was {shown:?}"));
                }
            }
        }
    }
    database.drop_now().await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
