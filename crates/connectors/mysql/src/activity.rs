//! Who is at work on the server: running statements and open transactions.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use tidelake_model::{Error, Result};

use crate::clock::instant;
use crate::pool::{Pool, Row, Session, code, number, text};

pub(crate) const DOING: &str = "the transactions in flight cannot be read";

const NANOS_PER_SECOND: i128 = 1_000_000_000;
/// The server says that a privilege lacks.
pub(crate) const LACKS_PRIVILEGE: [u16; 5] = [1044, 1045, 1142, 1227, 1370];
const XA_REFUSED: u16 = 1401;
/// Numbers of transactions end below this; one that has only read so far has none,
/// and another is shown in its place.
const MOST_TRANSACTIONS: u64 = 1 << 48;

/// A statement that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) connection: u32,
    pub(crate) user: String,
    /// Its start, or a moment before.
    pub(crate) started: i128,
    /// Whether its text begins like one that changes no rows.
    pub(crate) only_reads: bool,
}

/// A transaction that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transaction {
    /// Its number, once it has written.
    pub(crate) id: Option<u64>,
    /// Its connection; 0 for one that was prepared and left behind.
    pub(crate) connection: u32,
    pub(crate) started: i128,
    /// Whether it was begun as one that cannot write.
    pub(crate) read_only: bool,
}

/// What is in flight.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// The server's time before the lists were made.
    pub(crate) now: i128,
    pub(crate) statements: Vec<Statement>,
    pub(crate) transactions: Vec<Transaction>,
    /// Users by connection.
    pub(crate) users: HashMap<u32, String>,
}

/// The server lists transactions anew only where nobody has looked for that long;
/// else it shows what it showed before.
const REFRESH: Duration = Duration::from_millis(100);
/// A little longer, since our clock is not the server's.
const PAUSE: Duration = Duration::from_millis(110);
/// Looks until others who look as well are given up on.
const MOST_LOOKS: u32 = 25;

/// Every connection with what it does.
const STATEMENTS: &str = "
SELECT CAST(UTC_TIMESTAMP(6) AS CHAR), p.ID, p.USER, p.COMMAND, p.TIME{MS}, LEFT(p.INFO, 100)
FROM information_schema.PROCESSLIST p
WHERE p.USER NOT IN ('system user', 'unauthenticated user', 'event_scheduler')";

/// Starts are in the zone of the operating system and in whole seconds. In the hour
/// that a clock goes through twice, the earlier reading is taken. Our own transaction
/// is in the list, with this very statement, if the list is of now.
const TRANSACTIONS: &str = "
SELECT /* {MARK} */ trx_id, trx_mysql_thread_id, trx_is_read_only,
       CAST(CASE WHEN CONVERT_TZ(utc - INTERVAL 1 HOUR, '+00:00', 'SYSTEM') = trx_started
                 THEN utc - INTERVAL 1 HOUR ELSE utc END AS CHAR),
       trx_mysql_thread_id = CONNECTION_ID() AND trx_query LIKE '%{MARK}%'
FROM (SELECT trx_id, trx_mysql_thread_id, trx_is_read_only, trx_started, trx_query,
             CONVERT_TZ(trx_started, 'SYSTEM', '+00:00') AS utc
      FROM information_schema.INNODB_TRX) AS started";

/// What the server said, as it said it.
#[derive(Debug, Clone)]
struct Listing {
    /// When it was begun to be asked.
    asked: Instant,
    /// The server's time before the first list was made.
    now: i128,
    connections: Vec<Row>,
    transactions: Vec<Row>,
}

/// The last listing of a pool, which all of its tables share: each look of one would
/// keep the others from seeing anything new.
#[derive(Debug, Default)]
pub(crate) struct LastListing(tokio::sync::Mutex<Option<Listing>>);

/// How young a list has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Made after this call.
    New,
    /// Made a moment ago: its own time counts as the present.
    Recent,
}

