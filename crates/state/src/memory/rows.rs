//! Rows in sorted maps, with a list of what to undo.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use tidelake_model::{
    HistoryRow, Result, RunId, RunRecord, RunStatus, SyncConfig, TableKey, TableRun,
    TableRunStatus, WatermarkFilter, WatermarkRecord,
};

use crate::rows::{IDENTITY, Rows, TableFilter, TableRow};
use crate::store::{PruneFilter, RunFilter};
use crate::time::time_text;

/// Everything that is stored.
#[derive(Clone, Default)]
pub(super) struct Data {
    counts_ids: bool,
    ids: u64,
    meta: BTreeMap<String, String>,
    syncs: BTreeMap<(String, String), SyncConfig>,
    tables: BTreeMap<TableKey, TableRow>,
    watermarks: BTreeMap<String, WatermarkRecord>,
    history: BTreeMap<String, Vec<HistoryRow>>,
    runs: BTreeMap<RunId, RunRecord>,
    table_runs: BTreeMap<TableKey, BTreeMap<RunId, TableRun>>,
}

impl Data {
    pub(super) fn new(counts_ids: bool) -> Self {
        let mut data = Self { counts_ids, ..Self::default() };
        let identity = data.new_id();
        data.meta.insert(IDENTITY.to_owned(), identity);
        data
    }

    fn new_id(&mut self) -> String {
        if self.counts_ids {
            self.ids += 1;
            return RunId::from_number(u128::from(self.ids)).to_string();
        }
        ulid::Ulid::new().to_string()
    }
}

/// Takes back one write.
type Undo = Box<dyn FnOnce(&mut Data) + Send>;

/// One transaction. Undoing what was written costs less than copying all before.
pub(super) struct MemoryRows<'a> {
    data: &'a mut Data,
    now: i128,
    undo: Vec<Undo>,
}

