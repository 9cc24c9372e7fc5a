//! A repair reads what differs again, and leaves the watermark where it is.

use tidelake_model::{Purpose, WatermarkFilter};
use tidelake_sync::verify::{Counts, Verified};

use crate::shop::{Opening, Shop, rows, with_cell};

#[tokio::test]
async fn a_repair_moves_no_watermark_and_leaves_a_run_of_its_own() {
    let shop = Shop::open(Opening::default()).await;
    for tens in 0..3 {
        shop.sell(tens * 10 + 1..=tens * 10 + 10);
        shop.sync().await;
    }
    let filter = WatermarkFilter::default();
    let before = shop.app.state.watermarks(&filter).await.unwrap()[0].progress.clone();
    shop.rewrite(0, |batch| with_cell(&batch, 3, 1, None)).await;
    shop.rewrite(1, |batch| rows(&batch, &[0, 1, 2, 3, 4, 5, 6, 7, 9])).await;
    shop.rewrite(2, |batch| rows(&batch, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9])).await;
    let report = shop.repair().await;
    assert_eq!(report.outcome, Verified::Same, "{report:#?}");
    let repair = report.repair.unwrap();
    assert_eq!(repair.before, Counts { differs: 1, missing: 1, doubled: 1, ..Counts::default() });
    let ranges: Vec<_> = repair.pieces.iter().map(|piece| (&*piece.range, piece.rows)).collect();
    assert_eq!(ranges, [("[2, 2]", 1), ("[19, 19]", 1), ("[30, 30]", 1)]);
    let lake = shop.lake_rows().await;
    assert_eq!(lake.len(), 30);
    assert!(lake.values().all(|count| *count == 1));
    let after = shop.app.state.watermarks(&filter).await.unwrap()[0].progress.clone();
    assert_eq!(after, before);
    let records = shop.app.state.table_runs(repair.pieces[0].run_id).await.unwrap();
    assert_eq!(records[0].window.as_ref().unwrap().purpose, Purpose::Repair);
    // The next run goes on from where it was.
    shop.sell(31..=35);
    assert_eq!(shop.sync().await.tables[0].rows, 5);
    assert_eq!(shop.verify().await.outcome, Verified::Same);
}

#[tokio::test]
async fn nothing_is_repaired_where_nothing_differs() {
    let shop = Shop::open(Opening::default()).await;
    shop.sell(1..=10);
    shop.sync().await;
    shop.delete(4);
    let report = shop.repair().await;
    assert_eq!((report.outcome, report.repair), (Verified::Same, None));
}

#[tokio::test]
async fn a_full_table_is_repaired_by_a_run_of_it() {
    let shop = Shop::open(Opening { cursor: None, ..Opening::default() }).await;
    shop.sell(1..=10);
    shop.sync().await;
    shop.rewrite(0, |batch| rows(&batch, &[0, 1, 2])).await;
    let report = shop.repair().await;
    assert_eq!(report.outcome, Verified::Same, "{report:#?}");
    let repair = report.repair.unwrap();
    assert_eq!((repair.pieces.len(), repair.pieces[0].rows), (1, 10));
}

#[tokio::test]
async fn very_many_differences_are_mended_in_few_ranges() {
    let shop = Shop::open(Opening::default()).await;
    shop.sell(1..=200);
    shop.sync().await;
    let kept: Vec<_> = (0..200).filter(|place| place % 3 != 0).collect();
    shop.rewrite(0, |batch| rows(&batch, &kept)).await;
    let report = shop.repair().await;
    assert_eq!(report.outcome, Verified::Same, "{report:#?}");
    assert!(report.repair.unwrap().pieces.len() <= 16);
    assert_eq!(shop.lake_rows().await.len(), 200);
}
