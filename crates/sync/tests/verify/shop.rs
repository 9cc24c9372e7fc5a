//! A shop whose rows can be changed on either side, behind everybody's back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{DataType, TimeUnit};
use async_trait::async_trait;
use futures::TryStreamExt;
use tidelake_connector::memory::{MemoryConnector, MemoryDatabase, MemoryPublisher, Row, column};
use tidelake_lake::{FileExtent, Lake, MemoryStorage, Storage, TableLake, WriterSettings};
use tidelake_model::{
    Compression, CredentialInfo, DataFile, ErrorAction, FenceMode, FenceSettings, Holder, Manifest,
    NullCursor, Policies, Result, RunId, SchemaDrift, SourceSettings, SyncConfig, Table, TableKind,
    TableName, TargetLocation, TargetSettings,
};
use tidelake_state::memory::MemoryStore;
use tidelake_sync::verify::{TableVerification, VerifyRequest, verify};
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

pub(crate) struct Shop {
    pub(crate) database: MemoryDatabase,
    pub(crate) storage: Arc<MemoryStorage>,
    pub(crate) app: Application,
    attempts: AtomicU32,
    ticks: AtomicU32,
}

/// What a shop is opened with.
pub(crate) struct Opening {
    /// What follows the table's name in `--incremental-table`; none for a full
    /// table.
    pub(crate) cursor: Option<&'static str>,
    /// Whether the table has a key.
    pub(crate) has_key: bool,
    pub(crate) null_cursor: NullCursor,
    pub(crate) lookback: Option<&'static str>,
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            cursor: Some("seq:integer"),
            has_key: true,
            null_cursor: NullCursor::First,
            lookback: None,
        }
    }
}

pub(crate) fn orders() -> TableName {
    TableName::new("main", "orders")
}

fn folder() -> String {
    "main/orders".to_owned()
}

pub(crate) fn integer(number: i128) -> Option<Value> {
    Some(Value::Integer(number))
}

pub(crate) fn text(value: &str) -> Option<Value> {
    Some(Value::Text(value.to_owned()))
}

