//! A cursor of days, over several days: what is stamped with a day that is still
//! running waits until that day is over, and then all of it arrives, once.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use async_trait::async_trait;
use futures::TryStreamExt;
use tidelake_connector::memory::{MemoryConnector, MemoryDatabase, MemoryPublisher, column};
use tidelake_lake::{Lake, MemoryStorage, Storage};
use tidelake_model::{
    Compression, CredentialInfo, ErrorAction, FenceMode, FenceSettings, Holder, NullCursor,
    Policies, Result, RunId, SourceSettings, SyncConfig, Table, TableKind, TableName,
    TargetLocation, TargetSettings, WatermarkFilter,
};
use tidelake_state::memory::MemoryStore;
use tidelake_sync::{
    Application, Credential, Credentials, Host, IncrementalRequest, LeaseTimes, NoFaults,
    OnMismatch, Patience, Quiet, Registry, RunMode, RunReport, RunRequest, Storages, SyncDraft,
    create, run,
};
use tidelake_watermark::{Kind, Value};
use tokio_util::sync::CancellationToken;

/// One credential, one storage, one process.
struct Place {
    storage: Arc<MemoryStorage>,
    runs: AtomicU32,
}

impl Credentials for Place {
    fn credential(&self, _: &str) -> Result<Credential> {
        let info = CredentialInfo::new(serde_json::json!({}));
        Ok(Credential { kind: "memory".into(), info })
    }
}

#[async_trait]
impl Storages for Place {
    async fn open(&self, _: &TargetLocation) -> Result<Arc<dyn Storage>> {
        Ok(self.storage.clone())
    }
}

impl Host for Place {
    fn new_run_id(&self) -> RunId {
        RunId::from_number(self.runs.fetch_add(1, Ordering::Relaxed).into())
    }

    fn holder(&self) -> Holder {
        let (host, boot_id) = ("here".into(), "boot".into());
        Holder { host, boot_id, process_id: 1, process_started: 1 }
    }

    fn is_gone(&self, _: &Holder) -> bool {
        false
    }
}

/// A shop whose clock can be set, and its sync.
struct Shop {
    database: MemoryDatabase,
    storage: Arc<MemoryStorage>,
    app: Application,
    next: AtomicU32,
}

fn sales() -> TableName {
    TableName::new("main", "sales")
}

fn nanos(time: &str) -> i128 {
    match Value::parse(Kind::Timestamp, time).unwrap() {
        Value::Timestamp(nanos) => nanos,
        other => panic!("{other}"),
    }
}

impl Shop {
    /// `cursor` is what follows the table's name in `--incremental-table`.
    async fn open(cursor: &str, zone: Option<&str>, safety_lag: u64) -> Self {
        let database = MemoryDatabase::new();
        let naive = DataType::Timestamp(TimeUnit::Microsecond, None);
        database
            .create_table(Table {
                name: sales(),
                kind: TableKind::Table,
                columns: vec![
                    column("id", DataType::Int64, false).unwrap(),
                    column("day", DataType::Date32, false).unwrap(),
                    column("at", naive, false).unwrap(),
                ],
                estimated_rows: None,
                estimated_bytes: None,
            })
            .unwrap();
        let storage = tidelake_lake::memory();
        let place = Arc::new(Place { storage: storage.clone(), runs: AtomicU32::new(1) });
        let connector =
            MemoryConnector { database: database.clone(), publisher: MemoryPublisher::new() };
        let app = Application {
            state: Arc::new(MemoryStore::new()),
            connectors: Registry::new(vec![Arc::new(connector)], vec![]),
            credentials: place.clone(),
            storages: place.clone(),
            host: place,
            faults: Arc::new(NoFaults),
            leases: LeaseTimes::default(),
            patience: Patience::default(),
            began: std::time::Instant::now(),
        };
        let draft = SyncDraft {
            config: config(zone, safety_lag),
            incremental: vec![IncrementalRequest::parse(&format!("main.sales:{cursor}")).unwrap()],
            columns: Default::default(),
            dry_run: false,
        };
        create(&app, draft).await.unwrap();
        Self { database, storage, app, next: AtomicU32::new(1) }
    }

    /// Sets the clock, and sells: rows stamped with the wall clock of the zone in
    /// which the shop writes.
    fn sell(&self, now: &str, local: &str, count: u32) {
        self.database.set_now(nanos(now));
        let Value::Datetime(at) = Value::parse(Kind::Datetime, local).unwrap() else { panic!() };
        let day = i64::try_from(at.div_euclid(86_400_000_000_000)).unwrap();
        let rows = (0..count).map(|_| {
            let id = self.next.fetch_add(1, Ordering::Relaxed).into();
            vec![Some(Value::Integer(id)), Some(Value::Date(day)), Some(Value::Datetime(at))]
        });
        self.database.insert_committed(&sales(), rows).unwrap();
    }

