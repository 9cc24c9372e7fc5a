//! What would make a run fail or go slowly, as the server itself tells it.

use std::collections::BTreeSet;

use tidelake_connector::{
    DiagnosedTable, Effort, Finding, HighestRequest, Verdict, cursor_findings, missing_finding,
    null_finding, size_finding,
};
use tidelake_model::{CursorRead, Result, Table, TableName};
use tidelake_watermark::Cursor;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::catalogue::{self, get};
use crate::failure::failure;
use crate::highest::highest;
use crate::pool::Pool;
use crate::session::Session;

const DOING: &str = "the server cannot be diagnosed";

/// Transactions of this age hold the fence back so far that it should be known.
const LONG_OPEN: f64 = 60.0;
/// A standby that is so far behind, in seconds, is told.
const FAR_BEHIND: f64 = 60.0;
/// Connections that a run may want.
const CONNECTIONS: i64 = 8;
/// Below this, values do not rise with the order in which rows were written.
const RISING: f32 = 0.9;

const SERVER: &str = "
SELECT current_setting('server_version'), pg_is_in_recovery(),
       CASE WHEN pg_last_wal_receive_lsn() IS DISTINCT FROM pg_last_wal_replay_lsn()
            THEN extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8
            ELSE 0 END,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
       current_setting('track_activities')::bool, current_setting('server_encoding'),
       current_setting('max_connections')::int8
         - current_setting('superuser_reserved_connections')::int8
         - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
       (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user)::int8,
       coalesce((SELECT setting FROM pg_settings WHERE name = 'old_snapshot_threshold'), '-1')";

/// Sessions with the oldest transactions of this database, ours aside.
const OPEN: &str = "
SELECT a.pid, coalesce(a.usename::text, '?'),
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8
FROM pg_stat_activity a
WHERE a.datid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND a.pid <> pg_backend_pid() AND a.xact_start IS NOT NULL
  AND coalesce(a.backend_type, '') = 'client backend' AND NOT (a.pid = ANY ($1))
  AND a.xact_start < clock_timestamp() - make_interval(secs => $2)
ORDER BY a.xact_start LIMIT 3";

const PREPARED: &str = "
SELECT gid, coalesce(owner::text, '?'),
       extract(epoch FROM clock_timestamp() - prepared)::float8
FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared LIMIT 3";

const RIGHTS: &str = "
SELECT has_schema_privilege(n.oid, 'USAGE'), has_table_privilege(c.oid, 'SELECT'),
       row_security_active(c.oid),
       (SELECT array_agg(a.attname::text) FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
          AND has_column_privilege(c.oid, a.attnum, 'SELECT'))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1";

/// Where the values of a column come from: its default, the cache of its sequence,
/// triggers before a row is written, and how its values lie in the table.
const COLUMN: &str = "
SELECT pg_get_expr(d.adbin, d.adrelid),
       (SELECT max(s.seqcache) FROM pg_depend p JOIN pg_sequence s ON s.seqrelid = p.objid
        WHERE p.refobjid = a.attrelid AND p.refobjsubid = a.attnum AND p.deptype IN ('a', 'i')),
       (SELECT string_agg(quote_ident(t.tgname), ', ' ORDER BY t.tgname) FROM pg_trigger t
        WHERE t.tgrelid = a.attrelid AND NOT t.tgisinternal AND t.tgtype & 2 = 2
          AND t.tgtype & 1 = 1),
       (SELECT max(s.correlation)::float4 FROM pg_stats s
        WHERE s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
          AND NOT s.inherited)
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1 AND a.attname = $2 AND NOT a.attisdropped";

