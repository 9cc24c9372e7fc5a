//! Many small files become one, whatever happens meanwhile.

use tidelake_model::Step;

use crate::reader::Reader;
use crate::years::Years;

/// Some runs, each with a file of its own.
fn many_files(years: &Years, first_id: u64) {
    for id in first_id..first_id + 3 {
        years.execute(&format!("INSERT INTO sales VALUES ({id}, '2024-06-01 00:00:00', 1)"));
        years.must("sync --sync-id s");
    }
}

fn live(years: &Years, reader: &Reader) -> usize {
    let lake = crate::reader::folder(&years.desk.path("lake"));
    reader.folder(&lake, "main/sales").unwrap().live.len()
}

#[test]
fn readers_see_the_same_rows_in_fewer_files() {
    let Some(reader) = Reader::start() else { return };
    let years = Years::make("id:integer");
    years.must("sync --sync-id s");
    many_files(&years, 2_000);
    let before = years.lake(&reader);
    assert_eq!(live(&years, &reader), 4);
    let planned = years.told("compact --sync-id s --table main.sales --dry-run");
    assert_eq!((&planned[0]["files"], &planned[0]["merged_files"]), (&4.into(), &1.into()));
    assert_eq!(live(&years, &reader), 4, "a dry run merges nothing");
    let done = years.told("compact --sync-id s");
    let of = |table: &str| {
        let tables = done.as_array().unwrap();
        tables.iter().find(|done| done["table"]["table"] == table).unwrap().clone()
    };
    assert_eq!(of("sales")["merged_files"], 1, "{done}");
    assert_eq!(of("sales")["rows"], before.len(), "{done}");
    assert_eq!(of("units")["files"], 0, "{done}");
    assert_eq!(live(&years, &reader), 1);
    assert_eq!(years.lake(&reader), before);
    assert_eq!(years.left(&reader), Vec::<String>::new());
    // Nothing to do is nothing done: no run, no object.
    let objects = years.desk.lake_files();
    let runs = years.told("status --sync-id s").as_array().unwrap().len();
    years.must("compact --sync-id s");
    assert_eq!(years.desk.lake_files(), objects);
    assert_eq!(years.told("status --sync-id s").as_array().unwrap().len(), runs);
    // What comes next is added, a lost state is adopted, a range is replaced.
    many_files(&years, 3_000);
    years.must("lxdb truncate --confirm");
    years.desk.must(
        "config create -a credentials.json --lxdb-auth-id state --source-db-auth-id years \
         --sync-id s --output-dir lake --incremental-table main.sales:id:integer",
    );
    years.must("compact --sync-id s --dry-run");
    years.must("sync --sync-id s --on-mismatch adopt");
    years.must("compact --sync-id s");
    years.must("backfill --sync-id s --table sales --from 100 --to 2001 --pieces 2");
    assert_eq!(years.lake(&reader), years.source("true"));
}

#[test]
fn a_compaction_that_dies_loses_and_doubles_nothing() {
    let Some(reader) = Reader::start() else { return };
    let years = Years::make("id:integer");
    years.must("sync --sync-id s");
    for (step, turn) in Step::ALL.into_iter().zip(0..) {
        let fault = match step {
            Step::Clock | Step::Split | Step::Committed | Step::Published => continue,
            Step::Lease | Step::Finished => step.name().to_owned(),
            step => format!("{}:main.sales", step.name()),
        };
        many_files(&years, 10_000 + 10 * turn);
        let rows = years.source("true");
        years.die("compact --sync-id s --table main.sales", &fault);
        assert_eq!(years.lake(&reader), rows, "{fault}");
        if turn % 2 == 0 {
            years.must("sync --sync-id s");
        } else {
            years.must("compact --sync-id s");
        }
        assert_eq!(years.lake(&reader), rows, "{fault}");
        assert_eq!(years.left(&reader), Vec::<String>::new(), "{fault}");
        years.must("compact --sync-id s --table main.sales");
        assert_eq!(live(&years, &reader), 1, "{fault}");
    }
    // Repairs go by the same order: each step of one dies, too.
    for step in [Step::Window, Step::Batch, Step::Staged, Step::Committing, Step::Latest] {
        years.execute("UPDATE sales SET amount = amount + 1 WHERE id BETWEEN 20 AND 25");
        let fault = format!("{}:main.sales", step.name());
        years.die("verify --sync-id s --table main.sales --repair", &fault);
        years.must("sync --sync-id s");
        years.must("verify --sync-id s --table main.sales --repair");
        let verified = years.answer("verify --sync-id s --table main.sales");
        assert_eq!(verified.code, 0, "{fault}: {}", verified.transcript());
        assert_eq!(years.lake(&reader), years.source("true"), "{fault}");
    }
}