    async fn sync(&self, now: &str) -> RunReport {
        self.database.set_now(nanos(now));
        let request = RunRequest {
            env: String::new(),
            sync_id: "days".into(),
            mode: RunMode::Whole,
            resume: None,
            on_mismatch: OnMismatch::Refuse,
            reset_watermarks: false,
            cores: 2,
            cancel: CancellationToken::new(),
            events: Arc::new(Quiet),
        };
        let report = run(&self.app, request).await.unwrap();
        assert!(report.tables.iter().all(|table| table.error.is_none()), "{report:?}");
        report
    }

    /// Ids in the lake, each once, and how far the watermark stands.
    async fn check(&self, up_to: u32, watermark: &str) {
        let storage: Arc<dyn Storage> = self.storage.clone();
        let lake = Lake::new(storage).table(None, &sales());
        let latest = lake.latest().await.unwrap().unwrap();
        let manifest = lake.manifest(latest.manifests.last().unwrap()).await.unwrap();
        let files = lake.live_files(&latest).await.unwrap();
        let batches: Vec<_> =
            lake.rows(files, Arc::new(manifest.schema)).try_collect().await.unwrap();
        let mut counts: BTreeMap<i64, u32> = BTreeMap::new();
        for batch in batches {
            for id in batch.column(0).as_primitive::<Int64Type>().values() {
                *counts.entry(*id).or_default() += 1;
            }
        }
        let wanted: BTreeMap<_, _> = (1..=i64::from(up_to)).map(|id| (id, 1)).collect();
        assert_eq!(counts, wanted);
        let stored = self.app.state.watermarks(&WatermarkFilter::default()).await.unwrap();
        let found = stored[0].progress.watermark.as_ref().map(ToString::to_string);
        assert_eq!(found.as_deref(), Some(watermark));
    }
}

fn config(zone: Option<&str>, safety_lag: u64) -> SyncConfig {
    SyncConfig {
        sync_id: "days".into(),
        env: String::new(),
        source: SourceSettings {
            credential_id: "shop".into(),
            connector_type: String::new(),
            database: None,
            schemas: vec![],
            include: vec![],
            exclude: vec![],
            min_rows: None,
            max_rows: None,
        },
        incremental: vec![],
        safety_lag,
        lookback: None,
        safety_gap: None,
        null_cursor: NullCursor::First,
        cursor_zone: zone.map(str::to_owned),
        fence: FenceSettings {
            mode: FenceMode::Auto,
            wait: 0,
            ignore_users: vec![],
            primary_credential_id: None,
        },
        policies: Policies::default(),
        columns: vec![],
        keys: vec![],
        casts: vec![],
        schema_drift: tidelake_model::SchemaDrift::default(),
        target: TargetSettings {
            location: TargetLocation::Folder("memory".into()),
            sub_path: None,
        },
        parallel: Some(1),
        n_jobs: 1,
        large_table_threshold: 1_000,
        read_settings: vec![],
        compression: Compression::None,
        memory_limit: 64 << 20,
        publish: None,
        metadata: None,
        error_action: ErrorAction::Fail,
        keep_generations: 0,
    }
}

#[tokio::test]
async fn synced_at_noon_the_rest_of_the_day_comes_the_next_day() {
    for cursor in ["day:date", "day:datetime"] {
        let shop = Shop::open(cursor, None, 0).await;
        shop.sell("2026-11-29T20:00:00Z", "2026-11-29T20:00:00", 3);
        shop.sell("2026-11-30T09:00:00Z", "2026-11-30T09:00:00", 4);
        // Noon: only what is stamped with a day that is over.
        assert_eq!(shop.sync("2026-11-30T12:00:00Z").await.tables[0].rows, 3);
        shop.check(3, "2026-11-29").await;
        shop.sell("2026-11-30T15:00:00Z", "2026-11-30T15:00:00", 5);
        assert_eq!(shop.sync("2026-11-30T18:00:00Z").await.tables[0].rows, 0);
        assert_eq!(shop.sync("2026-11-30T23:59:59Z").await.tables[0].rows, 0);
        shop.sell("2026-11-30T23:59:59.9Z", "2026-11-30T23:59:59.9", 1);
        shop.check(3, "2026-11-29").await;
        // The next day: the morning, the afternoon and the last moment, once.
        assert_eq!(shop.sync("2026-12-01T00:05:00Z").await.tables[0].rows, 10);
        shop.check(13, "2026-11-30").await;
        shop.sell("2026-12-01T10:00:00Z", "2026-12-01T10:00:00", 2);
        assert_eq!(shop.sync("2026-12-01T12:00:00Z").await.tables[0].rows, 0);
        assert_eq!(shop.sync("2026-12-04T12:00:00Z").await.tables[0].rows, 2);
        shop.check(15, "2026-12-03").await;
    }
}

