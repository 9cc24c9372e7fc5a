//! Runs on which nothing rests any more.

use tidelake_model::{Result, RunId, RunRecord};

use super::runs::{RUN, name_of, select_runs};
use super::{Cell, Session, Statement};
use crate::store::PruneFilter;

/// The same table, in two rows of `table_runs`.
const SAME_TABLE: &str = "later.env = mine.env AND later.scope = mine.scope AND \
    later.connector_type = mine.connector_type AND later.source_key = mine.source_key AND \
    later.schema_name = mine.schema_name AND later.table_name = mine.table_name";

pub(super) async fn prunable<S: Session>(
    session: &mut S,
    filter: &PruneFilter,
    until: i128,
) -> Result<Vec<RunRecord>> {
    let mut statement = Statement::new(format!("SELECT {RUN} FROM runs WHERE status <> 'running'"))
        .filter("env", filter.env.as_ref())
        .filter("scope", filter.scope.as_ref())
        .sql(" AND finished_at <= ")
        .bind(Cell::from(until));
    if !filter.statuses.is_empty() {
        let names = filter.statuses.iter().map(name_of).collect::<Result<Vec<_>>>()?;
        statement =
            statement.sql(" AND status IN ").tuple(names.into_iter().map(Cell::from).collect());
    }
    let statement = statement
        .sql(
            " AND NOT EXISTS (SELECT 1 FROM table_state held WHERE held.head_run_id = runs.run_id \
             OR held.run_id = runs.run_id) AND NOT EXISTS (SELECT 1 FROM table_runs mine WHERE \
             mine.run_id = runs.run_id AND (mine.status IN ('reading', 'committing', 'committed') \
             OR (mine.status = 'completed' AND NOT EXISTS (SELECT 1 FROM table_runs later WHERE ",
        )
        .sql(SAME_TABLE)
        .sql(
            " AND later.status = 'completed' AND (later.started_at, later.run_id) > \
             (mine.started_at, mine.run_id))))) ORDER BY started_at, run_id",
        );
    select_runs(session, statement).await
}

pub(super) async fn delete<S: Session>(session: &mut S, run_id: RunId) -> Result<()> {
    for table in ["table_runs", "runs"] {
        let statement = Statement::new(format!("DELETE FROM {table} WHERE run_id = ")).bind(run_id);
        session.execute(&statement).await?;
    }
    Ok(())
}