impl Shop {
    pub(crate) async fn open(opening: Opening) -> Self {
        let database = MemoryDatabase::new();
        let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let mut columns = vec![
            column("id", DataType::Int64, false).unwrap(),
            column("seq", DataType::Int64, true).unwrap(),
            column("at", instant, true).unwrap(),
            column("name", DataType::Utf8, true).unwrap(),
            column("price", DataType::Decimal128(12, 2), true).unwrap(),
            column("day", DataType::Date32, true).unwrap(),
            column("photo", DataType::Binary, true).unwrap(),
        ];
        if opening.has_key {
            columns[0].key_position = Some(0);
        }
        database
            .create_table(Table {
                name: orders(),
                kind: TableKind::Table,
                columns,
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
        let incremental = opening
            .cursor
            .map(|cursor| IncrementalRequest::parse(&format!("main.orders:{cursor}")).unwrap());
        let config = SyncConfig {
            null_cursor: opening.null_cursor,
            lookback: opening.lookback.map(str::to_owned),
            ..config()
        };
        let draft = SyncDraft {
            config,
            incremental: incremental.into_iter().collect(),
            columns: Default::default(),
            dry_run: false,
        };
        create(&app, draft).await.unwrap();
        Self { database, storage, app, attempts: AtomicU32::new(100), ticks: AtomicU32::new(1) }
    }

    /// A row of that id whose cursor is the next number.
    pub(crate) fn row(&self, id: i128) -> Row {
        self.row_at(id, Some(self.ticks.fetch_add(1, Ordering::Relaxed).into()))
    }

    /// Up to which number cursors were given.
    pub(crate) fn last_tick(&self) -> i128 {
        i128::from(self.ticks.load(Ordering::Relaxed)) - 1
    }

    pub(crate) fn row_at(&self, id: i128, seq: Option<i128>) -> Row {
        let tick = seq.unwrap_or(0);
        let at = Value::Timestamp((1_764_000_000 + tick) * 1_000_000_000);
        vec![
            integer(id),
            seq.map(Value::Integer),
            seq.map(|_| at),
            text(&format!("order {id} at {tick}")),
            Some(Value::parse(Kind::Number, &format!("{tick}.50")).unwrap()),
            (id % 3 != 0).then(|| Value::Date(20_000 + i64::try_from(id).unwrap())),
            (id % 2 != 0).then(|| Value::Binary(vec![0, id.rem_euclid(256) as u8])),
        ]
    }

    pub(crate) fn insert(&self, rows: impl IntoIterator<Item = Row>) {
        self.database.insert_committed(&orders(), rows).unwrap();
    }

    /// Sells orders of those ids.
    pub(crate) fn sell(&self, ids: std::ops::RangeInclusive<i128>) {
        self.insert(ids.map(|id| self.row(id)).collect::<Vec<_>>());
        self.advance_clock();
    }

    /// Changes the row of an id; its cursor moves on only if the change says so.
    pub(crate) fn change(&self, id: i128, change: impl Fn(&mut Row)) {
        let is_meant = |row: &Row| row[0] == integer(id);
        let rows = self.database.rows(&orders()).unwrap();
        let mut row = rows.into_iter().find(|row| is_meant(row)).unwrap();
        self.database.delete(&orders(), is_meant).unwrap();
        change(&mut row);
        self.insert([row]);
    }

    /// Updates a row as its owner would: the cursor moves on.
    pub(crate) fn update(&self, id: i128) {
        let row = self.row(id);
        self.change(id, |old| *old = row.clone());
        self.advance_clock();
    }

    pub(crate) fn delete(&self, id: i128) {
        assert_eq!(self.database.delete(&orders(), |row| row[0] == integer(id)).unwrap(), 1);
    }

    fn advance_clock(&self) {
        self.database.set_now((1_764_000_000 + self.last_tick() + 60) * 1_000_000_000);
    }

    pub(crate) async fn sync(&self) -> RunReport {
        let request = RunRequest {
            env: String::new(),
            sync_id: "shop".into(),
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

    pub(crate) fn request(&self) -> VerifyRequest {
        VerifyRequest {
            env: String::new(),
            sync_id: "shop".into(),
            tables: vec![],
            limit: 20,
            values: true,
            checksums: false,
            repair: false,
            cores: 2,
            cancel: CancellationToken::new(),
            events: Arc::new(Quiet),
        }
    }

    pub(crate) async fn verify(&self) -> TableVerification {
        self.verify_as(self.request()).await
    }

    pub(crate) async fn repair(&self) -> TableVerification {
        self.verify_as(VerifyRequest { repair: true, ..self.request() }).await
    }

    pub(crate) async fn verify_as(&self, request: VerifyRequest) -> TableVerification {
        let mut report = verify(&self.app, request).await.unwrap();
        assert_eq!(report.tables.len(), 1);
        report.tables.remove(0)
    }

    pub(crate) fn lake(&self) -> TableLake {
        let storage: Arc<dyn Storage> = self.storage.clone();
        Lake::new(storage).table(None, &orders())
    }

    pub(crate) async fn files(&self) -> Vec<DataFile> {
        let lake = self.lake();
        let latest = lake.latest().await.unwrap().unwrap();
        lake.live_files(&latest).await.unwrap()
    }

    /// Key of an object in the storage.
    pub(crate) fn key(&self, file: &DataFile) -> String {
        format!("{}/{}", folder(), file.key)
    }

    /// The rows of a file.
    pub(crate) async fn rows_of(&self, file: &DataFile) -> RecordBatch {
        let lake = self.lake();
        let latest = lake.latest().await.unwrap().unwrap();
        let manifest = lake.manifest(latest.manifests.last().unwrap()).await.unwrap();
        let schema = Arc::new(manifest.schema);
        let batches: Vec<_> =
            lake.rows(vec![file.clone()], Arc::clone(&schema)).try_collect().await.unwrap();
        concat_batches(&schema, &batches).unwrap()
    }

    /// Every row in the lake: id and cursor, and how often.
    pub(crate) async fn lake_rows(&self) -> BTreeMap<String, u32> {
        use arrow::util::display::array_value_to_string;
        let mut counts = BTreeMap::new();
        for file in self.files().await {
            let rows = self.rows_of(&file).await;
            for row in 0..rows.num_rows() {
                let cells = rows.columns().iter().map(|column| match column.data_type() {
                    // Zones cannot be printed here.
                    DataType::Timestamp(..) => {
                        let numbers = arrow::compute::cast(column, &DataType::Int64).unwrap();
                        array_value_to_string(&numbers, row).unwrap()
                    }
                    _ => array_value_to_string(column, row).unwrap(),
                });
                *counts.entry(cells.collect::<Vec<_>>().join("|")).or_default() += 1;
            }
        }
        counts
    }

    /// Replaces a file by one of other rows, and tells its manifest so: nothing
    /// but a comparison of values can find out.
    pub(crate) async fn rewrite(&self, number: usize, change: impl Fn(RecordBatch) -> RecordBatch) {
        let lake = self.lake();
        let file = self.files().await.remove(number);
        let rows = change(self.rows_of(&file).await);
        let run: RunId = file.key.split('-').next().unwrap().parse().unwrap();
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed).into();
        let settings = WriterSettings::new(run, attempt, 0, rows.schema());
        let mut writer = lake.writer(settings).unwrap();
        let extent = FileExtent {
            min: file.cursor_min.clone(),
            max: file.cursor_max.clone(),
            nulls: file.cursor_nulls,
        };
        writer.write(&rows, extent).await.unwrap();
        let written = writer.finish().await.unwrap();
        assert_eq!(written.len(), 1);
        let (new, staged) = &written[0];
        lake.complete(staged).await.unwrap();
        let latest = lake.latest().await.unwrap().unwrap();
        for live in &latest.manifests {
            let mut manifest: Manifest = lake.manifest(live).await.unwrap();
            for listed in &mut manifest.files {
                if listed.key == file.key {
                    *listed = new.clone();
                }
            }
            let key = format!("{}/{}", folder(), live.key);
            let bytes = serde_json::to_vec(&manifest).unwrap();
            self.storage.put(&key, bytes.into()).await.unwrap();
        }
    }
}

/// The rows of these numbers, in this order.
pub(crate) fn rows(batch: &RecordBatch, numbers: &[usize]) -> RecordBatch {
    let numbers = UInt64Array::from(numbers.iter().map(|n| *n as u64).collect::<Vec<_>>());
    let columns = batch.columns().iter().map(|column| take(column, &numbers, None).unwrap());
    RecordBatch::try_new(batch.schema(), columns.collect()).unwrap()
}

/// The same batch with a cell of one row taken from another row, or NULL.
pub(crate) fn with_cell(
    batch: &RecordBatch,
    column: usize,
    row: usize,
    from: Option<usize>,
) -> RecordBatch {
    let places = (0..batch.num_rows())
        .map(|place| if place == row { from.map(|from| from as u64) } else { Some(place as u64) });
    let places = UInt64Array::from(places.collect::<Vec<_>>());
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    columns[column] = take(&columns[column], &places, None).unwrap();
    RecordBatch::try_new(batch.schema(), columns).unwrap()
}

fn config() -> SyncConfig {
    SyncConfig {
        sync_id: "shop".into(),
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
        safety_lag: 0,
        lookback: None,
        safety_gap: None,
        null_cursor: NullCursor::First,
        cursor_zone: None,
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
        schema_drift: SchemaDrift::default(),
        target: TargetSettings {
            location: TargetLocation::Folder("memory".into()),
            sub_path: None,
        },
        parallel: None,
        n_jobs: 1,
        large_table_threshold: 1_000_000,
        read_settings: vec![],
        compression: Compression::None,
        memory_limit: 64 << 20,
        publish: None,
        metadata: None,
        error_action: ErrorAction::Fail,
        keep_generations: 0,
    }
}