/// Looks at the server and at each table.
pub(crate) async fn diagnose(pool: &Pool, tables: &[DiagnosedTable]) -> Result<Vec<Finding>> {
    let session = pool.get().await?;
    let looked = async {
        let mut findings = server(&session).await?;
        findings.extend(transactions(pool, &session).await?);
        for diagnosed in tables {
            findings.extend(table(&session, diagnosed).await?);
        }
        Ok(findings)
    };
    let mut findings = looked.await?;
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

async fn server(session: &Session) -> Result<Vec<Finding>> {
    let row = session.client.query_typed_one(SERVER, &[]).await;
    let row = row.map_err(|error| failure(error, DOING))?;
    let version: &str = get(&row, 0)?;
    let is_standby: bool = get(&row, 1)?;
    let role = if is_standby { "a standby" } else { "a primary" };
    let mut findings =
        vec![Finding::new(Verdict::Fine, "server", format!("version {version}, {role}"))];
    if is_standby {
        findings.extend(standby(get(&row, 2)?));
    } else {
        findings.push(fence(get(&row, 3)?, get(&row, 4)?));
    }
    let encoding: &str = get(&row, 5)?;
    if encoding == "SQL_ASCII" {
        findings.push(
            Finding::new(
                Verdict::Warning,
                "encoding",
                "the database is of encoding SQL_ASCII: nobody checked that its texts are UTF-8",
            )
            .with_hint("a text that is not fails its table, and the error names the column"),
        );
    }
    let (free, limit): (i64, i64) = (get(&row, 6)?, get::<Option<i64>>(&row, 7)?.unwrap_or(-1));
    let free = if limit >= 0 { free.min(limit) } else { free };
    findings.push(if free < CONNECTIONS {
        Finding::new(Verdict::Warning, "connections", format!("{} are left", free.max(0)))
            .with_hint("lower --n-jobs and --parallel, or raise the server's max_connections")
    } else {
        Finding::new(Verdict::Fine, "connections", format!("{free} are left"))
    });
    let threshold: &str = get(&row, 8)?;
    if threshold != "-1" {
        findings.push(
            Finding::new(
                Verdict::Warning,
                "old_snapshot_threshold",
                format!("a snapshot older than {threshold} minutes may be too old to read"),
            )
            .with_hint("set it to -1, or keep the windows small by syncing often"),
        );
    }
    Ok(findings)
}

fn standby(behind: Option<f64>) -> Vec<Finding> {
    let fence = Finding::new(
        Verdict::Warning,
        "fence",
        "a standby cannot see the primary's transactions in flight",
    )
    .with_hint("name the primary's credential with --fence-auth-id, or set a safety lag");
    let lag = match behind {
        None => Finding::new(Verdict::Warning, "replay", "nothing was replayed since it started")
            .with_hint("check that it is connected to its primary"),
        Some(seconds) if seconds > FAR_BEHIND => Finding::new(
            Verdict::Warning,
            "replay",
            format!("it is {seconds:.0} s behind its primary"),
        )
        .with_hint("rows arrive once they are replayed; look at what slows the replay"),
        Some(seconds) => Finding::new(Verdict::Fine, "replay", format!("{seconds:.1} s behind")),
    };
    vec![fence, lag]
}

fn fence(may_see: bool, tracked: bool) -> Finding {
    let weak = |message: &str| Finding::new(Verdict::Warning, "fence", message);
    match (may_see, tracked) {
        (true, true) => {
            Finding::new(Verdict::Fine, "fence", "the transactions of others can be seen")
        }
        (false, _) => weak("the user may not see when the transactions of others began")
            .with_hint("grant pg_read_all_stats (or pg_monitor) to the user, or set a safety lag"),
        (true, false) => weak("the server does not track activities")
            .with_hint("set track_activities to on, or set a safety lag"),
    }
}

/// What holds the fence back now.
async fn transactions(pool: &Pool, session: &Session) -> Result<Vec<Finding>> {
    let own = pool.open_sessions();
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
        [(&own, Type::INT4_ARRAY), (&LONG_OPEN, Type::FLOAT8)];
    let rows = session.client.query_typed(OPEN, &parameters).await;
    let rows = rows.map_err(|error| failure(error, DOING))?;
    let mut findings = vec![];
    for row in &rows {
        let (pid, user, age): (i32, &str, f64) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
        findings.push(
            Finding::new(
                Verdict::Warning,
                "transactions",
                format!("process {pid} of user {user:?} has one open for {age:.0} s"),
            )
            .with_hint(
                "rows above its start wait for it; end it, or name its user with --inflight-ignore",
            ),
        );
    }
    let rows = session.client.query_typed(PREPARED, &[]).await;
    for row in &rows.map_err(|error| failure(error, DOING))? {
        let (gid, owner, age): (&str, &str, f64) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
        findings.push(
            Finding::new(
                Verdict::Warning,
                "transactions",
                format!("{gid:?} of user {owner:?} is prepared since {age:.0} s"),
            )
            .with_hint("nothing is read of the tables that it wrote; commit or roll it back"),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::new(Verdict::Fine, "transactions", "none is open for long"));
    }
    Ok(findings)
}

async fn table(session: &Session, diagnosed: &DiagnosedTable) -> Result<Vec<Finding>> {
    let name = &diagnosed.table.name;
    let Some(relation) = catalogue::relation(session, name).await? else {
        return Ok(vec![missing_finding(name)]);
    };
    let mut columns = catalogue::columns(session, &[relation.oid]).await?;
    let columns = columns.remove(&relation.oid).unwrap_or_default();
    let table = Table {
        columns: columns.into_iter().map(|found| found.column).collect(),
        ..diagnosed.table.clone()
    };
    let rights = session.client.query_typed_one(RIGHTS, &[(&relation.oid, Type::OID)]).await;
    let rights = rights.map_err(|error| failure(error, DOING))?;
    let wanted = diagnosed.table.columns.iter().map(tidelake_model::Column::name);
    let mut findings = vec![rights_finding(name, &rights, wanted)?];
    if get(&rights, 2)? {
        findings.push(
            Finding::new(Verdict::Failure, "row security", "a policy hides rows from this user")
                .with_hint("let the user bypass it: ALTER ROLE … BYPASSRLS, or use the owner")
                .of_table(name),
        );
    }
    findings.push(size_finding(&table));
    let Some(cursor) = &diagnosed.cursor else { return Ok(findings) };
    findings.extend(cursor_findings(&table, cursor));
    for column in cursor.cursor.columns() {
        if table.column(column).is_some() {
            findings.extend(rises(session, relation.oid, name, column).await?);
        }
    }
    Ok(findings)
}

fn rights_finding<'a>(
    name: &TableName,
    rights: &Row,
    wanted: impl Iterator<Item = &'a str>,
) -> Result<Finding> {
    let (schema, whole): (bool, bool) = (get(rights, 0)?, get(rights, 1)?);
    let readable = get::<Option<Vec<String>>>(rights, 3)?.unwrap_or_default();
    let readable: BTreeSet<_> = readable.iter().map(String::as_str).collect();
    let forbidden: Vec<_> = wanted.filter(|column| !readable.contains(column)).collect();
    let failed = |message: String, hint: String| {
        Finding::new(Verdict::Failure, "rights", message).with_hint(hint)
    };
    let finding = if !schema {
        let hint = format!("GRANT USAGE ON SCHEMA {} TO the user", name.schema);
        failed("the user may not use the schema".to_owned(), hint)
    } else if whole || forbidden.is_empty() {
        Finding::new(Verdict::Fine, "rights", "the user may read it")
    } else {
        failed(
            format!("the user may not read {}", forbidden.join(", ")),
            format!("GRANT SELECT ON {name} TO the user, or leave the columns out"),
        )
    };
    Ok(finding.of_table(name))
}

