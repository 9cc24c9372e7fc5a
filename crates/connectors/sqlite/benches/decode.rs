//! What it costs to read a table into record batches: one thread steps the
//! statement and decodes, nothing is encoded.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::TryStreamExt;
use rusqlite::Connection;
use tidelake_connector::{Connector, Source, SplitRequest, TableFilter};
use tidelake_model::{CredentialInfo, Policies, ReadMethod, TableRead};
use tidelake_sqlite::SqliteConnector;
use tokio::runtime::Runtime;

const ROWS: u32 = 100_000;

/// The shapes that are read, each by the columns of its table and the row of number
/// `i` as a statement of SQLite has it.
const SHAPES: [(&str, &str, &str); 6] = [
    (
        "lineitem",
        "l_orderkey INTEGER NOT NULL, l_partkey INTEGER NOT NULL, l_suppkey INTEGER NOT NULL,
         l_linenumber INTEGER NOT NULL, l_quantity DECIMAL(15,2) NOT NULL,
         l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL,
         l_tax DECIMAL(15,2) NOT NULL, l_returnflag CHAR(1) NOT NULL,
         l_linestatus CHAR(1) NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL,
         l_receiptdate DATE NOT NULL, l_shipinstruct CHAR(25) NOT NULL,
         l_shipmode CHAR(10) NOT NULL, l_comment VARCHAR(44) NOT NULL",
        "i / 4, i * 7919 % 200000, i * 31 % 10000, i % 7, i % 50 + 1,
         (90000 + i * 613 % 9000000) / 100.0, i % 11 / 100.0, i % 9 / 100.0,
         substr('RAN', i % 3 + 1, 1), substr('OF', i % 2 + 1, 1),
         date('1992-01-01', (i % 2500) || ' days'), date('1992-02-01', (i % 2500) || ' days'),
         date('1992-01-09', (i % 2500) || ' days'), 'DELIVER IN PERSON', 'REG AIR',
         substr('furiously regular packages haggle about the slyly final deposits',
                i % 20 + 1, 10 + i % 34)",
    ),
    ("integers", "a INTEGER, b INTEGER, c INTEGER, d INTEGER", "i, i * 7919, -i, NULL"),
    (
        "decimals",
        "a DECIMAL(15,2), b DECIMAL(15,2), c DECIMAL(38,4), d DECIMAL(18,6)",
        "i / 100.0, i, i * 37 / 10000.0, i / 1000000.0",
    ),
    ("dates", "a DATE, b DATE", "date('1992-01-01', (i % 9000) || ' days'), '2026-11-30'"),
    (
        "times",
        "a DATETIME, b TIMESTAMP, c DATETIME",
        "datetime(i * 1000, 'unixepoch'), strftime('%Y-%m-%dT%H:%M:%fZ', i * 1000.25, 'unixepoch'),
         1796030100 + i",
    ),
    ("texts", "a TEXT, b VARCHAR(44)", "'number ' || i, printf('%.44c', 'x')"),
];

fn made(folder: &tempfile::TempDir) -> Arc<dyn Source> {
    let path = folder.path().join("bench.db");
    let writer = Connection::open(&path).unwrap();
    for (name, columns, row) in SHAPES {
        let rows = format!(
            "WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers \
             WHERE i < {ROWS}) SELECT {row} FROM numbers"
        );
        let statements = format!("CREATE TABLE {name} ({columns}); INSERT INTO {name} {rows};");
        writer.execute_batch(&statements).unwrap();
    }
    let info = CredentialInfo::new(serde_json::json!({ "filepath": path }));
    Runtime::new().unwrap().block_on(SqliteConnector.source(&info)).unwrap()
}

async fn rows(source: &Arc<dyn Source>, read: &TableRead) -> usize {
    let request =
        SplitRequest { read: read.clone(), degree: 1, method: ReadMethod::Auto, key: None };
    let slices = source.split(&request).await.unwrap();
    let mut rows = 0;
    for slice in &slices.slices {
        let mut batches = source.read(slice).await.unwrap().batches;
        while let Some(batch) = batches.try_next().await.unwrap() {
            rows += batch.num_rows();
        }
    }
    rows
}

fn decode(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let source = made(&folder);
    let runtime = Runtime::new().unwrap();
    let tables = runtime.block_on(source.tables(&TableFilter::default())).unwrap();
    let mut group = criterion.benchmark_group("sqlite");
    group.sample_size(10).throughput(Throughput::Elements(ROWS.into()));
    for table in tables {
        let read = TableRead {
            table: table.name.clone(),
            columns: table.columns,
            cursor: None,
            range: None,
            null_cursors: false,
            policies: Policies::default(),
            batch_bytes: 8 << 20,
        };
        group.bench_function(&table.name.table, |bencher| {
            bencher.iter(|| {
                assert_eq!(runtime.block_on(rows(&source, &read)), ROWS as usize);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decode);
criterion_main!(benches);
