//! What would make a run fail or go slowly, as the server itself tells it.

use tidelake_connector::sql::qualified;
use tidelake_connector::{
    DiagnosedTable, Effort, Finding, HighestRequest, Verdict, cursor_findings, missing_finding,
    null_finding, size_finding,
};
use tidelake_model::{CursorRead, ErrorKind, Result, Table, TableKind, TableName};
use tidelake_watermark::Cursor;

use crate::activity::{Activity, Freshness, activity, lacks_privilege, prepared};
use crate::catalogue::{self, CatalogueColumn};
use crate::dialect::{MysqlDialect, quoted};
use crate::highest::highest;
use crate::pool::{Pool, Session, number, text};
use crate::replica;

const DOING: &str = "the server cannot be diagnosed";
/// Transactions of this age hold the fence back so far that it should be known.
const LONG_OPEN_NANOS: i128 = 60_000_000_000;
/// A replica that is so far behind, in seconds, is told.
const FAR_BEHIND: u64 = 60;
/// Connections that a run may want.
const CONNECTIONS: i64 = 8;

const SERVER: &str = "
SELECT @@max_connections, @@max_user_connections,
       (SELECT VARIABLE_VALUE FROM {STATUS}.GLOBAL_STATUS
        WHERE VARIABLE_NAME = 'Threads_connected')";

/// Looks at the server and at each table.
pub(crate) async fn diagnose(pool: &Pool, tables: &[DiagnosedTable]) -> Result<Vec<Finding>> {
    let mut session = pool.get().await?;
    let mut findings = server(pool, &mut session).await?;
    for diagnosed in tables {
        findings.extend(table(&mut session, diagnosed).await?);
    }
    pool.put(session);
    for DiagnosedTable { table, cursor } in tables {
        // Only where the table and all of its cursor are there.
        if let Some(cursor) = cursor.as_ref().filter(|cursor| is_whole(cursor, table, &findings)) {
            findings.extend(nulls(pool, table, cursor).await?);
        }
    }
    Ok(findings)
}

fn is_whole(cursor: &CursorRead, table: &Table, findings: &[Finding]) -> bool {
    let failed = |finding: &Finding| {
        finding.table.as_ref() == Some(&table.name) && finding.verdict == Verdict::Failure
    };
    let nullable = |name: &String| table.column(name).is_none_or(|found| found.field.is_nullable());
    let names = cursor.cursor.columns();
    let may_be_null = match cursor.cursor {
        Cursor::Fallback(_) => names.iter().all(nullable),
        _ => names.iter().any(nullable),
    };
    may_be_null && !findings.iter().any(failed)
}

/// Rows without a value, where an index counts them.
async fn nulls(pool: &Pool, table: &Table, cursor: &CursorRead) -> Result<Option<Finding>> {
    let request = HighestRequest {
        table: table.name.clone(),
        cursor: cursor.clone(),
        effort: Effort::Cheap,
        count: None,
        count_nulls: true,
    };
    let nulls = highest(pool, &request).await?.nulls;
    Ok(Some(null_finding(&table.name, cursor, nulls)))
}

async fn server(pool: &Pool, session: &mut Session) -> Result<Vec<Finding>> {
    let version = session.version_text().to_owned();
    let replica = replica::state(session).await?;
    let role = if replica.is_some() { "a replica" } else { "no replica" };
    let mut findings =
        vec![Finding::new(Verdict::Fine, "server", format!("version {version}, {role}"))];
    match replica {
        Some(replica) => findings.extend(replica_findings(replica.behind)),
        None => {
            let activity = activity(pool, session, &[], Freshness::Recent).await?;
            findings.push(fence(activity.is_some()));
            let prepared = prepared(session).await?.unwrap_or_default();
            findings.extend(transactions(activity.as_ref(), &prepared));
        }
    }
    findings.extend(connections(session).await?);
    Ok(findings)
}

