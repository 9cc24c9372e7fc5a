//! Values that a lake holds and a target cannot.

use crate::bench::{Bench, GLOBAL};
use crate::terminal::file;

#[test]
fn a_nul_in_a_text_is_told_by_its_column_and_loads_nothing() {
    let Some(mut bench) = Bench::new("SELECT 1") else { return };
    bench.desk.shop("UPDATE orders SET note = 'a' || char(0) || 'b' WHERE id = 2");
    let (shop, warehouse) = (file(&bench.desk.path("shop.db")), bench.database.credential());
    bench.credential("source", shop);
    bench.credential("warehouse", warehouse);
    bench.create(
        "--include orders --incremental-table main.orders:id:integer --publish-target warehouse \
         --publish-method internal --publish-schema-pattern public",
    );
    let report = bench.try_sync("");
    assert_ne!(report.code, 0, "{report:?}");
    assert!(report.stderr.contains("\"note\"") && report.stderr.contains("NUL"), "{report:?}");
    assert!(report.stderr.contains("leave the column out"), "{report:?}");
    // The lake holds what the source holds; the watermark waits for the target.
    let rows = bench.look("main/orders").rows;
    assert!(rows.iter().flatten().flatten().any(|cell| cell == "a\0b"), "{rows:?}");
    let loaded = "SELECT count(*) FROM pg_tables WHERE tablename = 'orders'";
    assert_eq!(bench.database.value(loaded), "0");
    let stored = bench.desk.must(&format!("watermarks list {GLOBAL} --output json"));
    assert!(!stored.contains("\"value\": \"2\""), "{stored}");
}
