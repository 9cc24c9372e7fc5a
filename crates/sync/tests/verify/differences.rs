//! Each way to differ, on tables of each kind.

use proptest::prelude::*;
use tidelake_sync::verify::{
    Counts, Difference, Finding, TableVerification, Verified, VerifyRequest,
};

use crate::shop::{Opening, Shop, integer, rows, text, with_cell};

const FULL: Opening = Opening {
    cursor: None,
    has_key: true,
    null_cursor: tidelake_model::NullCursor::First,
    lookback: None,
};

/// Three runs of ten orders each, nothing else.
async fn three_runs(opening: Opening) -> Shop {
    let shop = Shop::open(opening).await;
    for tens in 0..3 {
        shop.sell(tens * 10 + 1..=tens * 10 + 10);
        shop.sync().await;
    }
    shop
}

pub(crate) fn errors(report: &TableVerification) -> Vec<&Finding> {
    report.findings.iter().filter(|finding| finding.class.is_error()).collect()
}

fn ids(report: &TableVerification, class: Difference) -> Vec<String> {
    let found = report.findings.iter().filter(|finding| finding.class == class);
    found.map(|finding| finding.key["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_untouched_lake_is_the_same() {
    for has_key in [true, false] {
        for cursor in
            [Some("seq:integer"), Some("at:datetime"), Some("at,id:datetime,integer"), None]
        {
            let shop = three_runs(Opening { cursor, has_key, ..Opening::default() }).await;
            let report = shop.verify().await;
            assert_eq!(report.outcome, Verified::Same, "{cursor:?} {report:#?}");
            assert_eq!((report.source_rows, report.lake_rows), (30, 30));
            assert_eq!(report.counts, Counts::default());
            assert!(report.columns.iter().all(|column| column.same), "{report:#?}");
            assert_eq!(report.columns.len(), 7);
            assert_eq!(report.files, if cursor.is_some() { 3 } else { 1 });
        }
    }
}

#[tokio::test]
async fn a_changed_cell_is_named_with_both_values_its_file_and_its_run() {
    let shop = three_runs(Opening::default()).await;
    shop.rewrite(1, |batch| with_cell(&batch, 3, 4, Some(5))).await;
    let report = shop.verify().await;
    assert_eq!(report.outcome, Verified::Differs);
    assert_eq!(report.counts, Counts { differs: 1, ..Counts::default() });
    let finding = &report.findings[0];
    assert_eq!(finding.key["id"], "15");
    assert_eq!(finding.cursor.as_deref(), Some("15"));
    assert_eq!(finding.columns.len(), 1);
    assert_eq!(finding.columns[0].column, "name");
    assert_eq!(finding.columns[0].source, Some(Some("order 15 at 15".into())));
    assert_eq!(finding.columns[0].lake, Some(Some("order 16 at 16".into())));
    assert_eq!(finding.files.len(), 1);
    assert!(finding.files[0].run_id.is_some());
    let different: Vec<_> = report.columns.iter().filter(|column| !column.same).collect();
    assert_eq!(different.len(), 1);
    assert_eq!(different[0].column, "name");
    // Keys are shown, values only if they may be.
    let request = VerifyRequest { values: false, ..shop.request() };
    let report = shop.verify_as(request).await;
    assert_eq!(report.findings[0].columns[0].source, None);
    assert!(!format!("{report:?}").contains("order 1"));
}

#[tokio::test]
async fn a_row_that_is_missing_and_one_that_is_doubled() {
    let shop = three_runs(Opening::default()).await;
    shop.rewrite(0, |batch| rows(&batch, &[0, 1, 3, 4, 5, 6, 7, 8, 9])).await;
    shop.rewrite(2, |batch| rows(&batch, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 6, 6])).await;
    let report = shop.verify().await;
    assert_eq!(ids(&report, Difference::Missing), ["3"]);
    assert_eq!(ids(&report, Difference::Doubled), ["27", "27"]);
    let doubled = report.findings.iter().find(|found| found.class == Difference::Doubled).unwrap();
    assert_eq!((doubled.in_source, doubled.in_lake), (1, 3));
    assert_eq!(report.lake_rows, 31);
}

#[tokio::test]
async fn a_cursor_that_was_changed_in_the_lake_is_missing_where_it_was() {
    let shop = three_runs(Opening::default()).await;
    shop.rewrite(1, |batch| with_cell(&batch, 1, 4, Some(9))).await;
    let report = shop.verify().await;
    assert_eq!(report.counts, Counts { missing: 1, changed: 1, ..Counts::default() });
    assert_eq!(ids(&report, Difference::Missing), ["15"]);
    assert_eq!(report.findings[0].remark.as_deref(), Some("the lake has this key at 20"));
}

#[tokio::test]
async fn what_moved_on_or_is_gone_is_no_error() {
    let shop = three_runs(Opening::default()).await;
    // An old version stays in a lake that is only added to.
    shop.update(4);
    shop.sync().await;
    let report = shop.verify().await;
    assert_eq!(report.outcome, Verified::Same, "{report:#?}");
    assert_eq!(report.counts, Counts { changed: 1, ..Counts::default() });
    assert_eq!((report.source_rows, report.lake_rows), (30, 31));
    // One that no run has read yet is looked up, and so is one that is gone.
    shop.update(5);
    shop.delete(6);
    shop.sell(31..=33);
    let report = shop.verify().await;
    assert_eq!(report.outcome, Verified::Same, "{report:#?}");
    assert_eq!(report.counts, Counts { changed: 2, deleted: 1, ..Counts::default() });
    assert_eq!(ids(&report, Difference::Deleted), ["6"]);
    let changed = report.findings.iter().find(|found| found.key["id"] == "5").unwrap();
    assert_eq!(changed.remark.as_deref(), Some("the source has this key at 32"));
}

#[tokio::test]
async fn many_old_versions_hide_nothing() {
    let shop = Shop::open(Opening::default()).await;
    for _ in 0..6 {
        let rows: Vec<_> = (1..=3_000).map(|id| shop.row(id)).collect();
        shop.database.truncate(&crate::shop::orders()).unwrap();
        shop.insert(rows);
        shop.sync().await;
    }
    let last = shop.files().await.len() - 1;
    shop.rewrite(last, |batch| with_cell(&batch, 4, 2, None)).await;
    let report = shop.verify().await;
    let wanted = Counts { differs: 1, changed: 15_000, ..Counts::default() };
    assert_eq!(report.counts, wanted);
    assert_eq!(errors(&report).len(), 1);
    assert_eq!(errors(&report)[0].columns[0].lake, Some(None));
    assert_eq!(report.findings.len(), 21);
}

#[tokio::test]
async fn a_late_row_below_the_watermark_is_missing() {
    let shop = three_runs(Opening::default()).await;
    shop.insert([shop.row_at(77, Some(12))]);
    let report = shop.verify().await;
    assert_eq!(report.counts, Counts { missing: 1, ..Counts::default() });
    assert_eq!(ids(&report, Difference::Missing), ["77"]);
    assert!(report.findings[0].files.is_empty());
}

#[tokio::test]
async fn a_change_without_a_new_cursor_differs() {
    let shop = three_runs(Opening::default()).await;
    shop.change(9, |row| row[3] = None);
    let report = shop.verify().await;
    assert_eq!(report.counts, Counts { differs: 1, ..Counts::default() });
    assert_eq!(report.findings[0].columns[0].source, Some(None));
}

#[tokio::test]
async fn values_that_changed_places_differ() {
    let shop = three_runs(Opening::default()).await;
    shop.rewrite(1, |batch| {
        let once = with_cell(&batch, 3, 4, Some(5));
        let original = batch;
        let mut columns = once.columns().to_vec();
        let places = [0, 1, 2, 3, 5, 4, 6, 7, 8, 9];
        columns[3] = rows(&original, &places).columns()[3].clone();
        arrow::array::RecordBatch::try_new(original.schema(), columns).unwrap()
    })
    .await;
    let report = shop.verify().await;
    assert_eq!(report.counts, Counts { differs: 2, ..Counts::default() });
    assert!(!report.columns[3].same);
}

#[tokio::test]
async fn a_full_table_is_compared_as_it_is_now() {
    let shop = three_runs(FULL).await;
    shop.delete(4);
    shop.sell(31..=31);
    let report = shop.verify().await;
    assert_eq!(report.counts, Counts { missing: 1, deleted: 1, ..Counts::default() });
    assert_eq!(report.outcome, Verified::Differs);
    assert!(report.notices.iter().any(|notice| notice.message.contains("no cursor")));
    shop.sync().await;
    assert_eq!(shop.verify().await.counts, Counts::default());
}

#[tokio::test]
async fn without_a_key_rows_are_counted() {
    for cursor in [Some("seq:integer"), None] {
        let shop = Shop::open(Opening { cursor, has_key: false, ..Opening::default() }).await;
        let row = shop.row(1);
        shop.insert([row.clone(), row.clone(), row]);
        shop.sell(2..=9);
        shop.sync().await;
        assert_eq!(shop.verify().await.outcome, Verified::Same);
        // Two of three that look alike.
        shop.rewrite(0, |batch| rows(&batch, &[0, 1, 3, 4, 5, 6, 7, 8, 9, 10])).await;
        let report = shop.verify().await;
        assert_eq!(report.counts, Counts { missing: 1, ..Counts::default() });
        assert_eq!((report.findings[0].in_source, report.findings[0].in_lake), (3, 2));
        shop.delete(5);
        let report = shop.verify().await;
        assert_eq!(report.counts, Counts { missing: 1, unknown: 1, ..Counts::default() });
    }
}

#[tokio::test]
async fn only_so_many_are_named_and_all_are_counted() {
    let shop = three_runs(Opening::default()).await;
    for id in 1..=30 {
        shop.change(id, |row| row[3] = text("changed"));
    }
    let report = shop.verify_as(VerifyRequest { limit: 4, ..shop.request() }).await;
    assert_eq!(report.counts.differs, 30);
    assert_eq!(report.findings.len(), 4);
}

/// One thing that is done behind everybody's back.
#[derive(Debug, Clone, Copy)]
enum Mutation {
    LakeCell { file: usize, column: usize, row: usize, from: Option<usize> },
    LakeRowGone { file: usize, row: usize },
    LakeRowTwice { file: usize, row: usize },
    SourceCell { id: i128, column: usize },
    SourceRowLate { id: i128, seq: i128 },
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let (file, row) = (0..3_usize, 0..10_usize);
    prop_oneof![
        (file.clone(), 1..7_usize, row.clone(), proptest::option::of(0..10_usize))
            .prop_map(|(file, column, row, from)| Mutation::LakeCell { file, column, row, from }),
        (file.clone(), row.clone()).prop_map(|(file, row)| Mutation::LakeRowGone { file, row }),
        (file, row).prop_map(|(file, row)| Mutation::LakeRowTwice { file, row }),
        (1..=30_i128, 3..7_usize).prop_map(|(id, column)| Mutation::SourceCell { id, column }),
        (100..200_i128, 1..=30_i128).prop_map(|(id, seq)| Mutation::SourceRowLate { id, seq }),
    ]
}

/// Does it, and says which id is wrong; `None` where nothing really changed.
async fn mutate(shop: &Shop, mutation: Mutation) -> Option<i128> {
    let id_of = |file: usize, row: usize| (file * 10 + row + 1) as i128;
    match mutation {
        Mutation::LakeCell { file, column, row, from } => {
            let before = shop.lake_rows().await;
            shop.rewrite(file, |batch| with_cell(&batch, column, row, from)).await;
            (shop.lake_rows().await != before).then(|| id_of(file, row))
        }
        Mutation::LakeRowGone { file, row } => {
            let left: Vec<_> = (0..10).filter(|place| *place != row).collect();
            shop.rewrite(file, |batch| rows(&batch, &left)).await;
            Some(id_of(file, row))
        }
        Mutation::LakeRowTwice { file, row } => {
            let all: Vec<_> = (0..10).chain([row]).collect();
            shop.rewrite(file, |batch| rows(&batch, &all)).await;
            Some(id_of(file, row))
        }
        Mutation::SourceCell { id, column } => {
            shop.change(id, |row| {
                row[column] = match row[column] {
                    Some(_) => None,
                    None if column == 5 => Some(tidelake_watermark::Value::Date(1)),
                    None => Some(tidelake_watermark::Value::Binary(vec![7])),
                };
            });
            Some(id)
        }
        Mutation::SourceRowLate { id, seq } => {
            shop.insert([shop.row_at(id, Some(seq))]);
            Some(id)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_single_change_is_found_named_and_mended(mutation in mutation()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let shop = three_runs(Opening::default()).await;
            // A cursor that became NULL in the lake is told as the row that is missing.
            let Some(id) = mutate(&shop, mutation).await else { return };
            let report = shop.verify().await;
            assert_eq!(report.outcome, Verified::Differs, "{report:#?}");
            assert_eq!(report.counts.errors(), 1, "{report:#?}");
            assert_eq!(errors(&report)[0].key["id"], id.to_string());
            let repaired = shop.repair().await;
            assert_eq!(repaired.counts.errors(), 0, "{repaired:#?}");
            assert_eq!(repaired.outcome, Verified::Same, "{repaired:#?}");
            assert_eq!(repaired.repair.unwrap().before, report.counts);
            assert_eq!(shop.database.rows(&crate::shop::orders()).unwrap().len() as u64, repaired.source_rows);
            let _ = integer(0);
        });
    }
}
