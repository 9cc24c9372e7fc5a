//! One small world: the database, and everything that a run is given.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use arrow::datatypes::{DataType, TimeUnit};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tidelake_connector::memory::{MemoryDatabase, MemoryPublisher, TransactionId, column};
use tidelake_lake::MemoryStorage;
use tidelake_model::{
    Compression, ErrorAction, FenceMode, FenceSettings, IncrementalTable, NullCursor, Policies,
    PublishMethod, PublishSettings, SourceSettings, Strategy, SyncConfig, Table, TableKind,
    TableName, TargetLocation, TargetSettings,
};
use tidelake_state::memory::MemoryStore;
use tidelake_watermark::{Cursor, Direction, Kind, Value};

pub(crate) const SECOND: i128 = 1_000_000_000;
/// 2026-11-30T00:00:00Z.
const START: i128 = 1_795_996_800 * SECOND;

/// Which cursor the events follow in a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The start of the row's transaction, by the source's clock.
    Time,
    /// The day of it.
    Day,
    /// A sequence.
    Number,
}

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) shape: Shape,
    pub(crate) direction: Direction,
    pub(crate) null_cursor: NullCursor,
    pub(crate) publishes: bool,
    pub(crate) lag_seconds: i128,
    pub(crate) database: MemoryDatabase,
    pub(crate) store: MemoryStore,
    pub(crate) storage: Arc<MemoryStorage>,
    pub(crate) publisher: MemoryPublisher,
    /// Seconds of the state store's clock.
    pub(crate) state_clock: Arc<AtomicI64>,
    pub(crate) random: Mutex<SmallRng>,
    pub(crate) open: Mutex<Vec<(TransactionId, i128)>>,
    /// The latest moment that the source's clock ever showed.
    latest: Mutex<i128>,
    next_id: AtomicI64,
    pub(crate) next_run: AtomicI64,
    /// Whether the database changes by itself between the steps of a run.
    pub(crate) busy: std::sync::atomic::AtomicBool,
}

pub(crate) fn events() -> TableName {
    TableName::new("main", "events")
}

