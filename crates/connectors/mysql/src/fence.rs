//! What is in flight: transactions that may still make rows visible below the
//! upper bound of a window.

use std::time::{Duration, Instant};

use tidelake_connector::ClockRequest;
use tidelake_connector::sql::qualified;
use tidelake_model::{
    Again, Error, ErrorKind, FenceMode, Notice, NoticeCode, Result, instant_text,
};
use tidelake_watermark::{FENCE_SETBACK_NANOS, Fence};

use crate::activity::{Activity, Freshness, activity, lacks_privilege, prepared};
use crate::clock::{Fenced, unavailable};
use crate::dialect::{MysqlDialect, text_literal};
use crate::pool::{Pool, Session, code, text};

const POLL: Duration = Duration::from_millis(50);
const MAY_NOT_SEE: &str = "the user may not see the transactions of others";
const GRANT: &str = "grant PROCESS to the user";
/// Another holds a lock that would have to be waited for.
const LOCKED: u16 = 1205;

fn no_privilege(request: &ClockRequest) -> Result<Fenced> {
    let notice = unavailable(request.mode, MAY_NOT_SEE, GRANT)?;
    let note = "no privilege: not fenced".to_owned();
    Ok(Fenced { fence: Fence::Open, note, notices: vec![notice] })
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

fn seconds(nanos: i128) -> String {
    let millis = u64::try_from(nanos / 1_000_000).unwrap_or(0);
    format!("{:.1} s", Duration::from_millis(millis).as_secs_f64())
}

/// Names of prepared transactions. Where they may not be asked for, one without a
/// connection that has written is taken for one.
async fn prepared_names(session: &mut Session, activity: &Activity) -> Result<Vec<String>> {
    if let Some(names) = prepared(session).await? {
        return Ok(names);
    }
    let left_behind = activity.transaction(0).is_some_and(|transaction| transaction.id.is_some());
    Ok(left_behind.then(|| "one without a connection".to_owned()).into_iter().collect())
}

/// The fence for time stamps: the start of the oldest transaction or statement in
/// flight.
pub(crate) async fn time_fence(
    pool: &Pool,
    session: &mut Session,
    request: &ClockRequest,
    now: &mut i128,
) -> Result<Fenced> {
    let found = activity(pool, session, &request.ignore_users, Freshness::Recent).await?;
    let Some(activity) = found else { return no_privilege(request) };
    // What began later is not in the list, and has later stamps.
    *now = (*now).min(activity.now);
    let now = *now;
    let names = prepared_names(session, &activity).await?;
    if !names.is_empty() {
        let message = format!(
            "nothing is read while a prepared transaction waits for its end: {}",
            names.join("; ")
        );
        return closed(request, message);
    }
    let with_connection = activity.transactions.iter().filter(|found| found.connection != 0);
    let transactions = with_connection.map(|transaction| {
        (
            transaction.started,
            transaction.connection,
            "a transaction",
            activity.user(transaction.connection),
        )
    });
    let statements = activity.statements.iter().map(|statement| {
        (statement.started, statement.connection, "a statement", statement.user.as_str())
    });
    let Some((started, connection, what, user)) = transactions.chain(statements).min() else {
        let note = "no other transaction was open".to_owned();
        return Ok(Fenced { fence: Fence::Open, note, notices: vec![] });
    };
    let holder = format!(
        "{what} of connection {connection}, user {user:?}, open for {}",
        seconds(now - started)
    );
    let note = format!("before {}, the start of {holder}", instant_text(started));
    let mut notices = vec![];
    // Starts are known to the second: one that is younger lowers by no more.
    if started < now - FENCE_SETBACK_NANOS - 2_000_000_000 {
        let message = format!("rows are read up to the start of what is in flight: {holder}");
        notices.push(Notice::new(NoticeCode::FenceLowered, message));
    }
    Ok(Fenced { fence: Fence::Before(started), note, notices })
}

/// Somebody who could still write rows with low numbers.
#[derive(Debug)]
struct Holder {
    connection: u32,
    /// The transaction, once it has written.
    transaction: Option<u64>,
    description: String,
}

/// The fence for numbers: waits until every transaction and statement that could
/// write when it was asked has ended.
pub(crate) async fn identifier_fence(
    pool: &Pool,
    session: &mut Session,
    request: &ClockRequest,
) -> Result<Fenced> {
    let began = Instant::now();
    let list = async |session: &mut Session| {
        activity(pool, session, &request.ignore_users, Freshness::New).await
    };
    // A lock that is had at once says more than any list: nobody who is in flight has
    // written to this table.
    let mut probe = nobody_writes(session, request).await?;
    if probe == Some(true) && prepared(session).await?.is_some_and(|names| names.is_empty()) {
        return Ok(open(0, began));
    }
    let Some(first) = list(session).await? else { return no_privilege(request) };
    let mut prepared = prepared_names(session, &first).await?;
    let mut holders = holders_of(&first);
    let count = holders.len() + prepared.len();
    loop {
        if prepared.is_empty() && (holders.is_empty() || probe == Some(true)) {
            return Ok(open(count, began));
        }
        let left = request.wait.saturating_sub(began.elapsed());
        if left.is_zero() {
            break;
        }
        tokio::time::sleep(POLL.min(left)).await;
        if probe.is_some() {
            probe = nobody_writes(session, request).await?;
        }
        if probe == Some(true) && prepared.is_empty() {
            continue;
        }
        let Some(now) = list(session).await? else { return no_privilege(request) };
        retain_open(&mut holders, &now, first.now);
        if !prepared.is_empty() {
            prepared = prepared_names(session, &now).await?;
        }
    }
    let mut names: Vec<_> = holders.into_iter().map(|holder| holder.description).collect();
    names.extend(prepared.iter().map(|name| format!("the prepared transaction {name}")));
    names.sort();
    let message = format!("nothing is read while there may be writers: {}", names.join("; "));
    closed(request, message)
}

fn open(count: usize, began: Instant) -> Fenced {
    let note = match count {
        0 => "no transaction held the table for writing".to_owned(),
        _ => format!(
            "waited {:.1} s until {count} writing transactions had ended",
            began.elapsed().as_secs_f64()
        ),
    };
    Fenced { fence: Fence::Open, note, notices: vec![] }
}

/// Whether no open transaction has written to the table; `None` where this cannot be
/// tried. The lock is given back at once, and is not waited for.
async fn nobody_writes(session: &mut Session, request: &ClockRequest) -> Result<Option<bool>> {
    let table = qualified(&MysqlDialect, &request.table);
    if !session.is_mariadb() {
        return no_write_lock(session, request).await;
    }
    let lock = format!("LOCK TABLES {table} READ NOWAIT");
    match session.run(&lock, "the table cannot be locked").await {
        Ok(()) => {
            session.run("UNLOCK TABLES", "the table cannot be unlocked").await?;
            Ok(Some(true))
        }
        Err(error) => match code(&error) {
            Some(LOCKED) => Ok(Some(false)),
            _ if lacks_privilege(&error) => Ok(None),
            _ => Err(error),
        },
    }
}

/// The same where the server lists who holds which lock on a table's definition, and
/// keeps the list. A view is not looked into.
async fn no_write_lock(session: &mut Session, request: &ClockRequest) -> Result<Option<bool>> {
    let (schema, table) = (text_literal(&request.table.schema), text_literal(&request.table.table));
    let statement = format!(
        "SELECT @@performance_schema = 1 AND EXISTS ( \
             SELECT 1 FROM performance_schema.setup_instruments \
             WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES') \
             AND EXISTS (SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = {schema} \
             AND TABLE_NAME = {table} AND TABLE_TYPE = 'BASE TABLE'), \
         (SELECT count(*) FROM performance_schema.metadata_locks \
          WHERE OBJECT_TYPE = 'TABLE' AND OBJECT_SCHEMA = {schema} AND OBJECT_NAME = {table} \
          AND LOCK_STATUS = 'GRANTED' AND LOCK_TYPE NOT IN \
          ('SHARED', 'SHARED_HIGH_PRIO', 'SHARED_READ', 'SHARED_READ_ONLY'))"
    );
    match session.ask_one(&statement, "the locks on the table cannot be read").await {
        Ok(row) => Ok((text(&row, 0) == "1").then(|| text(&row, 1) == "0")),
        Err(error) if lacks_privilege(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn holders_of(activity: &Activity) -> Vec<Holder> {
    let mut found = vec![];
    for transaction in
        activity.transactions.iter().filter(|found| found.id.is_some() && found.connection != 0)
    {
        let connection = transaction.connection;
        found.push(Holder {
            connection,
            transaction: transaction.id,
            description: format!(
                "a transaction of connection {connection}, user {:?}, open for {}",
                activity.user(connection),
                seconds(activity.now - transaction.started)
            ),
        });
    }
    for statement in activity.statements.iter().filter(|statement| !statement.only_reads) {
        let connection = statement.connection;
        if found.iter().any(|holder| holder.connection == connection) {
            continue;
        }
        // It may have taken its number and not yet begun to write.
        found.push(Holder {
            connection,
            transaction: None,
            description: format!(
                "a statement of connection {connection}, user {:?}, running for {}",
                statement.user,
                seconds(activity.now - statement.started)
            ),
        });
    }
    found
}

/// Keeps those that have not ended since `asked`.
fn retain_open(holders: &mut Vec<Holder>, activity: &Activity, asked: i128) {
    holders.retain_mut(|holder| {
        let transaction =
            activity.transaction(holder.connection).and_then(|transaction| transaction.id);
        if holder.transaction.is_none() {
            holder.transaction = transaction;
        }
        match holder.transaction {
            Some(id) => transaction == Some(id),
            None => activity.statements.iter().any(|statement| {
                statement.connection == holder.connection && statement.started <= asked
            }),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::{Statement, Transaction};

    fn statement(connection: u32, started: i128, only_reads: bool) -> Statement {
        Statement { connection, user: "u".into(), started, only_reads }
    }

    fn transaction(connection: u32, id: Option<u64>) -> Transaction {
        Transaction { id, connection, started: 0, read_only: false }
    }

    fn of(statements: Vec<Statement>, transactions: Vec<Transaction>) -> Activity {
        Activity { statements, transactions, ..Activity::default() }
    }

    #[test]
    fn whoever_could_write_is_waited_for_until_it_has_ended() {
        let first = of(
            vec![statement(1, 10, false), statement(2, 10, true), statement(3, 10, false)],
            vec![transaction(3, Some(30)), transaction(4, None), transaction(5, Some(50))],
        );
        let mut waited = holders_of(&first);
        let ids = |holders: &[Holder]| {
            let mut ids: Vec<_> = holders.iter().map(|holder| holder.connection).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(&waited), [1, 3, 5]);
        // The first one's statement ended inside a transaction; the fifth began another.
        let next = of(
            vec![statement(3, 99, false)],
            vec![transaction(1, Some(60)), transaction(3, Some(30)), transaction(5, Some(61))],
        );
        retain_open(&mut waited, &next, 20);
        assert_eq!(ids(&waited), [1, 3]);
        // A later statement of the same connection is another.
        retain_open(&mut waited, &of(vec![statement(1, 99, false)], vec![]), 20);
        assert_eq!(ids(&waited), Vec::<u32>::new());
    }
}