async fn connections(session: &mut Session) -> Result<Option<Finding>> {
    let statement = match session.is_mariadb() {
        true => SERVER.replace("{STATUS}", "information_schema"),
        false => SERVER
            .replace("{STATUS}", "performance_schema")
            .replace("GLOBAL_STATUS", "global_status"),
    };
    let row = match session.ask_one(&statement, DOING).await {
        Ok(row) => row,
        // The one family shows its counters only to some.
        Err(error) if lacks_privilege(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let cell = |index| number::<i64>(&row, index).unwrap_or(0);
    let free = cell(0) - cell(2);
    let free = if cell(1) > 0 { free.min(cell(1)) } else { free };
    Ok(Some(if free < CONNECTIONS {
        Finding::new(Verdict::Warning, "connections", format!("{} are left", free.max(0)))
            .with_hint("lower --n-jobs and --parallel, or raise the server's max_connections")
    } else {
        Finding::new(Verdict::Fine, "connections", format!("{free} are left"))
    }))
}

fn replica_findings(behind: Option<u64>) -> Vec<Finding> {
    let fence = Finding::new(
        Verdict::Warning,
        "fence",
        "a replica cannot see the transactions in flight on its source",
    )
    .with_hint("name the source's credential with --fence-auth-id, or set a safety lag");
    let lag = match behind {
        None => Finding::new(
            Verdict::Warning,
            "replay",
            "it does not say how far it is behind its source",
        )
        .with_hint("check that replication runs, and grant the user REPLICATION CLIENT"),
        Some(seconds) if seconds > FAR_BEHIND => {
            Finding::new(Verdict::Warning, "replay", format!("it is {seconds} s behind its source"))
                .with_hint("rows arrive once they are applied; look at what slows it down")
        }
        Some(seconds) => Finding::new(Verdict::Fine, "replay", format!("{seconds} s behind")),
    };
    vec![fence, lag]
}

fn fence(may_see: bool) -> Finding {
    if may_see {
        return Finding::new(Verdict::Fine, "fence", "the transactions of others can be seen");
    }
    Finding::new(
        Verdict::Warning,
        "fence",
        "the user may not see when the transactions of others began",
    )
    .with_hint("grant PROCESS to the user, or set a safety lag")
}

/// What holds the fence back now.
fn transactions(activity: Option<&Activity>, prepared: &[String]) -> Vec<Finding> {
    let mut findings = vec![];
    let long = activity.into_iter().flat_map(|activity| {
        let old = move |started: i128| activity.now - started >= LONG_OPEN_NANOS;
        let transactions = activity.transactions.iter().filter(move |found| old(found.started));
        transactions.take(3).map(move |found| {
            let (connection, user) = (found.connection, activity.user(found.connection));
            let age = (activity.now - found.started) / 1_000_000_000;
            format!("connection {connection} of user {user:?} has one open for {age} s")
        })
    });
    for message in long {
        findings.push(Finding::new(Verdict::Warning, "transactions", message).with_hint(
            "rows above its start wait for it; end it, or name its user with --inflight-ignore",
        ));
    }
    for name in prepared.iter().take(3) {
        findings.push(
            Finding::new(Verdict::Warning, "transactions", format!("{name} is prepared"))
                .with_hint("nothing is read while it waits for its end; commit or roll it back"),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::new(Verdict::Fine, "transactions", "none is open for long"));
    }
    findings
}

async fn table(session: &mut Session, diagnosed: &DiagnosedTable) -> Result<Vec<Finding>> {
    let name = &diagnosed.table.name;
    let Some(relation) = catalogue::relation(session, name).await? else {
        return Ok(vec![missing_finding(name)]);
    };
    let columns = catalogue::columns(session, name).await?;
    let table = Table {
        columns: columns.iter().map(|found| found.column.clone()).collect(),
        estimated_rows: relation.estimated_rows,
        estimated_bytes: relation.estimated_bytes,
        ..diagnosed.table.clone()
    };
    let wanted = diagnosed.table.columns.iter().map(tidelake_model::Column::name);
    let wanted: Vec<_> = wanted.filter(|name| table.column(name).is_some()).collect();
    let mut findings = vec![rights(session, name, &wanted).await?];
    if relation.kind != TableKind::View && !relation.transactional {
        findings.push(
            Finding::new(
                Verdict::Warning,
                "engine",
                format!(
                    "{} has no snapshots: one connection reads the table, and what is written \
                     meanwhile may be in it or not",
                    relation.engine
                ),
            )
            .with_hint("ALTER TABLE … ENGINE = InnoDB")
            .of_table(name),
        );
    }
    findings.push(size_finding(&table));
    let Some(cursor) = &diagnosed.cursor else { return Ok(findings) };
    findings.extend(cursor_findings(&table, cursor));
    for column in cursor.cursor.columns() {
        if let Some(column) = columns.iter().find(|found| found.column.name() == column) {
            findings.push(origin(session, name, column).await?);
        }
    }
    Ok(findings)
}

/// Whether the columns may be read, as the server answers to a try.
async fn rights(session: &mut Session, name: &TableName, wanted: &[&str]) -> Result<Finding> {
    let columns: Vec<_> = wanted.iter().map(|name| quoted(name)).collect();
    let columns = if columns.is_empty() { "1".to_owned() } else { columns.join(", ") };
    let look = format!("SELECT {columns} FROM {} LIMIT 0", qualified(&MysqlDialect, name));
    let finding = match session.ask(&look, DOING).await {
        Ok(_) => Finding::new(Verdict::Fine, "rights", "the user may read it"),
        Err(error) if error.kind() == ErrorKind::Denied => {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            Finding::new(Verdict::Failure, "rights", why.unwrap_or_else(|| error.to_string()))
                .with_hint(format!("GRANT SELECT ON {name} TO the user, or leave columns out"))
        }
        Err(error) => Finding::of_error("rights", &error),
    };
    Ok(finding.of_table(name))
}

/// Where the values of the column come from.
async fn origin(
    session: &mut Session,
    table: &TableName,
    column: &CatalogueColumn,
) -> Result<Finding> {
    let statement = format!(
        "SELECT COALESCE(GROUP_CONCAT(TRIGGER_NAME ORDER BY TRIGGER_NAME SEPARATOR ', '), '') \
         FROM information_schema.TRIGGERS WHERE ACTION_TIMING = 'BEFORE' \
         AND EVENT_OBJECT_SCHEMA = {} AND EVENT_OBJECT_TABLE = {}",
        crate::dialect::text_literal(&table.schema),
        crate::dialect::text_literal(&table.table)
    );
    let row = session.ask_one(&statement, DOING).await?;
    let triggers = text(&row, 0);
    let name = column.column.name();
    let extra = column.extra.to_ascii_lowercase();
    let mut message = match column.default.as_deref().filter(|default| *default != "NULL") {
        _ if extra.contains("auto_increment") => format!("{name} is counted up by the server"),
        None if triggers.is_empty() => {
            format!("{name} has no default and no trigger: the application sets it")
        }
        None => format!("{name} is not set in a new row"),
        Some(default) => format!("{name} is {default} in a new row"),
    };
    if extra.contains("on update") {
        message.push_str(", and set anew by every update");
    } else if column.default.is_some() && !extra.contains("auto_increment") {
        message.push_str("; an update changes it only if it says so");
    }
    if !triggers.is_empty() {
        message.push_str(&format!("; it may be set by the triggers {triggers}"));
    }
    Ok(Finding::new(Verdict::Fine, "origin", message).of_table(table))
}