/// Puts a map's entry back as it was.
fn put_back<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, before: Option<V>) {
    match before {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}

/// Later runs of a table are greater.
fn order(run: &TableRun) -> (String, RunId) {
    (run.started_at.clone(), run.run_id)
}

fn matches<T: PartialEq>(wanted: Option<&T>, found: &T) -> bool {
    wanted.is_none_or(|wanted| wanted == found)
}

impl<'a> MemoryRows<'a> {
    pub(super) fn new(data: &'a mut Data, now: i128) -> Self {
        Self { data, now, undo: vec![] }
    }

    /// Takes all writes back.
    pub(super) fn undo(&mut self) {
        while let Some(undo) = self.undo.pop() {
            undo(self.data);
        }
    }

    fn on_undo(&mut self, undo: impl FnOnce(&mut Data) + Send + 'static) {
        self.undo.push(Box::new(undo));
    }

    fn select_tables(&self, filter: &TableFilter) -> Vec<TableRow> {
        let is_meant = |row: &&TableRow| {
            let run_id = row.lease.as_ref().map(|lease| lease.run_id);
            matches(filter.env.as_ref(), &row.key.env)
                && matches(filter.scope.as_ref(), &row.key.scope)
                && (filter.run_id.is_none() || run_id == filter.run_id)
                && (!filter.leased || run_id.is_some())
        };
        self.data.tables.values().filter(is_meant).cloned().collect()
    }
}

#[async_trait]
impl Rows for MemoryRows<'_> {
    async fn now(&mut self) -> Result<i128> {
        Ok(self.now)
    }

    fn new_id(&mut self) -> String {
        self.data.new_id()
    }

    async fn meta(&mut self, name: &str) -> Result<Option<String>> {
        Ok(self.data.meta.get(name).cloned())
    }

    async fn set_meta(&mut self, name: &str, value: &str) -> Result<()> {
        let before = self.data.meta.insert(name.to_owned(), value.to_owned());
        let name = name.to_owned();
        self.on_undo(move |data| put_back(&mut data.meta, name, before));
        Ok(())
    }

    async fn insert_sync(&mut self, sync: &SyncConfig, _now: i128) -> Result<bool> {
        let key = (sync.env.clone(), sync.sync_id.clone());
        if self.data.syncs.contains_key(&key) {
            return Ok(false);
        }
        self.data.syncs.insert(key.clone(), sync.clone());
        self.on_undo(move |data| put_back(&mut data.syncs, key, None));
        Ok(true)
    }

    async fn syncs(&mut self, env: Option<&str>) -> Result<Vec<SyncConfig>> {
        let is_meant = |sync: &&SyncConfig| env.is_none_or(|env| sync.env == env);
        Ok(self.data.syncs.values().filter(is_meant).cloned().collect())
    }

    async fn delete_sync(&mut self, env: &str, sync_id: &str) -> Result<bool> {
        let key = (env.to_owned(), sync_id.to_owned());
        let before = self.data.syncs.remove(&key);
        let existed = before.is_some();
        self.on_undo(move |data| put_back(&mut data.syncs, key, before));
        Ok(existed)
    }

    async fn lock_tables(&mut self, keys: &[TableKey]) -> Result<Vec<TableRow>> {
        let mut locked = vec![];
        for key in keys {
            if let Some(row) = self.data.tables.get(key) {
                locked.push(row.clone());
                continue;
            }
            let row = TableRow::new(key.clone());
            self.save_tables(std::slice::from_ref(&row)).await?;
            locked.push(row);
        }
        Ok(locked)
    }

    async fn lock_matching(&mut self, filter: &TableFilter) -> Result<Vec<TableRow>> {
        Ok(self.select_tables(filter))
    }

    async fn tables(&mut self, filter: &TableFilter) -> Result<Vec<TableRow>> {
        Ok(self.select_tables(filter))
    }

    async fn save_tables(&mut self, rows: &[TableRow]) -> Result<()> {
        for row in rows {
            let before = self.data.tables.insert(row.key.clone(), row.clone());
            let key = row.key.clone();
            self.on_undo(move |data| put_back(&mut data.tables, key, before));
        }
        Ok(())
    }

    async fn watermark(&mut self, id: &str) -> Result<Option<WatermarkRecord>> {
        Ok(self.data.watermarks.get(id).cloned())
    }

    async fn watermarks(&mut self, filter: &WatermarkFilter) -> Result<Vec<WatermarkRecord>> {
        let is_meant = |record: &&WatermarkRecord| {
            let key = &record.key;
            matches(filter.env.as_ref(), &key.env)
                && matches(filter.scope.as_ref(), &key.scope)
                && matches(filter.connector_type.as_ref(), &key.connector_type)
                && matches(filter.source_key.as_ref(), &key.source_key)
                && filter.table.as_ref().is_none_or(|wanted| {
                    key.table.as_ref().is_some_and(|table| table.to_string() == *wanted)
                })
        };
        let mut found: Vec<_> = self.data.watermarks.values().filter(is_meant).cloned().collect();
        found.sort_by(|left, right| left.key.cmp(&right.key));
        Ok(found)
    }

    async fn watermarks_of(&mut self, keys: &[TableKey]) -> Result<Vec<WatermarkRecord>> {
        let is_meant = |record: &&WatermarkRecord| keys.contains(&record.key);
        Ok(self.data.watermarks.values().filter(is_meant).cloned().collect())
    }

    async fn save_watermark(&mut self, record: &WatermarkRecord) -> Result<()> {
        let before = self.data.watermarks.insert(record.id.clone(), record.clone());
        let id = record.id.clone();
        self.on_undo(move |data| put_back(&mut data.watermarks, id, before));
        Ok(())
    }

    async fn delete_watermark(&mut self, id: &str) -> Result<()> {
        let record = self.data.watermarks.remove(id);
        let history = self.data.history.remove(id);
        let id = id.to_owned();
        self.on_undo(move |data| {
            put_back(&mut data.watermarks, id.clone(), record);
            put_back(&mut data.history, id, history);
        });
        Ok(())
    }

    async fn history(&mut self, id: &str, limit: u32) -> Result<Vec<HistoryRow>> {
        let limit =
            if limit == 0 { usize::MAX } else { usize::try_from(limit).unwrap_or(usize::MAX) };
        let newest_first = self.data.history.get(id).into_iter().flatten().rev();
        Ok(newest_first.take(limit).cloned().collect())
    }

    async fn insert_history(&mut self, id: &str, row: &HistoryRow) -> Result<()> {
        self.data.history.entry(id.to_owned()).or_default().push(row.clone());
        let id = id.to_owned();
        self.on_undo(move |data| {
            if let Some(history) = data.history.get_mut(&id) {
                history.pop();
            }
        });
        Ok(())
    }

    async fn run(&mut self, run_id: RunId) -> Result<Option<RunRecord>> {
        Ok(self.data.runs.get(&run_id).cloned())
    }

    async fn runs(&mut self, filter: &RunFilter) -> Result<Vec<RunRecord>> {
        let is_meant = |run: &&RunRecord| {
            matches(filter.env.as_ref(), &run.env)
                && matches(filter.scope.as_ref(), &run.scope)
                && matches(filter.run_id.as_ref(), &run.run_id)
                && matches(filter.status.as_ref(), &run.status)
        };
        let mut found: Vec<_> = self.data.runs.values().filter(is_meant).cloned().collect();
        found.sort_by(|left, right| {
            (&right.started_at, right.run_id).cmp(&(&left.started_at, left.run_id))
        });
        if filter.limit > 0 {
            found.truncate(usize::try_from(filter.limit).unwrap_or(usize::MAX));
        }
        Ok(found)
    }

    async fn save_run(&mut self, run: &RunRecord) -> Result<()> {
        let before = self.data.runs.insert(run.run_id, run.clone());
        let run_id = run.run_id;
        self.on_undo(move |data| put_back(&mut data.runs, run_id, before));
        Ok(())
    }

    async fn table_run(&mut self, run_id: RunId, key: &TableKey) -> Result<Option<TableRun>> {
        Ok(self.data.table_runs.get(key).and_then(|runs| runs.get(&run_id)).cloned())
    }

    async fn table_runs(&mut self, run_id: RunId) -> Result<Vec<TableRun>> {
        let of_run = self.data.table_runs.values().filter_map(|runs| runs.get(&run_id));
        let mut found: Vec<_> = of_run.cloned().collect();
        found.sort_by(|left, right| left.table.cmp(&right.table));
        Ok(found)
    }

    async fn unfinished(&mut self, keys: &[TableKey]) -> Result<Vec<(TableKey, TableRun)>> {
        let mut found = vec![];
        for key in keys {
            for run in self.data.table_runs.get(key).into_iter().flat_map(BTreeMap::values) {
                if run.status.is_unfinished() {
                    found.push((key.clone(), run.clone()));
                }
            }
        }
        found.sort_by_key(|(_, run)| (run.token, run.run_id));
        Ok(found)
    }

    async fn runs_of_table(&mut self, key: &TableKey, limit: u32) -> Result<Vec<TableRun>> {
        let of_table = self.data.table_runs.get(key).into_iter().flat_map(BTreeMap::values);
        let mut found: Vec<_> = of_table.cloned().collect();
        found.sort_by_key(|run| std::cmp::Reverse(order(run)));
        if limit > 0 {
            found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        Ok(found)
    }

    async fn prunable(&mut self, filter: &PruneFilter, until: i128) -> Result<Vec<RunRecord>> {
        let mut kept = BTreeSet::new();
        for row in self.data.tables.values() {
            kept.extend(row.head.as_ref().map(|head| head.run_id));
            kept.extend(row.lease.as_ref().map(|lease| lease.run_id));
        }
        for runs in self.data.table_runs.values() {
            let completed = runs.values().filter(|run| run.status == TableRunStatus::Completed);
            kept.extend(completed.max_by_key(|run| order(run)).map(|run| run.run_id));
            let unfinished = runs.values().filter(|run| run.status.is_unfinished());
            kept.extend(unfinished.map(|run| run.run_id));
        }
        let until = time_text(until);
        let is_old = |run: &&RunRecord| {
            matches(filter.env.as_ref(), &run.env)
                && matches(filter.scope.as_ref(), &run.scope)
                && (filter.statuses.is_empty() || filter.statuses.contains(&run.status))
                && run.status != RunStatus::Running
                && run.finished_at.as_ref().is_some_and(|at| *at <= until)
                && !kept.contains(&run.run_id)
        };
        let mut found: Vec<_> = self.data.runs.values().filter(is_old).cloned().collect();
        found.sort_by(|left, right| {
            (&left.started_at, left.run_id).cmp(&(&right.started_at, right.run_id))
        });
        Ok(found)
    }

    async fn delete_run(&mut self, run_id: RunId) -> Result<()> {
        let before = self.data.runs.remove(&run_id);
        self.on_undo(move |data| put_back(&mut data.runs, run_id, before));
        let mut removed = vec![];
        for (key, runs) in &mut self.data.table_runs {
            removed.extend(runs.remove(&run_id).map(|run| (key.clone(), run)));
        }
        self.on_undo(move |data| {
            for (key, run) in removed {
                data.table_runs.entry(key).or_default().insert(run_id, run);
            }
        });
        Ok(())
    }

    async fn save_table_run(&mut self, key: &TableKey, record: &TableRun) -> Result<()> {
        let of_table = self.data.table_runs.entry(key.clone()).or_default();
        let before = of_table.insert(record.run_id, record.clone());
        let (key, run_id) = (key.clone(), record.run_id);
        self.on_undo(move |data| put_back(data.table_runs.entry(key).or_default(), run_id, before));
        Ok(())
    }

    async fn clear(&mut self) -> Result<()> {
        let empty =
            Data { counts_ids: self.data.counts_ids, ids: self.data.ids, ..Data::default() };
        let before = std::mem::replace(self.data, empty);
        self.on_undo(move |data| *data = before);
        Ok(())
    }

    async fn destroy(&mut self) -> Result<()> {
        self.clear().await
    }
}
