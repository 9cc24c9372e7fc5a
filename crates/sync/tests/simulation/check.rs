//! What must hold, looked at as a reader would.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use futures::TryStreamExt;
use tidelake_connector::TargetTable;
use tidelake_lake::{Lake, Storage};
use tidelake_model::{NullCursor, TableName};
use tidelake_watermark::{Direction, Value};

use crate::world::{Shape, World, events, kinds_table};

/// Ids in the lake, in the order of its files, with whether the cursor is NULL.
async fn in_lake(world: &World, table: &TableName) -> Vec<(i64, bool)> {
    let storage: Arc<dyn Storage> = world.storage.clone();
    let lake = Lake::new(storage).table(None, table);
    let Some(latest) = lake.latest().await.unwrap() else { return vec![] };
    let files = lake.live_files(&latest).await.unwrap();
    let listed = latest.manifests.last().unwrap();
    let manifest = lake.manifest(listed).await.unwrap();
    let batches: Vec<_> = lake.rows(files, Arc::new(manifest.schema)).try_collect().await.unwrap();
    batches.iter().flat_map(ids).collect()
}

/// The highest cursor value of the events in the lake.
pub(crate) async fn highest_in_lake(world: &World) -> Option<Value> {
    let committed = committed(world, &events());
    let rows = in_lake(world, &events()).await;
    let values = rows.iter().filter_map(|(id, _)| committed.get(id).cloned().flatten());
    values.reduce(|left, right| if left.compare(&right).unwrap().is_lt() { right } else { left })
}

fn ids(batch: &RecordBatch) -> Vec<(i64, bool)> {
    let ids = batch.column(0).as_primitive::<Int64Type>();
    let is_null = |row| batch.num_columns() > 1 && batch.column(1).is_null(row);
    (0..batch.num_rows()).map(|row| (ids.value(row), is_null(row))).collect()
}

/// Every committed row: its id, and its cursor.
fn committed(world: &World, table: &TableName) -> BTreeMap<i64, Option<Value>> {
    let rows = world.database.rows(table).unwrap();
    rows.into_iter()
        .map(|row| match row.first() {
            Some(Some(Value::Integer(id))) => {
                (i64::try_from(*id).unwrap(), row.get(1).cloned().flatten())
            }
            other => panic!("an id is missing: {other:?}"),
        })
        .collect()
}

fn assert_no_row_twice(world: &World, rows: &[(i64, bool)], place: &str) {
    let mut seen = BTreeSet::new();
    for (id, _) in rows {
        assert!(seen.insert(id), "seed {}: row {id} is twice in {place}: {rows:?}", world.seed);
    }
}

/// At any moment: no row twice, and none that was never committed.
pub(crate) async fn readers_see_no_row_twice(world: &World) {
    let rows = in_lake(world, &events()).await;
    assert_no_row_twice(world, &rows, "the lake");
    let committed = committed(world, &events());
    for (id, _) in &rows {
        assert!(committed.contains_key(id), "seed {}: row {id} was not committed", world.seed);
    }
    assert_no_row_twice(world, &in_lake(world, &kinds_table()).await, "the lake");
}

/// At rest: the lake and the target hold exactly what the source holds.
pub(crate) async fn all_arrived(world: &World) {
    let rows = in_lake(world, &events()).await;
    check_events(world, &rows, "the lake");
    let wanted: BTreeSet<_> = committed(world, &kinds_table()).into_keys().collect();
    let kinds = in_lake(world, &kinds_table()).await;
    check_whole(world, &kinds, &wanted, "the lake");
    if world.publishes {
        check_events(world, &in_target(world, &events()), "the target");
        check_whole(world, &in_target(world, &kinds_table()), &wanted, "the target");
    }
    let left = world.storage.pending();
    let data = world.storage.keys();
    assert!(left.len() <= data.len() + 64, "uploads pile up: {left:?}");
}

fn in_target(world: &World, table: &TableName) -> Vec<(i64, bool)> {
    let target = TargetTable { schema: table.schema.clone(), table: table.table.clone() };
    world.publisher.rows(&target).iter().flat_map(ids).collect()
}

fn check_whole(world: &World, rows: &[(i64, bool)], wanted: &BTreeSet<i64>, place: &str) {
    assert_no_row_twice(world, rows, place);
    let found: BTreeSet<_> = rows.iter().map(|(id, _)| *id).collect();
    assert_eq!(found, *wanted, "seed {}: the full table in {place}", world.seed);
}

fn check_events(world: &World, rows: &[(i64, bool)], place: &str) {
    assert_no_row_twice(world, rows, place);
    let committed = committed(world, &events());
    let highest = committed.iter().filter(|(_, at)| at.is_some()).map(|(id, _)| *id).max();
    // Under `[low, high)` and an observed ceiling the highest value itself waits.
    let waits = |id: i64| {
        world.shape == Shape::Number
            && world.direction == Direction::Exclusive
            && Some(id) == highest
    };
    let wanted: BTreeSet<_> = committed
        .iter()
        .filter(|(id, at)| at.is_some() && !waits(**id))
        .map(|(id, _)| *id)
        .collect();
    let found: BTreeSet<_> =
        rows.iter().filter(|(_, is_null)| !is_null).map(|(id, _)| *id).collect();
    assert_eq!(found, wanted, "seed {}: rows in {place}", world.seed);
    let nulls = rows.iter().filter(|(_, is_null)| *is_null).count();
    if world.null_cursor == NullCursor::Exclude {
        assert_eq!(nulls, 0, "seed {}: rows without a value in {place}", world.seed);
    }
}
