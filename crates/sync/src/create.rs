//! Making a sync: everything that can be checked is checked before it is stored.

use tidelake_connector::{Capabilities, Publisher, Source};
use tidelake_lake::{Lake, check_writable};
use tidelake_model::{
    Error, ErrorKind, FenceMode, IncrementalTable, Notice, NoticeCode, NullCursor, PublishMethod,
    Result, Strategy, SyncConfig, Table, TableName,
};
use tidelake_state::WatermarkSettings;
use tidelake_watermark::{Ceiling, Cursor, Kind, Position, Progress};

use crate::application::Application;
use crate::column_requests::ColumnRequests;
use crate::columns::column_notices;
use crate::cursor::{TableCursor, check_types};
use crate::incremental::IncrementalRequest;
use crate::lake_columns::select;
use crate::primary::connect_primary;
use crate::publish::check_places;
use crate::reach::check_reach;
use crate::run::{connect_publisher, connect_source};
use crate::selection::{find_table, is_left_out, resolve as resolve_columns};
use crate::tables::{SelectedTable, catalogue};
use crate::window::{check_zone, parse_amount, parse_lookback};

/// A sync as a user describes it.
#[derive(Debug, Clone)]
pub struct SyncDraft {
    /// The settings. `incremental` is empty; an empty `sync_id` is generated;
    /// connector types are filled in from the credentials.
    pub config: SyncConfig,
    /// Tables with a cursor, as they were written.
    pub incremental: Vec<IncrementalRequest>,
    /// What was said of single columns, as it was written.
    pub columns: ColumnRequests,
    /// Whether only to check.
    pub dry_run: bool,
}

/// A sync that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Created {
    /// As it is stored.
    pub config: SyncConfig,
    /// The tables that it means now.
    pub tables: Vec<TableName>,
    /// What the user should know.
    pub notices: Vec<Notice>,
}

/// Checks a sync and stores it. Nothing is left behind when it is refused.
pub async fn create(app: &Application, draft: SyncDraft) -> Result<Created> {
    let SyncDraft { mut config, incremental, columns, dry_run } = draft;
    if config.sync_id.is_empty() {
        config.sync_id = generated_id(app);
    }
    check_settings(&config)?;
    config.source.connector_type = app.credentials.credential(&config.source.credential_id)?.kind;
    app.connectors.connector(&config.source.connector_type)?;
    if let Some(publish) = &mut config.publish {
        publish.connector_type = app.credentials.credential(&publish.credential_id)?.kind;
    }
    let storage = app.storages.open(&config.target.location).await?;
    let source = connect_source(app, &config).await?;
    connect_primary(app, &config).await?;
    let publisher = connect_publisher(app, &config).await?;

    let tables = catalogue(&config, source.as_ref()).await?;
    let mut notices = vec![];
    resolve_columns(&columns, &tables, &mut config, &mut notices)?;
    for request in incremental {
        let (what, schema) = ("incremental table", request.schema.as_deref());
        let table = find_table(&tables, what, schema, &request.table)?;
        let resolved = resolve(&request, table)?;
        check_cursor_is_read(&config, &resolved)?;
        check_table(&config, &resolved, table, source.as_ref(), &mut notices)?;
        if config.incremental.iter().any(|other| other.table == resolved.table) {
            return Err(Error::new(
                ErrorKind::Configuration,
                "two cursors were named for one table",
            )
            .with_hint("name each table once with --incremental-table")
            .in_table(&resolved.table));
        }
        config.incremental.push(resolved);
    }
    check_strategies(&config, &tables, publisher.as_deref())?;
    check_places(&config, tables.iter().map(|table| &table.name))?;
    let capabilities = source.capabilities();
    let mut selected = vec![];
    for table in &tables {
        selected.push(select(&config, capabilities, table.clone())?);
    }
    for selected in &selected {
        check_key(&config, selected)?;
        let of_columns = column_notices(selected).into_iter();
        notices.extend(of_columns.map(|notice| {
            Notice::new(notice.code, format!("{}: {}", selected.table.name, notice.message))
        }));
    }
    check_reach(&config, source.as_ref(), &selected, &mut notices).await?;
    check_writable(storage.as_ref()).await?;
    check_owners(app, &config, &Lake::new(storage), &tables).await?;
    if !dry_run {
        app.state.create_sync(&config).await?;
    }
    let tables = tables.into_iter().map(|table| table.name).collect();
    Ok(Created { config, tables, notices })
}

/// `sync-YYYYMMDD-xxxxxx`.
fn generated_id(app: &Application) -> String {
    let run = app.host.new_run_id().to_string().to_lowercase();
    let (_, tail) = run.split_at_checked(20).unwrap_or(("", &run));
    format!("sync-{}-{tail}", chrono::Utc::now().format("%Y%m%d"))
}

fn wrong(message: impl Into<String>, hint: &str) -> Error {
    Error::new(ErrorKind::Configuration, message).with_hint(hint)
}

