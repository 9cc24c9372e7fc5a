//! What several tests of the lake need.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::TryStreamExt;
use tidelake_lake::{FileExtent, Lake, MemoryStorage, TableLake, WriterSettings, memory};
use tidelake_model::{
    DataFile, Latest, MANIFEST_FORMAT, Manifest, PendingCommit, RunId, StagedObject, TableName,
    TakenOut,
};
use tidelake_watermark::{Position, Value};

pub fn table_name() -> TableName {
    TableName::new("public", "orders")
}

/// A lake in memory and a table in it.
pub fn lake() -> (Arc<MemoryStorage>, TableLake) {
    let storage = memory();
    let table = Lake::new(storage.clone()).table(None, &table_name());
    (storage, table)
}

pub fn run(number: u128) -> RunId {
    RunId::from_number(number)
}

pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8, true),
    ]))
}

pub fn batch(ids: impl IntoIterator<Item = i64>) -> RecordBatch {
    let ids: Vec<i64> = ids.into_iter().collect();
    let names: ArrayRef = Arc::new(StringArray::from_iter(
        ids.iter().map(|id| (id % 3 != 0).then(|| format!("name {id}"))),
    ));
    RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(ids)), names]).unwrap()
}

pub fn at(id: i64) -> Position {
    Value::Integer(id.into()).into()
}

pub fn ids(batch: &RecordBatch) -> Vec<i64> {
    let ids = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
    ids.values().to_vec()
}

pub fn extent(batch: &RecordBatch) -> FileExtent {
    let ids = ids(batch);
    FileExtent {
        min: ids.iter().min().map(|id| at(*id)),
        max: ids.iter().max().map(|id| at(*id)),
        nulls: 0,
    }
}

pub fn settings(run_id: RunId) -> WriterSettings {
    WriterSettings::new(run_id, 1, 0, schema())
}

/// Stages one file with those ids.
pub async fn stage(
    table: &TableLake,
    run_id: RunId,
    ids: impl IntoIterator<Item = i64>,
) -> Vec<(DataFile, StagedObject)> {
    let mut writer = table.writer(settings(run_id)).unwrap();
    let rows = batch(ids);
    writer.write(&rows, extent(&rows)).await.unwrap();
    writer.finish().await.unwrap()
}

pub fn manifest(run_id: RunId, generation: u64, files: Vec<DataFile>) -> Manifest {
    Manifest {
        format_version: MANIFEST_FORMAT,
        run_id,
        attempt: 1,
        table: table_name(),
        generation,
        window: None,
        schema_version: 1,
        schema: schema().as_ref().clone(),
        source_types: BTreeMap::from([
            ("id".to_owned(), "bigint".to_owned()),
            ("name".to_owned(), "character varying(20)".to_owned()),
        ]),
        key: vec!["id".to_owned()],
        files,
        taken_out: Vec::new(),
        live_highest: None,
        counters: BTreeMap::new(),
        notices: Vec::new(),
        started_at: "2026-11-30T09:15:00Z".to_owned(),
        finished_at: "2026-11-30T09:15:07Z".to_owned(),
        tool_version: "0.1.0".to_owned(),
    }
}

pub fn pending(
    latest: Option<&Latest>,
    manifest: Manifest,
    objects: Vec<StagedObject>,
    replaces: bool,
) -> PendingCommit {
    PendingCommit {
        manifest,
        objects,
        previous_head: latest.map(|latest| latest.head),
        replaces,
        keep_generations: 0,
    }
}

/// All steps of a commit.
pub async fn commit(table: &TableLake, commit: &PendingCommit) -> Latest {
    for object in &commit.objects {
        table.complete(object).await.unwrap();
    }
    table.put_manifest(&commit.manifest).await.unwrap();
    table.commit_latest(commit).await.unwrap()
}

/// Writes ids and commits them as a run of their own.
pub async fn append(
    table: &TableLake,
    latest: Option<&Latest>,
    number: u128,
    ids: impl IntoIterator<Item = i64>,
) -> Latest {
    let (files, objects) = stage(table, run(number), ids).await.into_iter().unzip();
    let generation = latest.map_or(0, |latest| latest.generation);
    commit(table, &pending(latest, manifest(run(number), generation, files), objects, false)).await
}

/// What a reader of the table sees.
pub async fn read(table: &TableLake, latest: &Latest) -> Vec<i64> {
    let files = table.live_files(latest).await.unwrap();
    let batches: Vec<_> = table.rows(files, schema()).try_collect().await.unwrap();
    batches.iter().flat_map(ids).collect()
}

pub fn taken_out(file: &DataFile) -> TakenOut {
    TakenOut { key: file.key.clone(), rows: file.rows }
}
