//! [`Rows`] over a [`Session`].

use async_trait::async_trait;
use tidelake_model::{
    HistoryRow, Result, RunId, RunRecord, SyncConfig, TableKey, TableRun, WatermarkFilter,
    WatermarkRecord,
};

use super::reader::Reader;
use super::{Cell, Session, Statement, TABLES, migrate, prune, runs, tables, watermarks};
use crate::rows::{Rows, TableFilter, TableRow};
use crate::store::{PruneFilter, RunFilter};

/// The rows of one transaction.
pub(crate) struct SqlRows<S>(pub(crate) S);

#[async_trait]
impl<S: Session> Rows for SqlRows<S> {
    async fn now(&mut self) -> Result<i128> {
        self.0.now().await
    }

    fn new_id(&mut self) -> String {
        ulid::Ulid::new().to_string()
    }

    async fn meta(&mut self, name: &str) -> Result<Option<String>> {
        let statement = Statement::new("SELECT value FROM meta WHERE name = ").bind(name);
        let found = self.0.query(&statement).await?.into_iter().next();
        found.map(|cells| Reader::new(cells).text()).transpose()
    }

    async fn set_meta(&mut self, name: &str, value: &str) -> Result<()> {
        let statement = Statement::new("INSERT INTO meta (name, value) VALUES ")
            .tuple(vec![name.into(), value.into()])
            .or_replace("name, value", "name");
        self.0.send(statement).await
    }

    async fn insert_sync(&mut self, sync: &SyncConfig, now: i128) -> Result<bool> {
        let cells =
            vec![Cell::from(&sync.env), Cell::from(&sync.sync_id), Cell::json(sync)?, now.into()];
        let statement =
            Statement::new("INSERT INTO syncs (env, sync_id, config, created_at) VALUES ")
                .tuple(cells)
                .or_nothing("env, sync_id");
        Ok(self.0.execute(&statement).await? == 1)
    }

    async fn syncs(&mut self, env: Option<&str>) -> Result<Vec<SyncConfig>> {
        let statement = Statement::new("SELECT config FROM syncs WHERE 1 = 1")
            .filter("env", env)
            .sql(" ORDER BY env, sync_id");
        let found = self.0.query(&statement).await?;
        found.into_iter().map(|cells| Reader::new(cells).json()).collect()
    }

    async fn delete_sync(&mut self, env: &str, sync_id: &str) -> Result<bool> {
        let statement = Statement::new("DELETE FROM syncs WHERE 1 = 1")
            .filter("env", Some(env))
            .filter("sync_id", Some(sync_id));
        Ok(self.0.execute(&statement).await? == 1)
    }

    async fn lock_tables(&mut self, keys: &[TableKey]) -> Result<Vec<TableRow>> {
        tables::lock(&mut self.0, keys).await
    }

    async fn lock_matching(&mut self, filter: &TableFilter) -> Result<Vec<TableRow>> {
        tables::matching(&mut self.0, filter, true).await
    }

    async fn tables(&mut self, filter: &TableFilter) -> Result<Vec<TableRow>> {
        tables::matching(&mut self.0, filter, false).await
    }

    async fn save_tables(&mut self, rows: &[TableRow]) -> Result<()> {
        tables::save(&mut self.0, rows).await
    }

    async fn watermark(&mut self, id: &str) -> Result<Option<WatermarkRecord>> {
        watermarks::get(&mut self.0, id).await
    }

    async fn watermarks(&mut self, filter: &WatermarkFilter) -> Result<Vec<WatermarkRecord>> {
        watermarks::matching(&mut self.0, filter).await
    }

    async fn watermarks_of(&mut self, keys: &[TableKey]) -> Result<Vec<WatermarkRecord>> {
        watermarks::of(&mut self.0, keys).await
    }

    async fn save_watermark(&mut self, record: &WatermarkRecord) -> Result<()> {
        watermarks::save(&mut self.0, record).await
    }

    async fn delete_watermark(&mut self, id: &str) -> Result<()> {
        watermarks::delete(&mut self.0, id).await
    }

    async fn history(&mut self, id: &str, limit: u32) -> Result<Vec<HistoryRow>> {
        watermarks::history(&mut self.0, id, limit).await
    }

    async fn insert_history(&mut self, id: &str, row: &HistoryRow) -> Result<()> {
        watermarks::insert_history(&mut self.0, id, row).await
    }

    async fn run(&mut self, run_id: RunId) -> Result<Option<RunRecord>> {
        runs::get(&mut self.0, run_id).await
    }

    async fn runs(&mut self, filter: &RunFilter) -> Result<Vec<RunRecord>> {
        runs::matching(&mut self.0, filter).await
    }

    async fn save_run(&mut self, run: &RunRecord) -> Result<()> {
        runs::save(&mut self.0, run).await
    }

    async fn table_run(&mut self, run_id: RunId, key: &TableKey) -> Result<Option<TableRun>> {
        runs::table_run(&mut self.0, run_id, key).await
    }

    async fn table_runs(&mut self, run_id: RunId) -> Result<Vec<TableRun>> {
        runs::table_runs(&mut self.0, run_id).await
    }

    async fn unfinished(&mut self, keys: &[TableKey]) -> Result<Vec<(TableKey, TableRun)>> {
        runs::unfinished(&mut self.0, keys).await
    }

    async fn runs_of_table(&mut self, key: &TableKey, limit: u32) -> Result<Vec<TableRun>> {
        runs::of_table(&mut self.0, key, limit).await
    }

    async fn prunable(&mut self, filter: &PruneFilter, until: i128) -> Result<Vec<RunRecord>> {
        prune::prunable(&mut self.0, filter, until).await
    }

    async fn delete_run(&mut self, run_id: RunId) -> Result<()> {
        prune::delete(&mut self.0, run_id).await
    }

    async fn save_table_run(&mut self, key: &TableKey, record: &TableRun) -> Result<()> {
        runs::save_table_run(&mut self.0, key, record).await
    }

    async fn clear(&mut self) -> Result<()> {
        let deletes = TABLES.map(|table| format!("DELETE FROM {table};"));
        self.0.batch(&deletes.concat()).await
    }

    async fn destroy(&mut self) -> Result<()> {
        let drops = TABLES.map(|table| format!("DROP TABLE IF EXISTS {table};"));
        self.0.batch(&drops.concat()).await?;
        self.0.batch(&format!("DROP TABLE IF EXISTS {};", migrate::HISTORY)).await
    }
}