/// What can be known of whether the column's values rise.
async fn rises(
    session: &Session,
    relation: u32,
    table: &TableName,
    column: &str,
) -> Result<Vec<Finding>> {
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
        [(&relation, Type::OID), (&column, Type::TEXT)];
    let row = session.client.query_typed_one(COLUMN, &parameters).await;
    let row = row.map_err(|error| failure(error, DOING))?;
    let mut findings = vec![];
    let default: Option<&str> = get(&row, 0)?;
    let triggers: Option<&str> = get(&row, 2)?;
    findings.push(match (default, triggers) {
        (None, None) => Finding::new(
            Verdict::Fine,
            "origin",
            format!("{column} has no default and no trigger: the application sets it"),
        ),
        (Some(default), None) => Finding::new(
            Verdict::Fine,
            "origin",
            format!("{column} is {default} in a new row; an update changes it only if it says so"),
        ),
        (default, Some(triggers)) => Finding::new(
            Verdict::Fine,
            "origin",
            format!(
                "{column} is {} in a new row, and may be set by the triggers {triggers}",
                default.unwrap_or("not set")
            ),
        ),
    });
    if default.is_some_and(|default| default.contains("clock_timestamp")) {
        findings.push(
            Finding::new(
                Verdict::Warning,
                "late rows",
                format!("{column} is stamped while its transaction runs, not with its start"),
            )
            .with_hint("a safety lag covers rows that are stamped early and written late"),
        );
    }
    if get::<Option<i64>>(&row, 1)?.is_some_and(|cached| cached > 1) {
        findings.push(
            Finding::new(
                Verdict::Warning,
                "late rows",
                format!("the sequence of {column} keeps numbers in each session's cache"),
            )
            .with_hint("set its CACHE to 1, or a --safety-gap of a few caches"),
        );
    }
    findings.push(match get::<Option<f32>>(&row, 3)? {
        None => Finding::new(
            Verdict::Fine,
            "order",
            format!("whether {column} rises is not known: there are no statistics of it"),
        ),
        Some(correlation) if correlation >= RISING => Finding::new(
            Verdict::Fine,
            "order",
            format!("{column} rises with the order of the rows (correlation {correlation:.2})"),
        ),
        Some(correlation) => Finding::new(
            Verdict::Warning,
            "order",
            format!(
                "{column} does not rise with the order of the rows (correlation {correlation:.2}): \
                 rows may be written below the watermark"
            ),
        )
        .with_hint("check that a new or changed row gets a higher value; see --lookback"),
    });
    Ok(findings.into_iter().map(|finding| finding.of_table(table)).collect())
}