#[tokio::test]
async fn a_day_that_was_empty_may_still_fill_up() {
    let shop = Shop::open("day:date", None, 0).await;
    shop.sell("2026-11-28T10:00:00Z", "2026-11-28T10:00:00", 2);
    assert_eq!(shop.sync("2026-11-30T12:00:00Z").await.tables[0].rows, 2);
    shop.check(2, "2026-11-29").await;
    // Booked late: a day below the watermark, above everything that was exported.
    shop.sell("2026-11-30T13:00:00Z", "2026-11-29T23:00:00", 3);
    let report = shop.sync("2026-11-30T14:00:00Z").await;
    assert_eq!(report.tables[0].rows, 3);
    assert!(report.tables[0].window.as_ref().unwrap().contains("gap"), "{report:?}");
    shop.check(5, "2026-11-29").await;
    assert_eq!(shop.sync("2026-11-30T15:00:00Z").await.tables[0].rows, 0);
    shop.check(5, "2026-11-29").await;
}

#[tokio::test]
async fn a_lag_keeps_the_day_open_after_midnight() {
    let shop = Shop::open("day:date", None, 3_600).await;
    shop.sell("2026-11-29T10:00:00Z", "2026-11-29T10:00:00", 1);
    shop.sell("2026-11-30T10:00:00Z", "2026-11-30T10:00:00", 1);
    assert_eq!(shop.sync("2026-12-01T00:30:00Z").await.tables[0].rows, 1);
    shop.sell("2026-12-01T00:45:00Z", "2026-11-30T23:59:00", 1);
    assert_eq!(shop.sync("2026-12-01T00:59:00Z").await.tables[0].rows, 0);
    assert_eq!(shop.sync("2026-12-01T01:00:01Z").await.tables[0].rows, 2);
    shop.check(3, "2026-11-30").await;
}

#[tokio::test]
async fn a_day_ends_where_the_shop_is() {
    // In Auckland it is 13 hours later than in UTC.
    let shop = Shop::open("day:date", Some("Pacific/Auckland"), 0).await;
    shop.sell("2026-11-29T20:00:00Z", "2026-11-30T09:00:00", 2);
    shop.sync("2026-11-30T10:59:00Z").await;
    shop.sell("2026-11-30T10:59:30Z", "2026-11-30T23:59:30", 2);
    assert_eq!(shop.sync("2026-11-30T10:59:59Z").await.tables[0].rows, 0);
    assert_eq!(shop.sync("2026-11-30T11:00:01Z").await.tables[0].rows, 4);
    shop.check(4, "2026-11-30").await;
    // In Honolulu it is 10 hours earlier.
    let shop = Shop::open("day:date", Some("Pacific/Honolulu"), 0).await;
    shop.sell("2026-11-30T20:00:00Z", "2026-11-30T10:00:00", 2);
    shop.sync("2026-12-01T09:59:59Z").await;
    shop.sell("2026-12-01T09:59:59Z", "2026-11-30T23:59:59", 2);
    assert_eq!(shop.sync("2026-12-01T10:00:01Z").await.tables[0].rows, 4);
    shop.check(4, "2026-11-30").await;
}

#[tokio::test]
async fn the_night_in_which_an_hour_comes_twice() {
    // Berlin, 2026-10-25: at 03:00 the clock is set back to 02:00.
    let shop = Shop::open("at:datetime", Some("Europe/Berlin"), 3_600).await;
    shop.sell("2026-10-25T00:30:00Z", "2026-10-25T02:30:00", 1);
    shop.sync("2026-10-25T00:45:00Z").await;
    shop.sell("2026-10-25T01:10:00Z", "2026-10-25T02:10:00", 1);
    shop.sync("2026-10-25T01:20:00Z").await;
    shop.sell("2026-10-25T01:50:00Z", "2026-10-25T02:50:00", 1);
    shop.sync("2026-10-25T01:55:00Z").await;
    shop.sell("2026-10-25T02:05:00Z", "2026-10-25T03:05:00", 1);
    for now in ["2026-10-25T02:30:00Z", "2026-10-25T03:30:00Z", "2026-10-25T06:00:00Z"] {
        shop.sync(now).await;
    }
    shop.check(4, "2026-10-25T05:59:59.749999").await;
}

#[tokio::test]
async fn times_that_are_counted_in_days() {
    let shop = Shop::open("at:date", None, 0).await;
    shop.sell("2026-11-28T22:00:00Z", "2026-11-28T22:00:00", 2);
    shop.sell("2026-11-30T09:00:00Z", "2026-11-30T09:00:00", 2);
    shop.sync("2026-11-30T12:00:00Z").await;
    shop.check(2, "2026-11-29T00:00:00").await;
    shop.sell("2026-11-30T15:00:00Z", "2026-11-30T15:00:00", 2);
    assert_eq!(shop.sync("2026-12-01T12:00:00Z").await.tables[0].rows, 0);
    assert_eq!(shop.sync("2026-12-02T12:00:00Z").await.tables[0].rows, 4);
    shop.check(6, "2026-12-01T00:00:00").await;
}