/// What can be checked without asking anybody.
fn check_settings(config: &SyncConfig) -> Result<()> {
    let id = &config.sync_id;
    let id_is_good = (1..=64).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !id_is_good {
        return Err(wrong(
            format!("{id:?} is no sync id"),
            "choose 1 to 64 letters, digits, _ and - for --sync-id",
        ));
    }
    if config.n_jobs == 0 {
        return Err(wrong("no table could be worked on", "set --n-jobs to 1 or more"));
    }
    if let Some(sub_path) = &config.target.sub_path {
        check_sub_path(sub_path)?;
    }
    if let Some(zone) = &config.cursor_zone {
        check_zone(zone)?;
    }
    if let Some(gap) = &config.safety_gap {
        parse_amount(gap, "safety gap")?;
    }
    if let Some(publish) = &config.publish
        && !publish.table_pattern.contains("{table}")
    {
        return Err(wrong(
            format!("the table pattern {:?} gives every table one name", publish.table_pattern),
            "let --publish-table-pattern hold {table}, for example {schema}_{table}",
        ));
    }
    Ok(())
}

/// A path below the base, and nowhere else.
fn check_sub_path(sub_path: &str) -> Result<()> {
    let hint = "give a relative path such as production/events";
    if sub_path.starts_with(['/', '\\']) {
        return Err(wrong(format!("the sub path {sub_path:?} is absolute"), hint));
    }
    let is_bad = |part: &str| {
        matches!(part, "" | "." | ".." | "_tidelake")
            || part.contains('\\')
            || part.chars().any(char::is_control)
    };
    if let Some(part) = sub_path.trim_end_matches('/').split('/').find(|part| is_bad(part)) {
        return Err(wrong(format!("the sub path {sub_path:?} holds the part {part:?}"), hint));
    }
    Ok(())
}

/// A cursor's columns are read, whatever else is left out.
fn check_cursor_is_read(config: &SyncConfig, settings: &IncrementalTable) -> Result<()> {
    let columns = settings.cursor.columns();
    match columns.iter().find(|column| is_left_out(config, &settings.table, column)) {
        None => Ok(()),
        Some(column) => Err(wrong(
            format!("the cursor's column {column:?} is left out"),
            "read it too: name it in --columns, or take it out of --exclude-columns",
        )
        .in_table(&settings.table)),
    }
}

/// Whoever needs a key has one.
fn check_key(config: &SyncConfig, selected: &SelectedTable) -> Result<()> {
    let needs_key =
        selected.cursor.as_ref().is_some_and(|it| it.settings.strategy == Strategy::Upsert);
    if !needs_key || !selected.table.key().is_empty() {
        return Ok(());
    }
    let name = &selected.table.name;
    let message = match config.columns.iter().any(|selection| selection.table == *name) {
        true => "upsert needs a key, and a column of the table's key is left out",
        false => "upsert needs a key, and the table has none",
    };
    Err(wrong(message, "name the columns that tell its rows apart, with --key schema.table:a,b")
        .in_table(name))
}

fn resolve(request: &IncrementalRequest, table: &Table) -> Result<IncrementalTable> {
    let (kinds, day_ticks) = check_types(&request.cursor, &request.types, table)?;
    let start = match &request.start {
        None => None,
        Some(text) => Some(parse_start(text, &kinds, &table.name)?.to_string()),
    };
    Ok(IncrementalTable {
        table: table.name.clone(),
        cursor: request.cursor.clone(),
        kinds,
        day_ticks,
        direction: request.direction,
        start,
        strategy: request.strategy,
    })
}

fn parse_start(text: &str, kinds: &[Kind], table: &TableName) -> Result<Position> {
    Position::parse(kinds, text).map_err(|error| {
        wrong(
            format!("the start {text:?} does not fit the cursor"),
            &format!("write a value such as @{}", error.example()),
        )
        .with_source(error)
        .in_table(table)
    })
}

/// What a new watermark of a table starts with.
pub(crate) fn watermark_settings(settings: &IncrementalTable) -> Result<WatermarkSettings> {
    let first = match &settings.start {
        None => None,
        Some(text) => Some(parse_start(text, &settings.kinds, &settings.table)?),
    };
    let kinds: Vec<_> = settings.kinds.iter().map(|kind| kind.name()).collect();
    Ok(WatermarkSettings {
        column: settings.cursor.to_string(),
        kind: kinds.join(","),
        initial: Progress { first, direction: settings.direction, ..Progress::default() },
    })
}