impl Activity {
    /// The user of a connection, as far as it is still there.
    pub(crate) fn user(&self, connection: u32) -> &str {
        self.users.get(&connection).map_or("?", String::as_str)
    }

    /// The transaction of a connection.
    pub(crate) fn transaction(&self, connection: u32) -> Option<&Transaction> {
        self.transactions.iter().find(|transaction| transaction.connection == connection)
    }
}

/// Lists what is in flight, without what is our own, what ignored users do, and what
/// cannot write. `None` where the user may not see it.
pub(crate) async fn activity(
    pool: &Pool,
    session: &mut Session,
    ignored: &[String],
    freshness: Freshness,
) -> Result<Option<Activity>> {
    let called = Instant::now();
    let mut last = pool.listing.0.lock().await;
    let usable = |listing: &&Listing| match freshness {
        Freshness::New => listing.asked >= called,
        Freshness::Recent => listing.asked.elapsed() < REFRESH,
    };
    if let Some(listing) = last.as_ref().filter(usable) {
        return sorted(listing, &pool.open_sessions(), ignored).map(Some);
    }
    if let Some(wait) = last.as_ref().and_then(|listing| PAUSE.checked_sub(listing.asked.elapsed()))
    {
        tokio::time::sleep(wait).await;
    }
    let Some(listing) = list(session).await? else { return Ok(None) };
    let found = sorted(&listing, &pool.open_sessions(), ignored)?;
    *last = Some(listing);
    Ok(Some(found))
}

/// Asks the server until its list is of now. Statements come before transactions: one
/// that ends between the two has left its transaction to be seen, or has committed.
async fn list(session: &mut Session) -> Result<Option<Listing>> {
    let statements = match session.is_mariadb() {
        true => STATEMENTS.replace("{MS}", "_MS"),
        false => STATEMENTS.replace("{MS}", " * 1000"),
    };
    for look in 0..MOST_LOOKS {
        let asked = Instant::now();
        let connections = session.ask(&statements, DOING).await?;
        let now = connections.first().map(|row| instant(text(row, 0))).transpose()?;
        let mark = format!("{:016x}", RandomState::new().build_hasher().finish());
        session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", DOING).await?;
        let transactions = session.ask(&TRANSACTIONS.replace("{MARK}", &mark), DOING).await;
        session.run("COMMIT", DOING).await?;
        let transactions = match transactions {
            Err(error) if lacks_privilege(&error) => return Ok(None),
            other => other?,
        };
        if let Some(now) = now.filter(|_| transactions.iter().any(|row| text(row, 4) == "1")) {
            return Ok(Some(Listing { asked, now, connections, transactions }));
        }
        // Others who wait as long would meet us here again and again.
        let extra = u64::from_str_radix(mark.get(..4).unwrap_or("0"), 16).unwrap_or(0) % 50;
        tokio::time::sleep(PAUSE + Duration::from_millis(extra * u64::from(look))).await;
    }
    let message = "the server's list of transactions is not made anew: others look at it too often";
    Err(Error::new(tidelake_model::ErrorKind::Unavailable, message).with_hint(
        "let whatever reads information_schema.innodb_trx all the time do so less often",
    ))
}

/// Whether the server refused a statement for want of a privilege.
pub(crate) fn lacks_privilege(error: &Error) -> bool {
    code(error).is_some_and(|code| LACKS_PRIVILEGE.contains(&code))
}

