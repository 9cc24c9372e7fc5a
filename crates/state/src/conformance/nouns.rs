//! Small examples of everything that a store is given.

use std::collections::BTreeMap;
use std::time::Duration;

use tidelake_model::{
    Actor, Compression, ErrorAction, FenceMode, FenceSettings, Head, Holder, NullCursor, Policies,
    RunId, SourceSettings, SyncConfig, TableKey, TableName, TableRun, TableRunStatus,
    TargetLocation, TargetSettings, WindowRecord,
};
use tidelake_watermark::{Bound, Direction, Position, Progress, Range, Value};

use super::Outcome;
use crate::store::{
    Advance, AdvanceWatermark, BeginRun, Begun, Lease, StateStore, TableState, TableUpdate,
    WatermarkSettings,
};

/// A lease that no case waits for.
pub(super) const LONG: Duration = Duration::from_secs(600);
/// A lease that a case lets pass.
pub(super) const SHORT: Duration = Duration::from_millis(300);
/// Longer than [`SHORT`].
pub(super) const LONGER_THAN_SHORT: Duration = Duration::from_millis(400);

pub(super) const SYNC: &str = "sync-1";

pub(super) fn run(number: u128) -> RunId {
    RunId::from_number(number)
}

pub(super) fn key(table: &str) -> TableKey {
    TableKey {
        env: String::new(),
        scope: SYNC.to_owned(),
        connector_type: "memory".to_owned(),
        source_key: "shop".to_owned(),
        table: Some(TableName::new("public", table)),
    }
}

/// The key of a watermark made by hand before its table was known.
pub(super) fn nameless() -> TableKey {
    TableKey { table: None, ..key("") }
}

pub(super) fn holder(process_id: u32) -> Holder {
    Holder {
        host: "machine".to_owned(),
        boot_id: "boot".to_owned(),
        process_id,
        // More than a signed number of 64 bits holds.
        process_started: u64::MAX,
    }
}

pub(super) fn request(run_id: RunId, tables: &[&str], ttl: Duration) -> BeginRun {
    BeginRun {
        run_id,
        env: String::new(),
        scope: SYNC.to_owned(),
        tables: tables.iter().map(|table| key(table)).collect(),
        holder: holder(1),
        ttl,
    }
}

/// Begins a run of one table.
pub(super) async fn begin(
    store: &dyn StateStore,
    run_id: RunId,
    table: &str,
    ttl: Duration,
) -> Outcome<TableState> {
    only(store.begin_run(&request(run_id, &[table], ttl)).await?)
}

pub(super) fn only(begun: Begun) -> Outcome<TableState> {
    super::harness::some("the table's state", begun.tables.into_iter().next())
}

pub(super) fn integer(number: i128) -> Position {
    Value::Integer(number).into()
}

pub(super) fn progress(watermark: i128, max_seen: i128) -> Progress {
    Progress {
        watermark: Some(integer(watermark)),
        max_seen: Some(integer(max_seen)),
        ..Progress::default()
    }
}

pub(super) fn settings(column: &str) -> WatermarkSettings {
    WatermarkSettings {
        column: column.to_owned(),
        kind: "integer".to_owned(),
        initial: Progress::default(),
    }
}

pub(super) fn record(lease: &Lease, status: TableRunStatus) -> TableRun {
    record_of(lease.run_id, lease, status)
}

/// The record of a run whose table is leased by another now.
pub(super) fn record_of(run_id: RunId, lease: &Lease, status: TableRunStatus) -> TableRun {
    TableRun {
        run_id,
        table: lease.key.table.clone().unwrap_or_else(|| TableName::new("", "")),
        token: lease.token,
        status,
        window: Some(window()),
        uploads: vec![],
        pending: None,
        rows: 7,
        bytes: 1_000,
        counters: BTreeMap::from([("null_cursor".to_owned(), u64::MAX)]),
        notices: vec![],
        started_at: String::new(),
        finished_at: None,
        error: None,
    }
}

fn window() -> WindowRecord {
    let high = integer(10);
    WindowRecord {
        range: Some(Range { low: None, high: Some(Bound { at: high.clone(), inclusive: true }) }),
        gap: None,
        high: Some(high),
        stays: false,
        replaces: false,
        null_cursors: true,
        ceiling: "observed".to_owned(),
        fence: None,
        safety_lag: 0,
        version: None,
        progress: Progress::default(),
        purpose: tidelake_model::Purpose::Run,
    }
}

pub(super) fn update(lease: &Lease, status: TableRunStatus, release: bool) -> TableUpdate {
    TableUpdate { record: record(lease, status), release }
}

/// An advance of a cursor `id` that completes the table run and gives the lease
/// back.
pub(super) fn advance(lease: &Lease, expected: Option<u64>, next: Progress) -> Advance {
    Advance {
        record: record(lease, TableRunStatus::Completed),
        head: Some(head(lease.run_id)),
        watermark: Some(AdvanceWatermark { settings: settings("id"), expected, next, rows: 7 }),
        release: true,
    }
}

pub(super) fn head(run_id: RunId) -> Head {
    Head { run_id, location: "/lake/it's \"here\"".to_owned() }
}

pub(super) fn actor() -> Actor {
    Actor { kind: "cli".to_owned(), name: "ann".to_owned() }
}

pub(super) fn exclusive_from(first: i128) -> Progress {
    Progress { first: Some(integer(first)), direction: Direction::Exclusive, ..Progress::default() }
}

pub(super) fn sync_config(env: &str, sync_id: &str) -> SyncConfig {
    SyncConfig {
        sync_id: sync_id.to_owned(),
        env: env.to_owned(),
        source: SourceSettings {
            credential_id: "shop".to_owned(),
            connector_type: "memory".to_owned(),
            database: None,
            schemas: vec!["pub%".to_owned()],
            include: vec![],
            exclude: vec![],
            min_rows: None,
            max_rows: Some(u64::MAX),
        },
        incremental: vec![],
        safety_lag: 5,
        lookback: None,
        safety_gap: None,
        null_cursor: NullCursor::First,
        cursor_zone: None,
        fence: FenceSettings {
            mode: FenceMode::Auto,
            wait: 30,
            ignore_users: vec![],
            primary_credential_id: None,
        },
        policies: Policies::default(),
        columns: vec![],
        keys: vec![],
        casts: vec![],
        schema_drift: tidelake_model::SchemaDrift::default(),
        target: TargetSettings {
            location: TargetLocation::Folder("/lake".to_owned()),
            sub_path: None,
        },
        parallel: None,
        n_jobs: 4,
        large_table_threshold: 100_000,
        read_settings: vec![],
        compression: Compression::Zstd,
        memory_limit: 1 << 30,
        publish: None,
        metadata: None,
        error_action: ErrorAction::Fail,
        keep_generations: 1,
    }
}
