//! What is compared, and what is left to the next run.

use tidelake_model::{Actor, NullCursor, WatermarkFilter};
use tidelake_sync::verify::{Counts, Difference, Verified};
use tidelake_sync::watermarks;

use crate::shop::{Opening, Shop, integer, orders};

fn actor() -> Actor {
    Actor { kind: "cli".into(), name: "ann".into() }
}

async fn edit(shop: &Shop, value: &str) {
    let filter = WatermarkFilter::default();
    watermarks::set(&shop.app, &filter, value, None, &actor(), None).await.unwrap();
}

#[tokio::test]
async fn what_is_above_waits_for_the_next_run() {
    let shop = Shop::open(Opening::default()).await;
    assert_eq!(shop.verify().await.outcome, Verified::Nothing);
    shop.sell(1..=10);
    shop.sync().await;
    shop.sell(11..=20);
    let report = shop.verify().await;
    assert_eq!(report.outcome, Verified::Same);
    assert_eq!((report.source_rows, report.verified_through.as_deref()), (10, Some("10")));
}

#[tokio::test]
async fn a_late_row_in_the_gap_is_read_by_the_next_run() {
    let shop = Shop::open(Opening { cursor: Some("at:datetime"), ..Opening::default() }).await;
    shop.sell(1..=10);
    shop.sync().await;
    // The clock's watermark is a minute above the last row.
    shop.insert([shop.row_at(11, Some(20))]);
    let report = shop.verify().await;
    assert_eq!(report.outcome, Verified::Same, "{report:#?}");
    assert_eq!(report.unread_rows, Some(1));
    shop.sync().await;
    let report = shop.verify().await;
    assert_eq!((report.outcome, report.source_rows), (Verified::Same, 11));
}

#[tokio::test]
async fn an_open_upper_side_a_start_and_a_lookback() {
    for (cursor, lookback, compared) in [
        ("seq:integer:e", None, "(…, 10]"),
        ("seq:integer@4", None, "(4, 10]"),
        ("seq:integer:e@4", None, "[4, 10]"),
        ("seq:integer!delete_insert", Some("3"), "(…, 7]"),
    ] {
        let opening = Opening { cursor: Some(cursor), lookback, ..Opening::default() };
        let shop = Shop::open(opening).await;
        shop.sell(1..=11);
        shop.sync().await;
        let highest = if cursor.contains(":e") { "10" } else { "11" };
        let compared = compared.replace("10", highest).replace('7', "8");
        let report = shop.verify().await;
        let compared = format!("{compared} and rows without a value");
        assert_eq!(report.compared, Some(compared), "{cursor}: {report:#?}");
        assert_eq!(report.outcome, Verified::Same, "{cursor}: {report:#?}");
        // What the next run reads again is no difference.
        shop.change(11, |row| row[3] = None);
        let outcome = shop.verify().await.outcome;
        let wanted = match (cursor.contains(":e"), lookback) {
            (false, None) => Verified::Differs,
            _ => Verified::Same,
        };
        assert_eq!(outcome, wanted, "{cursor}");
    }
}

#[tokio::test]
async fn an_edit_upwards_passes_rows_over() {
    let shop = Shop::open(Opening::default()).await;
    shop.sell(1..=10);
    shop.sync().await;
    shop.sell(11..=20);
    edit(&shop, "15").await;
    shop.sync().await;
    let report = shop.verify().await;
    assert_eq!(report.outcome, Verified::Same, "{report:#?}");
    assert_eq!(report.compared.as_deref(), Some("(…, 10] and (15, 20] and rows without a value"));
    assert!(report.notices.iter().any(|notice| notice.message.contains("(10, 15]")), "{report:#?}");
    // A row on either side of what was passed over is still found.
    shop.change(3, |row| row[3] = None);
    shop.change(17, |row| row[3] = None);
    shop.change(12, |row| row[3] = None);
    assert_eq!(shop.verify().await.counts, Counts { differs: 2, ..Counts::default() });
}