/// What counts of a listing.
fn sorted(listing: &Listing, own: &[u32], ignored: &[String]) -> Result<Activity> {
    let mut found = Activity { now: listing.now, ..Activity::default() };
    for row in &listing.connections {
        found.users.insert(number(row, 1).unwrap_or(0), text(row, 2).to_owned());
    }
    // A connection that is not among them came after the server's time was read.
    let is_meant = |found: &Activity, connection: u32| match found.users.get(&connection) {
        Some(user) => !own.contains(&connection) && !ignored.contains(user),
        None => connection == 0,
    };
    let transactions = listing.transactions.iter().map(transaction).collect::<Result<Vec<_>>>()?;
    let read_only: HashSet<_> = transactions
        .iter()
        .filter(|transaction| transaction.read_only)
        .map(|transaction| transaction.connection)
        .collect();
    let at_work =
        |row: &&Row| !matches!(text(row, 3), "Sleep" | "Binlog Dump" | "Binlog Dump GTID");
    for row in listing.connections.iter().filter(at_work) {
        let statement = statement(row, listing.now);
        if is_meant(&found, statement.connection) && !read_only.contains(&statement.connection) {
            found.statements.push(statement);
        }
    }
    found.transactions = transactions
        .into_iter()
        .filter(|transaction| !transaction.read_only && is_meant(&found, transaction.connection))
        .collect();
    Ok(found)
}

fn statement(row: &Row, now: i128) -> Statement {
    // Whole seconds may hide nearly one more.
    let millis = text(row, 4).parse::<f64>().unwrap_or(0.0).max(0.0);
    let seconds = Duration::try_from_secs_f64(millis / 1_000.0).unwrap_or_default();
    let age = i128::try_from(seconds.as_nanos()).unwrap_or(0) + NANOS_PER_SECOND;
    Statement {
        connection: number(row, 1).unwrap_or(0),
        user: text(row, 2).to_owned(),
        started: now - age,
        only_reads: only_reads(text(row, 5)),
    }
}

fn transaction(row: &Row) -> Result<Transaction> {
    let id = number::<u64>(row, 0).filter(|id| (1..MOST_TRANSACTIONS).contains(id));
    // Whole seconds, and the statement that began it took its stamp before.
    let started = match text(row, 3) {
        "" => i128::MIN,
        text => instant(text)? - NANOS_PER_SECOND,
    };
    Ok(Transaction {
        id,
        connection: number(row, 1).unwrap_or(0),
        started,
        read_only: text(row, 2) == "1" && id.is_none(),
    })
}

/// Whether a statement's first word says that it changes no rows.
fn only_reads(text: &str) -> bool {
    const WORDS: [&str; 8] =
        ["select", "show", "explain", "describe", "desc", "set", "use", "kill"];
    let word: String =
        text.trim_start().chars().take_while(char::is_ascii_alphabetic).collect::<String>();
    WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Transactions that were prepared and wait for their coordinator, by name; `None`
/// where the user may not ask.
pub(crate) async fn prepared(session: &mut Session) -> Result<Option<Vec<String>>> {
    let statement =
        if session.is_mariadb() { "XA RECOVER FORMAT='SQL'" } else { "XA RECOVER CONVERT XID" };
    match session.ask(statement, DOING).await {
        Ok(rows) => Ok(Some(rows.iter().map(|row| text(row, 3).to_owned()).collect())),
        // One of them does not say that it is a privilege which lacks.
        Err(error) if lacks_privilege(&error) || code(&error) == Some(XA_REFUSED) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_reader_is_taken_for_one() {
        for text in ["SELECT 1", "  select f()", "SHOW TABLES", "set @a = 1"] {
            assert!(only_reads(text), "{text}");
        }
        for text in ["INSERT INTO t", "/* app */ SELECT 1", "COMMIT", "call p()", "", "selected"] {
            assert!(!only_reads(text), "{text}");
        }
    }

    #[test]
    fn a_number_that_is_none_is_not_taken_for_one() {
        let row = |id: &str, read_only: &str| {
            [id, "7", read_only, "2026-11-30 09:15:00"].map(|cell| Some(cell.to_owned())).to_vec()
        };
        let of = |id, read_only| transaction(&row(id, read_only)).unwrap();
        assert_eq!(of("23", "0").id, Some(23));
        assert_eq!(of("0", "0").id, None);
        assert_eq!(of("421394285742296", "0").id, None);
        assert!(of("421394285742296", "1").read_only && !of("23", "1").read_only);
        assert_eq!(of("23", "0").started, 1_796_030_100_000_000_000 - NANOS_PER_SECOND);
    }
}
