//! Every type that the server knows, those of its extensions included.

use std::collections::BTreeSet;

use arrow::array::Array;

use crate::common::{Database, collect, split, table, whole};
use crate::printed::same;
use crate::scalars::{PRINTING, printed};

const EXTENSIONS: [&str; 6] = ["citext", "cube", "hstore", "isn", "ltree", "seg"];

/// Types that only statistics and indexes are made of.
const UNKNOWN: [&str; 9] = [
    "gtsvector",
    "pg_brin_bloom_summary",
    "pg_brin_minmax_multi_summary",
    "pg_dependencies",
    "pg_mcv_list",
    "pg_ndistinct",
    "pg_node_tree",
    "public.ghstore",
    "public.ltree_gist",
];

/// Makes a table with a column of each type that can have one, a row of NULLs and
/// a row of the first literal that the type takes.
const FILL: &str = r#"
CREATE TYPE mood AS ENUM ('sad', 'it''s ok');
CREATE TYPE pair AS (a integer, b text);
CREATE DOMAIN cents AS numeric(10,2);
CREATE DOMAIN pairs AS pair[];
DO $$
DECLARE
    kind record;
    literal text;
    held integer := 0;
    tables integer := 0;
BEGIN
    FOR kind IN
        SELECT t.oid, format_type(t.oid, NULL) AS name,
               (SELECT '(' || repeat(',', count(*)::int - 1) || ')' FROM pg_attribute a
                WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) AS row
        FROM pg_type t
        WHERE t.typtype <> 'p' AND (t.typrelid = 0 OR t.typtype = 'c')
          AND (t.typrelid = 0 OR (SELECT relkind FROM pg_class c WHERE c.oid = t.typrelid) = 'c'
               OR t.typrelid::int8 % 7 = 0)
        ORDER BY t.oid
    LOOP
        IF held % 120 = 0 THEN
            tables := tables + 1;
            EXECUTE format('CREATE TABLE public.types%s (n integer)', tables);
            EXECUTE format('INSERT INTO public.types%s VALUES (0), (1)', tables);
        END IF;
        BEGIN
            EXECUTE format('ALTER TABLE public.types%s ADD COLUMN c%s %s', tables, kind.oid, kind.name);
            held := held + 1;
        EXCEPTION WHEN OTHERS THEN CONTINUE;
        END;
        -- A domain may have a default.
        EXECUTE format('UPDATE public.types%s SET c%s = NULL', tables, kind.oid);
        FOREACH literal IN ARRAY ARRAY['1', kind.row, 'sad', '{1}', '{NULL}', '{}', '(1,2)', '((1,2),(3,4))',
            '<(1,2),3>', '{1,2,3}', '1.2.3.4', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', '1/2',
            '2026-11-30', '12:00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '[1,2)', '[2026-01-01,2026-02-01)',
            '{[1,2)}', '{[2026-01-01,2026-02-01)}', 'pg_monitor=r/pg_monitor', '1:2:', 'pg_class', 'now()', 'true', '$.a',
            'simple', 'a=>1', '9780201379624', '1234-5679', 'a', '<a/>', '+(int4,int4)', '!~~', '']
        LOOP
            CONTINUE WHEN literal IS NULL;
            BEGIN
                EXECUTE format('UPDATE public.types%s SET c%s = %L WHERE n = 1', tables, kind.oid, literal);
                EXIT;
            EXCEPTION WHEN OTHERS THEN CONTINUE;
            END;
        END LOOP;
    END LOOP;
END $$"#;

#[tokio::test]
async fn every_type_of_the_catalogue_works() {
    let Some(database) = Database::make().await else { return };
    let client = database.client().await;
    for extension in EXTENSIONS {
        client.batch_execute(&format!("CREATE EXTENSION {extension}")).await.unwrap();
    }
    client.batch_execute(FILL).await.unwrap();
    client.batch_execute(PRINTING).await.unwrap();
    let source = database.source().await;
    let (mut types, mut valued) = (0, 0);
    let mut failures = vec![];
    let mut unknown = BTreeSet::new();
    let mut empty = BTreeSet::new();
    for number in 1.. {
        let name = format!("types{number}");
        let exists = format!("SELECT 1 FROM pg_class WHERE relname = '{name}'");
        if printed(&client, &exists).await.is_empty() {
            break;
        }
        let found = table(&source, &name).await;
        let batches = collect(&source, &split(&source, whole(&found), 1).await).await.unwrap();
        let batch = &batches[0];
        // NULLs first, wherever the updated row lies.
        let first =
            arrow::array::AsArray::as_primitive::<arrow::datatypes::Int32Type>(batch.column(0));
        let (nulls, values) = if first.value(0) == 0 { (0, 1) } else { (1, 0) };
        for (place, column) in found.columns.iter().enumerate().skip(1) {
            types += 1;
            if column.warning.is_some() {
                unknown.insert(column.source_type.replace("[]", ""));
            }
            let cells = batch.column(place);
            if !cells.is_null(nulls) {
                failures.push(format!("{}: NULL is not NULL", column.source_type));
            }
            let expression = match column.field.extension_type_name() {
                Some("arrow.json") => format!("to_json({})", column.name()),
                _ => format!("{}::text", column.name()),
            };
            let statement = format!("SELECT {expression} FROM public.{name} WHERE n = 1");
            let wanted = printed(&client, &statement).await.remove(0);
            let fits = match &wanted {
                None => cells.is_null(values),
                // The server's text of a blank-padded type is without its padding.
                Some(text) => !cells.is_null(values) && same(cells, values, text),
            };
            match &wanted {
                Some(_) => valued += 1,
                None => {
                    empty.insert(column.source_type.clone());
                }
            }
            if !fits {
                let shown = arrow::util::display::array_value_to_string(cells, values);
                failures.push(format!("{}: {wanted:?} was {shown:?}", column.source_type));
            }
        }
    }
    database.drop_now().await;
    println!("{types} types, {valued} with a value; none for {empty:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(
        types > 250 && valued + 20 > types,
        "{types} types, {valued} with a value, not {empty:?}"
    );
    let unknown: Vec<_> = unknown.iter().map(String::as_str).collect();
    let named: Vec<_> = unknown.iter().filter(|name| !UNKNOWN.contains(name)).collect();
    assert!(named.is_empty(), "{named:?}");
}