#[tokio::test]
async fn an_edit_downwards_leaves_the_rest_to_the_next_run() {
    let shop = Shop::open(Opening::default()).await;
    shop.sell(1..=10);
    shop.sync().await;
    edit(&shop, "6").await;
    shop.change(8, |row| row[3] = None);
    let report = shop.verify().await;
    assert_eq!((report.outcome, report.beyond_rows), (Verified::Same, 4), "{report:#?}");
    shop.sync().await;
    let report = shop.verify().await;
    assert_eq!((report.outcome, report.source_rows), (Verified::Same, 10), "{report:#?}");
}

#[tokio::test]
async fn after_a_reset_nothing_is_compared() {
    let shop = Shop::open(Opening::default()).await;
    shop.sell(1..=10);
    shop.sync().await;
    watermarks::reset(&shop.app, &WatermarkFilter::default(), &actor(), None).await.unwrap();
    assert_eq!(shop.verify().await.outcome, Verified::Nothing);
    shop.sync().await;
    assert_eq!(shop.verify().await.outcome, Verified::Same);
}

#[tokio::test]
async fn rows_without_a_cursor_follow_their_policy() {
    for policy in [NullCursor::First, NullCursor::Include, NullCursor::Exclude] {
        let strategy = match policy {
            NullCursor::Include => "seq:integer!delete_insert",
            _ => "seq:integer",
        };
        let opening = Opening { cursor: Some(strategy), null_cursor: policy, ..Opening::default() };
        let shop = Shop::open(opening).await;
        shop.insert([shop.row_at(100, None), shop.row_at(101, None)]);
        shop.sell(1..=10);
        shop.sync().await;
        let report = shop.verify().await;
        assert_eq!(report.outcome, Verified::Same, "{policy:?} {report:#?}");
        let compared = if policy == NullCursor::First { 12 } else { 10 };
        assert_eq!(report.source_rows, compared, "{policy:?}");
        // One more is left to the user, or to the next run.
        shop.insert([shop.row_at(102, None)]);
        let report = shop.verify().await;
        assert_eq!(report.outcome, Verified::Same, "{policy:?} {report:#?}");
        let waits = u64::from(policy == NullCursor::First);
        assert_eq!(report.counts.without_cursor, waits);
        // One that the lake has, and that differs.
        shop.change(100, |row| row[3] = None);
        let report = shop.verify().await;
        let differs = u64::from(policy == NullCursor::First);
        assert_eq!(report.counts.differs, differs, "{policy:?} {report:#?}");
    }
}

#[tokio::test]
async fn a_text_cursor_is_compared_by_the_source() {
    let shop = Shop::open(Opening { cursor: Some("name:text"), ..Opening::default() }).await;
    shop.sell(1..=9);
    shop.sync().await;
    assert_eq!(shop.verify().await.outcome, Verified::Same);
    shop.change(4, |row| row[4] = None);
    let report = shop.verify().await;
    assert_eq!(report.counts, Counts { differs: 1, ..Counts::default() }, "{report:#?}");
    let report = shop.repair().await;
    assert_eq!(report.outcome, Verified::Failed);
    assert!(report.error.unwrap().hint.unwrap().contains("reset"));
}

#[tokio::test]
async fn a_column_that_the_lake_lacks_is_not_compared() {
    let shop = Shop::open(Opening { cursor: None, ..Opening::default() }).await;
    shop.sell(1..=9);
    shop.sync().await;
    shop.database.add_column(&orders(), "colour", arrow::datatypes::DataType::Int64).unwrap();
    let report = shop.verify().await;
    assert_eq!(report.outcome, Verified::Same, "{report:#?}");
    assert!(report.notices.iter().any(|notice| notice.message.contains("\"colour\"")));
    shop.sync().await;
    assert_eq!(shop.verify().await.columns.len(), 8);
    shop.database.drop_column(&orders(), "photo").unwrap();
    let report = shop.verify().await;
    assert_eq!((report.outcome, report.columns.len()), (Verified::Same, 7), "{report:#?}");
    let _ = (integer(1), Difference::Missing);
}
