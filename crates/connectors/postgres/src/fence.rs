//! What is in flight: transactions that may still make rows visible below the
//! upper bound of a window.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tidelake_connector::{ClockRequest, FencePurpose};
use tidelake_model::{
    Again, Error, ErrorKind, FenceMode, Notice, NoticeCode, Result, TableName, instant_text,
};
use tidelake_watermark::{FENCE_SETBACK_NANOS, Fence};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::catalogue::get;
use crate::clock::{Fenced, instant, unavailable};
use crate::failure::failure;
use crate::session::Session;

const DOING: &str = "the transactions in flight cannot be read";
const POLL: Duration = Duration::from_millis(50);

/// The table, its partitions and children; for a view, what it reads.
const FAMILY: &str = "
WITH RECURSIVE family (oid) AS (
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2
    UNION
    SELECT next.oid FROM family f CROSS JOIN LATERAL (
        SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = f.oid
        UNION ALL
        SELECT d.refobjid FROM pg_rewrite r JOIN pg_depend d
          ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
             AND d.refclassid = 'pg_class'::regclass
        WHERE r.ev_class = f.oid
    ) AS next (oid)
)";

/// Whether there is such a table, and whether rows of it live on another server.
const FOREIGN: &str = "
SELECT count(*) > 0, coalesce(bool_or(c.relkind = 'f'), false)
FROM family f JOIN pg_class c ON c.oid = f.oid";

/// Every other session of this database with a transaction open. A transaction
/// that has only read so far may still insert what `now()` told it. Left out is
/// what cannot write rows of its own:
/// - autovacuum, and parallel workers, whose leader is in the list itself;
/// - replication, and tidelake's readers, whose transactions are all read-only,
///   as long as they have no transaction id;
/// - maintenance that is a statement of its own, outside a transaction block, and
///   holds no lock as a writer of rows would.
const ACTIVITY: &str = r"
SELECT a.pid, coalesce(a.usename::text, a.backend_type, '?'), a.xact_start::text,
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8
FROM pg_stat_activity a
WHERE a.datid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND a.pid <> pg_backend_pid()
  AND (a.xact_start IS NOT NULL OR a.state = 'disabled')
  AND coalesce(a.backend_type, '') NOT IN ('autovacuum worker', 'parallel worker')
  AND NOT (coalesce(a.backend_type, '') = 'walsender' AND a.backend_xid IS NULL)
  AND NOT (a.backend_xid IS NULL
           AND (a.pid = ANY ($1) OR coalesce(a.application_name, '') LIKE $3))
  AND NOT coalesce(a.usename::text = ANY ($2), false)
  AND NOT (a.xact_start IS NOT NULL AND a.xact_start >= a.query_start
           AND coalesce(a.query, '') ~* '^\s*(vacuum|analyze|create|reindex)\y[^;]*;?\s*$'
           AND EXISTS (SELECT FROM pg_stat_progress_vacuum p WHERE p.pid = a.pid
                       UNION ALL
                       SELECT FROM pg_stat_progress_analyze p WHERE p.pid = a.pid
                       UNION ALL
                       SELECT FROM pg_stat_progress_create_index p WHERE p.pid = a.pid)
           AND NOT EXISTS (SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                           WHERE l.pid = a.pid AND l.locktype = 'relation'
                             AND l.mode = 'RowExclusiveLock' AND c.oid >= 16384
                             AND c.relkind IN ('r', 'p')))
ORDER BY a.xact_start NULLS FIRST";

/// Prepared transactions that hold a lock as a writer of the tables. They have no
/// process; their locks are found through the lock on their own id. The family is
/// looked up only where there is one.
const PREPARED: &str = "
SELECT p.gid, coalesce(p.owner::text, '?')
FROM pg_prepared_xacts p
WHERE p.database = current_database() AND NOT coalesce(p.owner::text = ANY ($3), false)
  AND EXISTS (
    SELECT FROM pg_locks x JOIN pg_locks l
      ON l.virtualtransaction = x.virtualtransaction AND l.pid IS NULL
    WHERE x.locktype = 'transactionid' AND x.transactionid = p.transaction AND x.pid IS NULL
      AND l.locktype = 'relation' AND l.relation = ANY (ARRAY(SELECT oid FROM family))
      AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                     'AccessExclusiveLock'))";

/// Holders of a writer's lock on the tables, by virtual transaction.
const HOLDERS: &str = "
SELECT DISTINCT l.virtualtransaction, l.pid, x.transactionid::text,
       coalesce(a.usename::text, p.owner::text, '?'), coalesce(p.gid, ''),
       extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, p.prepared))::float8
FROM pg_locks l
LEFT JOIN pg_locks x ON x.virtualtransaction = l.virtualtransaction
     AND x.pid IS NOT DISTINCT FROM l.pid AND x.locktype = 'transactionid'
     AND x.granted AND x.mode = 'ExclusiveLock'
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND p.transaction = x.transactionid
WHERE l.locktype = 'relation' AND l.relation = ANY (ARRAY(SELECT oid FROM family))
  AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.pid IS DISTINCT FROM pg_backend_pid()
  AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                 'AccessExclusiveLock')
  AND NOT coalesce(coalesce(a.usename::text, p.owner::text) = ANY ($3), false)";

