//! `doctor`: looks at all that a sync stands on, and says what would make its runs
//! fail or go slowly. Reads, but for a probe in the lake that is deleted again.

use std::cmp::Ordering;

use serde::Serialize;
use tidelake_connector::{
    ClockRequest, DiagnosedTable, Effort, FencePurpose, Finding, HighestRequest, LogPosition,
    Source, TableFilter, Verdict,
};
use tidelake_lake::Lake;
use tidelake_model::{
    Error, ErrorKind, FenceMode, Result, Strategy, SyncConfig, TableName, TargetLocation,
    WatermarkFilter, instant_text,
};
use tidelake_state::LockFilter;
use tokio_util::sync::CancellationToken;

use crate::application::Application;
use crate::run::{connect_publisher, connect_source};
use crate::tables::{SelectedTable, table_key, tables_of};

/// Clocks that differ by more than this, in nanoseconds, are told.
const SKEW: i128 = 2_000_000_000;

/// What a doctor looks at.
#[derive(Clone)]
pub struct DoctorRequest {
    /// Environment.
    pub env: String,
    /// A sync with all that it names; all syncs of the environment without one,
    /// unless a source is named.
    pub sync_id: Option<String>,
    /// A source alone, by the id of its credential.
    pub source: Option<String>,
    /// Cancelled when the user interrupts.
    pub cancel: CancellationToken,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// What was looked at, in order.
    pub parts: Vec<Part>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// `state store`, `source`, `lake`, `target` or `tables`.
    pub part: &'static str,
    /// The sync, where it is one's.
    pub sync_id: Option<String>,
    /// Where it is, without secrets.
    pub place: String,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// The worst of all verdicts.
    pub fn verdict(&self) -> Verdict {
        let findings = self.parts.iter().flat_map(|part| &part.findings);
        findings.map(|finding| finding.verdict).max().unwrap_or(Verdict::Fine)
    }
}

/// Looks at everything. What cannot be reached is a finding and no error; an error
/// is a sync or a credential that does not exist, or an interruption.
pub async fn doctor(app: &Application, request: &DoctorRequest) -> Result<Diagnosis> {
    let looked = look(app, request);
    tokio::select! {
        biased;
        () = request.cancel.cancelled() => {
            Err(Error::new(ErrorKind::Interrupted, "the doctor was interrupted"))
        }
        looked = looked => looked,
    }
}

async fn look(app: &Application, request: &DoctorRequest) -> Result<Diagnosis> {
    let mut parts = vec![state_store(app).await];
    if let Some(credential) = &request.source {
        parts.push(source_alone(app, credential).await?);
    }
    let syncs = match (&request.sync_id, &request.source) {
        (Some(sync_id), _) => vec![app.state.sync(&request.env, sync_id).await?],
        (None, Some(_)) => vec![],
        (None, None) => app.state.syncs(Some(&request.env)).await?,
    };
    for sync in &syncs {
        parts.extend(of_sync(app, sync).await);
    }
    Ok(Diagnosis { parts })
}

/// Nanoseconds since the epoch by this machine's clock.
fn now() -> i128 {
    chrono::Utc::now().timestamp_nanos_opt().map_or(0, i128::from)
}

/// The clock of another machine against ours, with the time that asking took.
fn clock_finding(theirs: i128, before: i128, after: i128) -> Finding {
    let off = if theirs < before {
        theirs.saturating_sub(before)
    } else {
        theirs.saturating_sub(after).max(0)
    };
    let seconds =
        |nanos: i128| format!("{}.{:01} s", nanos / 1_000_000_000, nanos / 100_000_000 % 10);
    let at = instant_text(theirs.div_euclid(1_000_000_000).saturating_mul(1_000_000_000));
    if off.abs() <= SKEW {
        return Finding::new(Verdict::Fine, "clock", format!("shows {at}, as this machine does"));
    }
    let direction = if off > 0 { "ahead of" } else { "behind" };
    let message = format!("shows {at}, {} {direction} this machine", seconds(off.abs()));
    Finding::new(Verdict::Warning, "clock", message)
        .with_hint("set the clocks by NTP; windows go by the source's own clock")
}

async fn state_store(app: &Application) -> Part {
    let before = now();
    let found = match app.state.now().await {
        Ok(theirs) => vec![
            Finding::new(Verdict::Fine, "connection", "it answers"),
            clock_finding(theirs, before, now()),
        ],
        Err(error) => vec![Finding::of_error("connection", &error)],
    };
    Part { part: "state store", sync_id: None, place: app.state.location(), findings: found }
}

