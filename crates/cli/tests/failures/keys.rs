//! Keys with holes, and keys whose order only the database knows.

use crate::bench::Bench;

const LARGE: &str = "--large-table-threshold 1 --fastbcp-p 2";

/// Statements that read rows, as the log tells them.
fn reads(told: &str) -> usize {
    told.lines().filter(|line| line.contains("COPY (SELECT")).count()
}

#[test]
fn keys_with_holes_make_no_more_reads() {
    let Some(bench) = Bench::new(
        "CREATE TABLE sparse (id bigint PRIMARY KEY, note text);
         INSERT INTO sparse SELECT i, 'low' FROM generate_series(1, 3000) AS i;
         INSERT INTO sparse SELECT 9000000000000000000 + i, 'high' FROM generate_series(1, 3000) AS i;
         INSERT INTO sparse VALUES (-9000000000000000000, 'lowest');
         ANALYZE sparse",
    ) else {
        return;
    };
    for (number, method) in ["RangeId:id:4", "Ntile:id:4", "Ctid::4"].into_iter().enumerate() {
        let id = format!("--sync-id s{number}");
        bench.create(&format!(
            "--incremental-table public.sparse:id:integer {LARGE} {id} --sub-path {number} \
             --fastbcp-table-config public.sparse:{method}"
        ));
        let report = bench.sync_as(&format!("{id} --log-level DEBUG"));
        let count = reads(&report.stderr);
        assert!((1..=5).contains(&count), "{count} reads by {method}: {}", report.stderr);
        bench.same_in(&format!("{number}/public/sparse"), "public", "sparse", "true");
    }
}

/// Words whose order differs between bytes, languages and cases.
const WORDS: &str = "('a'), ('B'), ('c'), ('Z'), ('ä'), ('Äpfel'), ('_x'), ('ß'), ('ss'), ('z z'),
    ('zz'), ('É'), ('e'), ('F'), ('1'), ('10'), ('9'), (''), ('日本'), ('''quoted''')";

#[test]
fn the_database_alone_compares_texts() {
    let Some(bench) = Bench::new(
        "CREATE COLLATION by_language (provider = icu, locale = 'de');
         CREATE COLLATION without_case
             (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    ) else {
        return;
    };
    for (number, collation) in ["\"C\"", "by_language", "without_case"].into_iter().enumerate() {
        let table = format!("words{number}");
        bench.database.run(&format!(
            "CREATE TABLE {table} (word text COLLATE {collation} NOT NULL, id serial);
             CREATE INDEX ON {table} (word);
             INSERT INTO {table} (word) VALUES {WORDS};
             INSERT INTO {table} (word) SELECT 'k' || i FROM generate_series(1, 500) AS i;
             ANALYZE {table}"
        ));
        let id = format!("--sync-id s{number}");
        bench.create(&format!(
            "--include {table} --incremental-table public.{table}:word:text {LARGE} {id} \
             --fastbcp-table-config public.{table}:RangeId:word:4"
        ));
        assert_eq!(bench.sync_as(&id).rows(&table), 520, "{collation}");
        bench.same(&table, "true");
        // Of what comes later, what the database puts behind the highest word is read.
        let highest = format!("(SELECT max(word) FROM {table} WHERE id <= 520)");
        bench.database.run(&format!(
            "INSERT INTO {table} (word) VALUES ('zzz'), ('ZZZ'), ('Zeta'), ('zéta'), ('本'), ('b')"
        ));
        let wanted = bench
            .database
            .value(&format!("SELECT count(*) FROM {table} WHERE id > 520 AND word > {highest}"));
        let report = bench.sync_as(&id);
        assert_eq!(report.rows(&table).to_string(), wanted, "{collation}: {report:?}");
        bench.same(&table, &format!("id <= 520 OR word > {highest}"));
        assert_eq!(bench.sync_as(&id).rows(&table), 0, "{collation}");
    }
}