/// Which of some virtual transactions and transaction ids have not ended. One
/// that is prepared meanwhile keeps its id.
const REMAINING: &str = "
SELECT DISTINCT l.virtualtransaction, l.transactionid::text
FROM pg_locks l
WHERE l.virtualtransaction = ANY ($1)
   OR l.locktype = 'transactionid' AND l.transactionid::text = ANY ($2)
      AND l.mode = 'ExclusiveLock' AND l.granted";

/// What the server showed of other transactions.
pub(crate) enum Sight {
    /// Nothing was asked.
    Nothing,
    /// For time stamps: sessions with a transaction, and prepared transactions that
    /// hold the table.
    Sessions {
        /// The oldest first.
        sessions: Vec<Row>,
        /// Their names and owners.
        prepared: Vec<Row>,
    },
    /// For numbers: who holds the table for writing.
    Writers(Vec<Row>),
}

/// Whether the server shows when the transactions of others began.
pub(crate) struct MaySee {
    /// Whether this user may see those of others.
    pub(crate) others: bool,
    /// Whether the server knows.
    pub(crate) activities: bool,
}

/// A parameter with its type.
type Parameter<'a> = (&'a (dyn tokio_postgres::types::ToSql + Sync), Type);

/// Whether some rows of the table live on another server.
pub(crate) async fn family(session: &Session, table: &TableName) -> Result<bool> {
    let parameters: [Parameter<'_>; 2] = [(&table.schema, Type::TEXT), (&table.table, Type::TEXT)];
    let query = format!("{FAMILY}{FOREIGN}");
    let row = session.client.query_typed_one(&query, &parameters).await;
    let row = row.map_err(|error| failure(error, DOING))?;
    if !get::<bool>(&row, 0)? {
        return Err(Error::new(ErrorKind::NotFound, "the table does not exist"));
    }
    get(&row, 1)
}

/// Looks at what is in flight. `own` are the sessions of this source.
pub(crate) async fn look(
    session: &Session,
    request: &ClockRequest,
    purpose: &FencePurpose,
    own: &Vec<i32>,
) -> Result<Sight> {
    let of_table: [Parameter<'_>; 3] = [
        (&request.table.schema, Type::TEXT),
        (&request.table.table, Type::TEXT),
        (&request.ignore_users, Type::TEXT_ARRAY),
    ];
    let failed = |error| failure(error, DOING);
    match purpose {
        FencePurpose::None => Ok(Sight::Nothing),
        FencePurpose::Time => {
            let readers = format!("{}%", crate::session::READER_NAME);
            let parameters: [Parameter<'_>; 3] = [
                (own, Type::INT4_ARRAY),
                (&request.ignore_users, Type::TEXT_ARRAY),
                (&readers, Type::TEXT),
            ];
            let query = format!("{FAMILY}{PREPARED}");
            // Sessions come before prepared transactions: one that is prepared
            // between the two is then seen at least once.
            let (sessions, prepared) = futures::join!(
                session.client.query_typed(ACTIVITY, &parameters),
                session.client.query_typed(&query, &of_table),
            );
            let (sessions, prepared) = (sessions.map_err(failed)?, prepared.map_err(failed)?);
            Ok(Sight::Sessions { sessions, prepared })
        }
        FencePurpose::Identifier => {
            let query = format!("{FAMILY}{HOLDERS}");
            let writers = session.client.query_typed(&query, &of_table).await;
            writers.map_err(failed).map(Sight::Writers)
        }
    }
}

/// What is said where rows come from another server.
pub(crate) fn foreign(request: &ClockRequest) -> Result<Fenced> {
    let why = "rows come from a foreign table, whose server's transactions are not seen";
    let notice = unavailable(request.mode, why, "read from that server")?;
    Ok(open_with(notice, "foreign table: not fenced"))
}

fn open_with(notice: Notice, note: &str) -> Fenced {
    Fenced { fence: Fence::Open, note: note.to_owned(), notices: vec![notice] }
}

fn age(row: &Row, index: usize) -> Result<String> {
    Ok(get::<Option<f64>>(row, index)?
        .map_or_else(|| "of unknown age".to_owned(), |seconds| format!("open for {seconds:.1} s")))
}

/// The fence for time stamps: the start of the oldest transaction in flight.
pub(crate) fn time_fence(
    request: &ClockRequest,
    now: i128,
    may_see: MaySee,
    sessions: &[Row],
    prepared: &[Row],
) -> Result<Fenced> {
    if !may_see.others {
        let why = "the user may not see the transactions of others";
        let notice = unavailable(request.mode, why, "grant pg_read_all_stats to the user")?;
        return Ok(open_with(notice, "no privilege: not fenced"));
    }
    if !may_see.activities {
        let why = "the server does not track activities";
        let notice = unavailable(request.mode, why, "set track_activities to on")?;
        return Ok(open_with(notice, "activities are not tracked: not fenced"));
    }
    if let Some(row) = prepared.first() {
        let (gid, owner): (&str, &str) = (get(row, 0)?, get(row, 1)?);
        let message = format!(
            "nothing is read while the prepared transaction {gid:?} of user {owner:?} holds the table"
        );
        return closed(request, message);
    }
    let Some(oldest) = sessions.first() else {
        let note = "no other transaction was open".to_owned();
        return Ok(Fenced { fence: Fence::Open, note, notices: vec![] });
    };
    let (pid, user): (i32, &str) = (get(oldest, 0)?, get(oldest, 1)?);
    let Some(started) = get::<Option<&str>>(oldest, 2)? else {
        let why = format!("process {pid} of user {user:?} has track_activities off");
        let notice = unavailable(request.mode, &why, "set track_activities to on")?;
        return Ok(open_with(notice, "activities are not tracked: not fenced"));
    };
    let started = instant(started)?;
    let holder = format!("process {pid} of user {user:?}, {}", age(oldest, 3)?);
    let note = format!("before {}, the start of {holder}", instant_text(started));
    let mut notices = vec![];
    // Anything younger than the setback lowers nothing.
    if started < now - FENCE_SETBACK_NANOS {
        let message = format!("rows are read up to the start of a transaction in flight: {holder}");
        notices.push(Notice::new(NoticeCode::FenceLowered, message));
    }
    Ok(Fenced { fence: Fence::Before(started), note, notices })
}

fn closed(request: &ClockRequest, message: String) -> Result<Fenced> {
    if request.mode == FenceMode::Require {
        // It was waited for as long as the user said.
        return Err(Error::new(ErrorKind::Unavailable, message)
            .with_again(Again::Never)
            .with_hint("end those transactions, or name their users with --inflight-ignore"));
    }
    let notices = vec![Notice::new(NoticeCode::FenceClosed, message.clone())];
    Ok(Fenced { fence: Fence::Closed, note: message, notices })
}

/// A transaction that could still write rows with low numbers.
struct Holder {
    transaction: Option<String>,
    description: String,
}

/// The fence for numbers: waits until every transaction that could write when it
/// was asked has ended.
pub(crate) async fn identifier_fence(
    session: &Session,
    request: &ClockRequest,
    writers: Vec<Row>,
) -> Result<Fenced> {
    let began = Instant::now();
    let mut holders = holders(&writers)?;
    let first = holders.len();
    loop {
        if holders.is_empty() {
            let note = match first {
                0 => "no transaction held the table for writing".to_owned(),
                _ => format!(
                    "waited {:.1} s until {first} writing transactions had ended",
                    began.elapsed().as_secs_f64()
                ),
            };
            return Ok(Fenced { fence: Fence::Open, note, notices: vec![] });
        }
        let left = request.wait.saturating_sub(began.elapsed());
        if left.is_zero() {
            break;
        }
        tokio::time::sleep(POLL.min(left)).await;
        retain_open(session, &mut holders).await?;
    }
    let mut names: Vec<_> = holders.into_values().map(|holder| holder.description).collect();
    names.sort();
    let message = format!("nothing is read while the table is written to by {}", names.join("; "));
    closed(request, message)
}

fn holders(rows: &[Row]) -> Result<HashMap<String, Holder>> {
    rows.iter()
        .map(|row| {
            let user: &str = get(row, 3)?;
            let who = match (get::<Option<i32>>(row, 1)?, get::<&str>(row, 4)?) {
                (Some(pid), _) => format!("process {pid}"),
                (None, gid) => format!("the prepared transaction {gid:?}"),
            };
            let description = format!("{who} of user {user:?}, {}", age(row, 5)?);
            Ok((get(row, 0)?, Holder { transaction: get(row, 2)?, description }))
        })
        .collect()
}

/// Keeps those that have not ended.
async fn retain_open(session: &Session, holders: &mut HashMap<String, Holder>) -> Result<()> {
    let virtual_ids: Vec<_> = holders.keys().cloned().collect();
    let ids: Vec<_> = holders.values().filter_map(|holder| holder.transaction.clone()).collect();
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
        [(&virtual_ids, Type::TEXT_ARRAY), (&ids, Type::TEXT_ARRAY)];
    let rows = session.client.query_typed(REMAINING, &parameters).await;
    let rows = rows.map_err(|error| failure(error, DOING))?;
    let mut open = std::collections::HashSet::new();
    for row in &rows {
        open.insert(get::<String>(row, 0)?);
        open.extend(get::<Option<String>>(row, 1)?);
    }
    holders.retain(|virtual_id, holder| {
        open.contains(virtual_id) || holder.transaction.as_ref().is_some_and(|id| open.contains(id))
    });
    Ok(())
}