async fn source_alone(app: &Application, credential: &str) -> Result<Part> {
    // One that does not exist is a mistake, and nothing to be examined.
    let known = app.credentials.credential(credential)?;
    let connector = app.connectors.connector(&known.kind)?;
    let mut part =
        Part { part: "source", sync_id: None, place: credential.to_owned(), findings: vec![] };
    let found = async {
        let source = connector.source(&known.info).await?;
        let tables = source.tables(&TableFilter::default()).await?;
        let tables: Vec<_> =
            tables.into_iter().map(|table| DiagnosedTable { table, cursor: None }).collect();
        source_findings(source.as_ref(), &tables).await
    };
    part.findings =
        found.await.unwrap_or_else(|error| vec![Finding::of_error("connection", &error)]);
    Ok(part)
}

/// What the source says of itself and of tables, and its clock.
async fn source_findings(source: &dyn Source, tables: &[DiagnosedTable]) -> Result<Vec<Finding>> {
    let mut findings = vec![Finding::new(Verdict::Fine, "connection", "it answers")];
    if let Some(first) = tables.first() {
        // For times a replica tells how far it has replayed, which is no clock.
        let request = ClockRequest {
            table: first.table.name.clone(),
            purpose: FencePurpose::Identifier,
            mode: FenceMode::Off,
            wait: std::time::Duration::ZERO,
            ignore_users: vec![],
            log: LogPosition::Unasked,
        };
        let before = now();
        match source.clock(&request).await {
            Ok(reading) => findings.push(clock_finding(reading.now, before, now())),
            Err(error) => findings.push(Finding::of_error("clock", &error)),
        }
    }
    findings.extend(source.diagnose(tables).await?);
    Ok(findings)
}

async fn of_sync(app: &Application, sync: &SyncConfig) -> Vec<Part> {
    let part = |part, place: String, findings| Part {
        part,
        sync_id: Some(sync.sync_id.clone()),
        place,
        findings,
    };
    let mut parts = vec![];
    let credential = sync.source.credential_id.clone();
    let mut selected = vec![];
    let found = async {
        let source = connect_source(app, sync).await?;
        let mut findings = vec![];
        for table in tables_of(sync, source.as_ref()).await? {
            match table {
                Ok(table) => selected.push(table),
                Err(error) => findings.push(Finding::of_error("table", &error)),
            }
        }
        let diagnosed: Vec<_> = selected.iter().map(diagnosed).collect();
        let mut all = source_findings(source.as_ref(), &diagnosed).await?;
        all.extend(findings);
        all.extend(behind(app, sync, source.as_ref(), &selected).await?);
        Ok(all)
    };
    let found: Result<Vec<Finding>> = found.await;
    let found = found.unwrap_or_else(|error| vec![Finding::of_error("connection", &error)]);
    parts.push(part("source", credential, found));
    let place = match &sync.target.location {
        TargetLocation::Folder(folder) => folder.clone(),
        TargetLocation::Credential(id) => id.clone(),
    };
    let (place, found) = match app.storages.open(&sync.target.location).await {
        Ok(storage) => {
            let lake = Lake::new(storage);
            (lake.location(), lake_findings(app, sync, &lake).await)
        }
        Err(error) => (place, vec![Finding::of_error("connection", &error)]),
    };
    parts.push(part("lake", place, found));
    if let Some(settings) = &sync.publish {
        let place = settings.credential_id.clone();
        parts.push(part("target", place, target_findings(app, sync, &selected).await));
    }
    parts
}

/// The table as its source is asked about it: the columns that are read.
fn diagnosed(selected: &SelectedTable) -> DiagnosedTable {
    let mut table = selected.table.clone();
    table.columns.clone_from(&selected.read_columns);
    DiagnosedTable { table, cursor: selected.cursor.as_ref().map(|cursor| cursor.read.clone()) }
}

/// Tables whose highest value is below what was exported.
async fn behind(
    app: &Application,
    sync: &SyncConfig,
    source: &dyn Source,
    selected: &[SelectedTable],
) -> Result<Vec<Finding>> {
    let mut findings = vec![];
    for table in selected {
        let Some(cursor) = &table.cursor else { continue };
        let name = &table.table.name;
        let key = table_key(sync, name);
        let filter = WatermarkFilter {
            env: Some(key.env),
            scope: Some(key.scope),
            table: Some(name.to_string()),
            ..WatermarkFilter::default()
        };
        let stored = app.state.watermarks(&filter).await?.pop();
        let Some(seen) = stored.and_then(|record| record.progress.max_seen) else { continue };
        let request = HighestRequest {
            table: name.clone(),
            cursor: cursor.read.clone(),
            effort: Effort::Cheap,
            count: None,
            count_nulls: false,
        };
        let highest = match source.highest(&request).await {
            Ok(highest) => highest.value,
            Err(error) => {
                findings.push(Finding::of_error("cursor", &error).of_table(name));
                continue;
            }
        };
        if let Some(Some(top)) = highest
            && matches!(top.compare(&seen), Ok(Ordering::Less))
        {
            findings.push(
                Finding::new(
                    Verdict::Warning,
                    "watermark",
                    format!("the highest value {top} is below {seen}, which was exported before"),
                )
                .with_hint("was the source restored or truncated? watermarks reset reads it anew")
                .of_table(name),
            );
        }
    }
    Ok(findings)
}

