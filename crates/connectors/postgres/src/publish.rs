//! PostgreSQL as a publish target.

use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use tidelake_connector::{LedgerEntry, Load, Publisher, TargetTable};
use tidelake_model::{Error, ErrorKind, PublishMethod, Result, RunId, Strategy};
use tokio_postgres::types::{ToSql, Type};

use crate::catalogue::{columns, get, relation};
use crate::ddl::{Mapped, check_names, create, evolve, named, quoted_table};
use crate::encode::{Rows, header, trailer};
use crate::failure::failure;
use crate::literal::quoted;
use crate::pool::Pool;
use crate::session::Session;
use crate::{ddl, internal};

const LEDGER: &str = "_tidelake_loads";
const DOING: &str = "the rows cannot be loaded";
/// Bytes that are sent at once.
const PIECE: usize = 256 << 10;

/// A database that committed files are loaded into.
pub(crate) struct PostgresPublisher {
    pool: Arc<Pool>,
}

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

impl PostgresPublisher {
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        Self { pool }
    }

    async fn load_into(&self, session: &Session, load: &Load<'_>) -> Result<u64> {
        let target = load.target;
        let mapping = ddl::columns(load.manifest);
        check_names(target, &mapping)?;
        if target.table == LEDGER {
            let message = format!("{LEDGER:?} is the name of the ledger");
            return Err(Error::new(ErrorKind::Configuration, message)
                .with_hint("choose another --publish-table-pattern"));
        }
        prepare_schema(session, &target.schema).await?;
        session.run("BEGIN ISOLATION LEVEL READ COMMITTED", DOING).await?;
        lock(session, &format!("load {}", quoted_table(target))).await?;
        if let Some(rows) = recorded(session, target, load.manifest.run_id).await? {
            return Ok(rows);
        }
        check_owner(session, load).await?;
        let mapping = prepare_table(session, load, mapping).await?;
        let rows = copy(session, load, &mapping).await?;
        let expected: u64 = load.manifest.files.iter().map(|file| file.rows).sum();
        if rows != expected {
            let message = format!("{rows} rows were loaded, the manifest names {expected}");
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        record(session, load, rows).await?;
        session.run("COMMIT", "the load cannot be committed").await?;
        Ok(rows)
    }
}

#[async_trait]
impl Publisher for PostgresPublisher {
    fn supports(&self, method: PublishMethod, strategy: Strategy) -> bool {
        method == PublishMethod::Internal && strategy == Strategy::Append
    }