/// What a cursor and the settings of the sync allow together.
fn check_table(
    config: &SyncConfig,
    settings: &IncrementalTable,
    table: &Table,
    source: &dyn Source,
    notices: &mut Vec<Notice>,
) -> Result<()> {
    let name = &table.name;
    let cursor = TableCursor::find(settings, table)?;
    let kind = cursor.kind();
    let Capabilities { composite_cursor, fallback_cursor, .. } = source.capabilities();
    let unsupported = match settings.cursor {
        Cursor::Composite(_) => !composite_cursor,
        Cursor::Fallback(_) => !fallback_cursor,
        Cursor::Single(_) => false,
    };
    if unsupported {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("this source cannot read by the cursor {}", settings.cursor),
        )
        .with_hint("choose a cursor of one column")
        .in_table(name));
    }
    if config.safety_lag > 0 && !kind.is_time() {
        return Err(wrong(
            format!(
                "a safety lag of {} seconds means nothing for a cursor of kind {kind}",
                config.safety_lag
            ),
            "leave --incremental-safety-lag out; --safety-gap holds back the highest numbers",
        )
        .in_table(name));
    }
    if config.safety_lag > 0 && cursor.ceiling == Ceiling::Observed {
        return Err(wrong(
            format!(
                "a safety lag of {} seconds means nothing for the cursor {}, which is read up to \
                 its highest value",
                config.safety_lag, settings.cursor
            ),
            "leave --incremental-safety-lag out, or choose a cursor of one time column",
        )
        .in_table(name));
    }
    if config.safety_gap.is_some() && !matches!(kind, Kind::Integer | Kind::Number) {
        return Err(wrong(
            format!("a safety gap means nothing for a cursor of kind {kind}"),
            "leave --safety-gap out; --incremental-safety-lag holds back the newest times",
        )
        .in_table(name));
    }
    let rewrites = settings.strategy != Strategy::Append;
    if let Some(lookback) = &config.lookback {
        parse_lookback(lookback, kind).map_err(|error| error.in_table(name))?;
        if !rewrites {
            return Err(wrong(
                "a lookback reads rows again, and append would double them",
                "choose the strategy with !delete_insert or !upsert after the cursor's type",
            )
            .in_table(name));
        }
    }
    if config.null_cursor == NullCursor::Include && cursor.nullable && !rewrites {
        return Err(wrong(
            "rows without a cursor value would be appended again by every run",
            "set --null-cursor to first or exclude, or the strategy to !delete_insert",
        )
        .in_table(name));
    }
    if config.fence.mode == FenceMode::Require
        && source.capabilities().rows_commit_out_of_order
        && matches!(kind, Kind::Text | Kind::Binary)
    {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("no in-flight fence can be had for a cursor of kind {kind}"),
        )
        .with_hint("set --inflight-fence to auto or off")
        .in_table(name));
    }
    if !rewrites && config.publish.as_ref().is_some_and(|publish| publish.primary_keys) {
        notices.push(Notice::new(
            NoticeCode::Setting,
            format!(
                "{name}: a row that changes is appended again, which the target's primary key \
                 refuses; leave --pk-constraints out unless rows never change"
            ),
        ));
    }
    if !cursor.indexed {
        notices.push(Notice::new(
            NoticeCode::CursorNotIndexed,
            format!(
                "{name}: no index begins with {}, so every sync scans the table",
                settings.cursor
            ),
        ));
    }
    Ok(())
}

/// Whether each table's rows can arrive as they shall.
fn check_strategies(
    config: &SyncConfig,
    tables: &[Table],
    publisher: Option<&dyn Publisher>,
) -> Result<()> {
    for table in tables {
        let cursor = config.incremental.iter().find(|settings| settings.table == table.name);
        let strategy = cursor.map_or(Strategy::Append, |settings| settings.strategy);
        let error = match (publisher, &config.publish) {
            (Some(publisher), Some(publish)) => {
                if publisher.supports(publish.method, strategy) {
                    continue;
                }
                let method = match publish.method {
                    PublishMethod::Internal => "internal",
                    PublishMethod::External => "external",
                };
                Error::new(
                    ErrorKind::Unsupported,
                    format!(
                        "the publish target {:?} cannot {strategy} by the method {method}",
                        publish.credential_id
                    ),
                )
                .with_hint("choose another strategy or --publish-method")
            }
            _ if strategy == Strategy::Upsert => Error::new(
                ErrorKind::Unsupported,
                "plain Parquet files cannot be merged by key",
            )
            .with_hint(
                "choose !append or !delete_insert, or publish with --publish-method internal",
            ),
            _ => continue,
        };
        return Err(error.in_table(&table.name));
    }
    Ok(())
}

/// Another sync of this state store that still exists may own a folder.
async fn check_owners(
    app: &Application,
    config: &SyncConfig,
    lake: &Lake,
    tables: &[Table],
) -> Result<()> {
    let names: Vec<_> = tables.iter().map(|table| &table.name).collect();
    lake.check_folders(config.target.sub_path.as_deref(), &names).await?;
    let identity = app.state.identity().await?;
    for table in tables {
        let folder = lake.table(config.target.sub_path.as_deref(), &table.name);
        let Some(owner) = folder.owner().await? else { continue };
        let is_ours = owner.env == config.env && owner.scope == config.sync_id;
        if owner.state_store == identity
            && !is_ours
            && app.state.sync(&owner.env, &owner.scope).await.is_ok()
        {
            return Err(Error::new(
                ErrorKind::Mismatch,
                format!("{} belongs to the sync {:?}", folder.location(), owner.scope),
            )
            .with_hint("choose another --sub-path or target, or delete that sync")
            .in_table(&table.name));
        }
    }
    Ok(())
}