pub(crate) fn kinds_table() -> TableName {
    TableName::new("main", "kinds")
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let shape = match random.random_range(0..4) {
            0 | 1 => Shape::Time,
            2 => Shape::Number,
            _ => Shape::Day,
        };
        let direction =
            if random.random_ratio(1, 5) { Direction::Exclusive } else { Direction::Inclusive };
        let null_cursor =
            if random.random_ratio(1, 4) { NullCursor::Exclude } else { NullCursor::First };
        let publishes = random.random_ratio(1, 3);
        let lag_seconds = if random.random() { 0 } else { 60 };
        let state_clock = Arc::new(AtomicI64::new(0));
        let clock = Arc::clone(&state_clock);
        let store = MemoryStore::with_clock(Arc::new(move || {
            START + i128::from(clock.load(Ordering::Relaxed)) * SECOND
        }))
        .with_counted_ids();
        let database = MemoryDatabase::new();
        database.set_now(START + 12 * 3_600 * SECOND);
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let cursor = match shape {
            Shape::Time => column("at", timestamp, true),
            Shape::Day => column("at", DataType::Date32, true),
            Shape::Number => column("at", DataType::Int64, true),
        };
        let table = |name, columns| Table {
            name,
            kind: TableKind::Table,
            columns,
            estimated_rows: None,
            estimated_bytes: None,
        };
        let id = || column("id", DataType::Int64, false).unwrap();
        database.create_table(table(events(), vec![id(), cursor.unwrap()])).unwrap();
        database.create_table(table(kinds_table(), vec![id()])).unwrap();
        Self {
            seed,
            shape,
            direction,
            null_cursor,
            publishes,
            lag_seconds,
            database,
            store,
            storage: tidelake_lake::memory(),
            publisher: MemoryPublisher::new(),
            state_clock,
            random: Mutex::new(random),
            open: Mutex::default(),
            latest: Mutex::new(START + 12 * 3_600 * SECOND),
            next_id: AtomicI64::new(1),
            next_run: AtomicI64::new(1),
            busy: true.into(),
        }
    }

    /// Tells the story of a schedule, where `TIDELAKE_STORY` asks for it.
    pub(crate) fn tell(&self, what: impl Fn() -> String) {
        if std::env::var_os("TIDELAKE_STORY").is_some() {
            eprintln!("seed {}: {}", self.seed, what());
        }
    }

    /// One in `n`.
    pub(crate) fn chance(&self, n: u32) -> bool {
        self.random.lock().unwrap().random_ratio(1, n)
    }

    pub(crate) fn below(&self, n: u32) -> u32 {
        self.random.lock().unwrap().random_range(0..n)
    }

    pub(crate) fn pick(&self, n: u32) -> usize {
        usize::try_from(self.below(n)).unwrap()
    }

    pub(crate) fn advance_state_clock(&self, seconds: i64) {
        self.state_clock.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Something happens in the database: transactions begin, write, end; time
    /// passes, or steps back by no more than the lag.
    pub(crate) fn live(&self) {
        match self.below(12) {
            0 => self.begin(),
            1..=4 => self.write(),
            5 | 6 => self.end(false),
            7 => self.end(true),
            8 | 9 => self.pass_time(),
            10 => self.change_kinds(),
            _ => {}
        }
    }

    /// What may happen between two steps of a run.
    pub(crate) fn live_between(&self) {
        if self.busy.load(Ordering::Relaxed) && self.chance(3) {
            let burst = if self.chance(4) { 8 } else { 1 };
            for _ in 0..burst {
                self.live();
            }
        }
    }

    /// A row whose stamp was kept back arrives above everything that was
    /// exported, and below the watermark.
    pub(crate) fn arrive_late(&self, above: i128, up_to: i128) {
        let span = u32::try_from(((up_to - above) / 1_000).clamp(0, 1 << 30)).unwrap();
        if self.shape != Shape::Time || span == 0 {
            return;
        }
        let stamp = above + 1_000 * (1 + i128::from(self.below(span)));
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.tell(|| format!("row {id} arrives late, stamped {}", Value::Timestamp(stamp)));
        let row = vec![Some(Value::Integer(id.into())), Some(Value::Timestamp(stamp))];
        self.database.insert_committed(&events(), vec![row]).unwrap();
    }

    fn begin(&self) {
        let transaction = self.database.begin();
        self.open.lock().unwrap().push((transaction, self.database.now()));
    }

    /// Writes into an open transaction, with the stamp of the transaction's start
    /// as `now()` gives it, or with the next number of a sequence.
    fn write(&self) {
        if self.open.lock().unwrap().is_empty() {
            self.begin();
        }
        let open = self.open.lock().unwrap();
        let at = usize::try_from(self.below(u32::try_from(open.len()).unwrap())).unwrap();
        let (transaction, started) = open[at];
        drop(open);
        for _ in 0..=self.below(3) {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            let cursor = match self.shape {
                Shape::Time => Value::Timestamp(started),
                Shape::Day => {
                    Value::Date(i64::try_from(started.div_euclid(86_400 * SECOND)).unwrap())
                }
                Shape::Number => Value::Integer(id.into()),
            };
            let cursor = if self.chance(12) { None } else { Some(cursor) };
            let row = vec![Some(Value::Integer(id.into())), cursor];
            self.database.insert(transaction, &events(), row).unwrap();
        }
    }

    fn end(&self, rolls_back: bool) {
        let mut open = self.open.lock().unwrap();
        if open.is_empty() {
            return;
        }
        let at = usize::try_from(self.below(u32::try_from(open.len()).unwrap())).unwrap();
        let (transaction, _) = open.swap_remove(at);
        if rolls_back {
            self.database.rollback(transaction).unwrap();
        } else {
            self.database.commit(transaction).unwrap();
        }
    }

    pub(crate) fn commit_all(&self) {
        for (transaction, _) in self.open.lock().unwrap().drain(..) {
            self.database.commit(transaction).unwrap();
        }
    }

    /// Time passes; now and then the clock is set back, but never by more than
    /// the safety lag below what it once showed.
    fn pass_time(&self) {
        let step = match self.shape {
            Shape::Day => i128::from(self.below(20)) * 3_600 * SECOND,
            _ => i128::from(self.below(2_000)) * SECOND / 10,
        };
        let mut latest = self.latest.lock().unwrap();
        let now = if self.shape == Shape::Time && self.chance(6) {
            (self.database.now() - step).max(*latest - self.lag_seconds * SECOND)
        } else {
            self.database.now() + step
        };
        *latest = now.max(*latest);
        self.database.set_now(now);
    }

    fn change_kinds(&self) {
        if self.chance(4) {
            self.database.truncate(&kinds_table()).unwrap();
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let row = vec![Some(Value::Integer(id.into()))];
        self.database.insert_committed(&kinds_table(), vec![row]).unwrap();
    }

    pub(crate) fn config(&self) -> SyncConfig {
        let kind = match self.shape {
            Shape::Time => Kind::Timestamp,
            Shape::Day => Kind::Date,
            Shape::Number => Kind::Integer,
        };
        let lag = if self.shape == Shape::Number { 0 } else { self.lag_seconds };
        SyncConfig {
            sync_id: "simulated".into(),
            env: String::new(),
            source: SourceSettings {
                credential_id: "source".into(),
                connector_type: "memory".into(),
                database: None,
                schemas: vec![],
                include: vec![],
                exclude: vec![],
                min_rows: None,
                max_rows: None,
            },
            incremental: vec![IncrementalTable {
                table: events(),
                cursor: Cursor::Single("at".into()),
                kinds: vec![kind],
                day_ticks: false,
                direction: self.direction,
                start: None,
                strategy: Strategy::Append,
            }],
            safety_lag: u64::try_from(lag).unwrap(),
            lookback: None,
            safety_gap: None,
            null_cursor: self.null_cursor,
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
            schema_drift: tidelake_model::SchemaDrift::default(),
            target: TargetSettings {
                location: TargetLocation::Folder("memory".into()),
                sub_path: None,
            },
            parallel: Some(2),
            n_jobs: 2,
            large_table_threshold: 1,
            read_settings: vec![],
            compression: Compression::None,
            memory_limit: 64 << 20,
            publish: self.publishes.then(|| PublishSettings {
                credential_id: "target".into(),
                connector_type: "memory".into(),
                method: PublishMethod::Internal,
                database: None,
                schema_pattern: "{schema}".into(),
                table_pattern: "{table}".into(),
                primary_keys: false,
            }),
            metadata: None,
            error_action: ErrorAction::Continue,
            keep_generations: 0,
        }
    }
}