    async fn load(&self, load: &Load<'_>) -> Result<u64> {
        if !self.supports(load.method, load.strategy) {
            let message = format!("{} is not available for this target", load.strategy);
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let session = self.pool.get().await?;
        let loaded = self.load_into(&session, load).await;
        // After a commit this is a warning that nobody sees.
        if session.run("ROLLBACK", DOING).await.is_ok() {
            self.pool.put(session);
        }
        loaded.map_err(|error| error.in_table(&named(load.target)).in_run(load.manifest.run_id))
    }

    async fn ledger(&self, target: &TargetTable, run_id: RunId) -> Result<Option<LedgerEntry>> {
        let session = self.pool.get().await?;
        let name = tidelake_model::TableName::new(&target.schema, LEDGER);
        let rows = match relation(&session, &name).await? {
            Some(_) => recorded(&session, target, run_id).await?,
            None => None,
        };
        self.pool.put(session);
        Ok(rows.map(|rows| LedgerEntry { run_id, rows }))
    }
}

/// Waits for whoever does the same; the lock ends with the transaction.
async fn lock(session: &Session, what: &str) -> Result<()> {
    let statement = "SELECT pg_advisory_xact_lock(hashtextextended('tidelake ' || $1, 0))";
    let locked = session.client.query_typed(statement, &[(&what, Type::TEXT)]).await;
    locked.map(|_| ()).map_err(|error| failure(error, "another load is under way"))
}

fn ledger_table(schema: &str) -> String {
    format!("{}.{}", quoted(schema), quoted(LEDGER))
}

/// Makes schema and ledger in a short transaction of its own, because two loads
/// into one schema must not wait for one another.
async fn prepare_schema(session: &Session, schema: &str) -> Result<()> {
    let statement = "
        SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
               EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                       WHERE n.nspname = $1 AND c.relname = $2)";
    let parameters: [Parameter<'_>; 2] = [(&schema, Type::TEXT), (&LEDGER, Type::TEXT)];
    let exists = async || {
        let row = session.client.query_typed_one(statement, &parameters).await;
        let row = row.map_err(|error| failure(error, DOING))?;
        Ok::<(bool, bool), Error>((get(&row, 0)?, get(&row, 1)?))
    };
    if exists().await? == (true, true) {
        return Ok(());
    }
    session.run("BEGIN", DOING).await?;
    lock(session, &format!("schema {schema}")).await?;
    let (has_schema, has_ledger) = exists().await?;
    if !has_schema {
        let statement = format!("CREATE SCHEMA {}", quoted(schema));
        session.run(&statement, "the target's schema cannot be made").await?;
    }
    if !has_ledger {
        let statement = format!(
            "CREATE TABLE {} (run_id text NOT NULL, schema_name text NOT NULL, \
             table_name text NOT NULL, rows bigint NOT NULL, \
             owner text NOT NULL, loaded_at timestamptz NOT NULL DEFAULT now(), \
             PRIMARY KEY (run_id, schema_name, table_name))",
            ledger_table(schema)
        );
        session.run(&statement, "the target's ledger cannot be made").await?;
    }
    session.run("COMMIT", DOING).await
}

/// Rows that the ledger names for a run.
async fn recorded(session: &Session, target: &TargetTable, run_id: RunId) -> Result<Option<u64>> {
    let statement = format!(
        "SELECT rows FROM {} WHERE run_id = $1 AND schema_name = $2 AND table_name = $3",
        ledger_table(&target.schema)
    );
    let run = run_id.to_string();
    let parameters: [Parameter<'_>; 3] =
        [(&run, Type::TEXT), (&target.schema, Type::TEXT), (&target.table, Type::TEXT)];
    let row = session.client.query_typed_opt(&statement, &parameters).await;
    match row.map_err(|error| failure(error, "the ledger cannot be read"))? {
        Some(row) => Ok(u64::try_from(get::<i64>(&row, 0)?).ok()),
        None => Ok(None),
    }
}

async fn record(session: &Session, load: &Load<'_>, rows: u64) -> Result<()> {
    let statement = format!(
        "INSERT INTO {} (run_id, schema_name, table_name, rows, owner) \
         VALUES ($1, $2, $3, $4, $5)",
        ledger_table(&load.target.schema)
    );
    let run = load.manifest.run_id.to_string();
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    let parameters: [Parameter<'_>; 5] = [
        (&run, Type::TEXT),
        (&load.target.schema, Type::TEXT),
        (&load.target.table, Type::TEXT),
        (&rows, Type::INT8),
        (&load.owner, Type::TEXT),
    ];
    let written = session.client.query_typed(&statement, &parameters).await;
    written.map(|_| ()).map_err(|error| failure(error, "the ledger cannot be written"))
}

/// Makes the table, or brings it to hold the columns, and empties it where its
/// rows are replaced.
async fn prepare_table(
    session: &Session,
    load: &Load<'_>,
    mapping: Vec<Mapped>,
) -> Result<Vec<Mapped>> {
    let target = load.target;
    let Some(found) = relation(session, &named(target)).await? else {
        let key = if load.primary_key { load.manifest.key.as_slice() } else { &[] };
        session.run(&create(target, &mapping, key), "the target cannot be made").await?;
        return Ok(mapping);
    };
    if !matches!(found.kind, 'r' | 'p') {
        return Err(Error::new(ErrorKind::Configuration, "the target is not a table"));
    }
    let ours = load.replaces && empty(session, target, found.oid).await? == Loaded::Ours;
    let existing = columns(session, &[found.oid]).await?.remove(&found.oid).unwrap_or_default();
    let fields = load.manifest.schema.fields().iter();
    let types: Vec<_> = fields.map(|field| field.data_type().clone()).collect();
    let (change, mapping) = evolve(target, mapping, &types, &existing, ours)?;
    if let Some(statement) = change {
        session.run(&statement, "the target cannot be altered").await?;
    }
    Ok(mapping)
}

/// Takes all rows out of the table, and tells whose they were.
async fn empty(session: &Session, target: &TargetTable, oid: u32) -> Result<Loaded> {
    let loaded = check_ours(session, target).await?;
    let statement = "SELECT has_table_privilege($1, 'TRUNCATE')";
    let row = session.client.query_typed_one(statement, &[(&oid, Type::OID)]).await;
    let row = row.map_err(|error| failure(error, DOING))?;
    let table = quoted_table(target);
    let statement = match get::<bool>(&row, 0)? {
        true => format!("TRUNCATE TABLE {table}"),
        false => format!("DELETE FROM {table}"),
    };
    session.run(&statement, "the target cannot be emptied").await?;
    Ok(loaded)
}

/// Two syncs may not load into one table. Where the user decided that a table
/// goes to another, the ledger says so from now on.
async fn check_owner(session: &Session, load: &Load<'_>) -> Result<()> {
    let target = load.target;
    let ledger = ledger_table(&target.schema);
    let refused = |error| failure(error, "the ledger cannot be read");
    let parameters: [Parameter<'_>; 3] =
        [(&target.schema, Type::TEXT), (&target.table, Type::TEXT), (&load.owner, Type::TEXT)];
    if load.takes_over {
        let statement = format!(
            "UPDATE {ledger} SET owner = $3 WHERE schema_name = $1 AND table_name = $2 \
             AND owner <> $3"
        );
        return session
            .client
            .query_typed(&statement, &parameters)
            .await
            .map(|_| ())
            .map_err(refused);
    }
    let statement = format!(
        "SELECT owner FROM {ledger} WHERE schema_name = $1 AND table_name = $2 AND owner <> $3 \
         LIMIT 1"
    );
    let other = session.client.query_typed_opt(&statement, &parameters).await.map_err(refused)?;
    let Some(row) = other else { return Ok(()) };
    let other: String = get(&row, 0)?;
    Err(Error::new(ErrorKind::Mismatch, format!("the target holds the rows of {other}")).with_hint(
        "two syncs may not publish into one table: choose another --publish-table-pattern; \
             if that sync or its state store is gone, decide with sync --on-mismatch rebuild",
    ))
}

/// What the ledger says of a table that is to be emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loaded {
    /// Its rows came from here.
    Ours,
    /// Nothing, but there are no rows either.
    Nothing,
}

/// A table is emptied only where the ledger says that its rows came from here.
async fn check_ours(session: &Session, target: &TargetTable) -> Result<Loaded> {
    let statement = format!(
        "SELECT EXISTS (SELECT FROM {} WHERE schema_name = $1 AND table_name = $2),
                EXISTS (SELECT FROM {})",
        ledger_table(&target.schema),
        quoted_table(target)
    );
    let parameters: [Parameter<'_>; 2] =
        [(&target.schema, Type::TEXT), (&target.table, Type::TEXT)];
    let row = session.client.query_typed_one(&statement, &parameters).await;
    let row = row.map_err(|error| failure(error, "the ledger cannot be read"))?;
    match (get(&row, 0)?, get(&row, 1)?) {
        (true, _) => Ok(Loaded::Ours),
        (false, false) => Ok(Loaded::Nothing),
        (false, true) => Err(Error::new(
            ErrorKind::Mismatch,
            "the target holds rows that tidelake did not load",
        )
        .with_hint(
            "choose another --publish-schema-pattern or --publish-table-pattern, or empty the \
             table if its rows are not needed",
        )),
    }
}

/// Sends the rows and returns how many the server took.
async fn copy(session: &Session, load: &Load<'_>, mapping: &[Mapped]) -> Result<u64> {
    let names: Vec<_> = mapping.iter().map(|column| quoted(&column.name)).collect();
    let statement = format!(
        "COPY {} ({}) FROM STDIN (FORMAT binary)",
        quoted_table(load.target),
        names.join(", ")
    );
    tracing::debug!(%statement, "loading");
    let refused = |error| failure(error, DOING);
    let sink = session.client.copy_in::<_, Bytes>(&statement).await.map_err(refused)?;
    let mut sink = pin!(sink);
    let mut rows = (load.rows)();
    let mut sent = 0u64;
    let mut piece = header();
    while let Some(batch) = rows.try_next().await? {
        let batch = Rows::new(&batch, mapping)?;
        for row in 0..batch.count() {
            batch.write(row, &mut piece)?;
            sent += 1;
            if piece.len() >= PIECE {
                let full = std::mem::replace(&mut piece, Vec::with_capacity(PIECE + PIECE / 4));
                sink.send(full.into()).await.map_err(refused)?;
            }
        }
    }
    piece.extend(trailer());
    sink.send(piece.into()).await.map_err(refused)?;
    let taken = sink.finish().await.map_err(refused)?;
    if taken != sent {
        return Err(internal(format!("{sent} rows were sent, the server took {taken}")));
    }
    Ok(taken)
}
