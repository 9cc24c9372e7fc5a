//! A publish target follows the lake's columns.

use crate::bench::{Bench, assert_same};
use crate::database::Database;

#[test]
fn a_target_follows_the_columns_of_the_lake() {
    let Some(mut bench) = Bench::new(
        "CREATE TABLE o (id bigint PRIMARY KEY, a smallint, gone text NOT NULL, d numeric(6,2));
         INSERT INTO o VALUES (1, 1, 'g', 1.25)",
    ) else {
        return;
    };
    let Some(target) = Database::make() else { return };
    bench.credential("target", target.credential());
    bench.create(
        "--on-schema-drift evolve --incremental-table public.o:id:integer \
         --publish-target target --publish-method internal",
    );
    bench.sync();
    bench.database.run(
        "ALTER TABLE o ALTER a TYPE bigint, ALTER d TYPE numeric(10,4), DROP gone, ADD b text;
         INSERT INTO o VALUES (2, 5000000000, 123456.1234, 'new')",
    );
    bench.sync();
    // Published from where it was left, the columns are those of that run.
    bench.database.run("INSERT INTO o VALUES (3, 3, 3, 'late')");
    assert_eq!(bench.try_sync("--export-only").code, 0);
    bench.database.run("ALTER TABLE o ADD c integer; INSERT INTO o VALUES (4, 4, 4, 'last', 40)");
    bench.sync();
    let columns = target.rows(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
         WHERE attrelid = 'public.o'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
    );
    let columns: Vec<_> = columns
        .into_iter()
        .map(|row| row.into_iter().flatten().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        columns,
        ["id bigint", "a bigint", "gone text", "d numeric(10,4)", "b text", "c integer"]
    );
    let row = |cells: [&str; 6]| cells.map(|cell| (cell != "~").then(|| cell.to_owned())).to_vec();
    let wanted = vec![
        row(["1", "1", "g", "1.2500", "~", "~"]),
        row(["2", "5000000000", "~", "123456.1234", "new", "~"]),
        row(["3", "3", "~", "3.0000", "late", "~"]),
        row(["4", "4", "~", "4.0000", "last", "40"]),
    ];
    assert_same(
        "the target",
        target.rows("SELECT id::text, a::text, gone, d::text, b, c::text FROM o"),
        wanted.clone(),
    );
    let lake = bench.reader.union(&bench.lake, "public/o").unwrap();
    assert_eq!(lake.columns, ["id", "a", "gone", "d", "b", "c"]);
    assert_same("the lake", lake.rows, wanted);
}