/// Whether the lake can be written, and agrees with the state store.
async fn lake_findings(app: &Application, sync: &SyncConfig, lake: &Lake) -> Vec<Finding> {
    let mut findings = vec![match lake.check_writable().await {
        Ok(()) => Finding::new(Verdict::Fine, "writing", "it can be written, and keeps conditions"),
        Err(error) => Finding::of_error("writing", &error),
    }];
    match heads(app, sync, lake).await {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(Finding::of_error("tables", &error)),
    }
    findings
}

async fn heads(app: &Application, sync: &SyncConfig, lake: &Lake) -> Result<Vec<Finding>> {
    let filter = LockFilter {
        env: Some(sync.env.clone()),
        scope: Some(sync.sync_id.clone()),
        ..LockFilter::default()
    };
    let locks = app.state.locks(&filter).await?;
    let mut findings = vec![];
    for known in app.state.tables(&sync.env, &sync.sync_id).await? {
        let Some(name) = &known.key.table else { continue };
        let say = |verdict, message: String| {
            Finding::new(verdict, "state and lake", message).of_table(name)
        };
        // A run at work changes both, one after the other.
        if let Some(lock) = locks.iter().find(|lock| lock.key == known.key) {
            findings.push(say(Verdict::Fine, format!("run {} is at work", lock.run_id)));
            continue;
        }
        let newest = app.state.runs_of_table(&known.key, 1).await?;
        if let Some(left) = newest.iter().find(|run| run.status.is_unfinished()) {
            let message = format!("run {} was interrupted", left.run_id);
            findings
                .push(say(Verdict::Warning, message).with_hint("the next tidelake sync ends it"));
            continue;
        }
        let folder = lake.table(sync.target.sub_path.as_deref(), name);
        let in_lake = folder.latest().await?.map(|latest| latest.head);
        let remembered = known.head.map(|head| head.run_id);
        findings.push(if in_lake == remembered {
            say(Verdict::Fine, "both have the same newest run".to_owned())
        } else {
            say(
                Verdict::Failure,
                format!("they disagree on the newest run in {}", folder.location()),
            )
            .with_hint(
                "decide: sync --on-mismatch adopt goes on from what the lake says, sync \
                     --on-mismatch rebuild reads the table anew",
            )
        });
    }
    Ok(findings)
}

async fn target_findings(
    app: &Application,
    sync: &SyncConfig,
    selected: &[SelectedTable],
) -> Vec<Finding> {
    let publisher = match connect_publisher(app, sync).await {
        Ok(Some(publisher)) => publisher,
        Ok(None) => return vec![],
        Err(error) => return vec![Finding::of_error("connection", &error)],
    };
    let mut findings = vec![Finding::new(Verdict::Fine, "connection", "it answers")];
    let Some(settings) = &sync.publish else { return findings };
    let unsupported: Vec<&TableName> = selected
        .iter()
        .filter(|table| {
            let cursor = table.cursor.as_ref();
            let strategy = cursor.map_or(Strategy::Append, |cursor| cursor.settings.strategy);
            !publisher.supports(settings.method, strategy)
        })
        .map(|table| &table.table.name)
        .collect();
    for name in unsupported {
        findings.push(
            Finding::new(Verdict::Failure, "strategy", "the target cannot load it in this way")
                .with_hint("choose another strategy or --publish-method")
                .of_table(name),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_off_only_by_what_asking_does_not_explain() {
        let second = 1_000_000_000;
        let found = |theirs| clock_finding(theirs, 100 * second, 110 * second);
        for theirs in [99, 105, 111] {
            assert_eq!(found(theirs * second).verdict, Verdict::Fine, "{theirs}");
        }
        let ahead = found(115 * second);
        assert_eq!(ahead.verdict, Verdict::Warning);
        assert!(ahead.message.contains("5.0 s ahead of"), "{}", ahead.message);
        let behind = found(10 * second);
        assert!(behind.message.contains("90.0 s behind"), "{}", behind.message);
    }
}
