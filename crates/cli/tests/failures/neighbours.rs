//! Tables whose names begin alike.

use crate::bench::{Bench, GLOBAL};

const TABLES: &str = "
    CREATE TABLE orders (id integer PRIMARY KEY);
    CREATE TABLE orders_archive (id integer PRIMARY KEY);
    CREATE TABLE \"orders/archive\" (id integer PRIMARY KEY);
    INSERT INTO orders VALUES (1);
    INSERT INTO orders_archive VALUES (1), (2);
    INSERT INTO \"orders/archive\" VALUES (1), (2), (3);
";

const APPENDED: &str = "--incremental-table public.orders_archive:id:integer \
    --incremental-table public.\"orders/archive\":id:integer";

/// Cleans `orders` in every way there is, and looks at its neighbours.
fn cleaned(bench: &Bench) {
    bench.sync();
    let neighbours = ["public/orders_archive", "public/orders%2Farchive"];
    let look = || neighbours.map(|folder| bench.reader.objects(&bench.lake, folder));
    let before = look();
    assert!(before.iter().all(|objects| objects.len() >= 3), "{before:?}");
    for id in 2..5 {
        // A table without a cursor is replaced, and what was there is deleted.
        bench.database.run(&format!("INSERT INTO orders VALUES ({id})"));
        bench.sync();
        bench.same("orders", "true");
        let folder = bench.reader.folder(&bench.lake, "public/orders").unwrap();
        assert!(folder.dead.len() <= 1 && folder.unnamed.is_empty(), "{folder:?}");
    }
    bench.database.run("DELETE FROM orders");
    bench.sync();
    bench.sync();
    assert_eq!(look(), before, "a neighbour was touched");
    bench.desk.must(&format!("config delete {GLOBAL} --sync-id s"));
    assert_eq!(look(), before, "a neighbour was touched");
}

#[test]
fn cleaning_a_table_leaves_those_whose_names_begin_alike() {
    let Some(bench) = Bench::new(TABLES) else { return };
    bench.create(APPENDED);
    cleaned(&bench);
}

#[test]
fn cleaning_a_table_of_a_bucket_leaves_those_whose_names_begin_alike() {
    let Some(mut bench) = Bench::new(TABLES) else { return };
    if bench.use_bucket("bucket").is_none() {
        return;
    }
    bench.create(&format!("{APPENDED} --target-storage-id bucket"));
    cleaned(&bench);
}
