//! `demo`: a small shop, a sync, and what its second run moves.
//!
//! Everything is done by the code of the other commands, with files that stay:
//! the commands that are shown can be typed.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use tidelake_model::{Error, ErrorKind, Result};
use tidelake_sync::{Host, LeaseTimes, OnMismatch, RunMode, RunReport};

use super::{Session, config_create, sync, watermarks};
use crate::args::{Cli, Command, ConfigCommand, DemoArgs, SelectArgs, WatermarksCommand};
use crate::exit::Exit;
use crate::host::Machine;
use crate::output::{Output, counted, fields, or_dash, size};
use crate::settings::{
    CreateSettings, GlobalSettings, OutputForm, Resume, SyncSettings, configuration,
};
use crate::wiring::shop;

const SYNC: &str = "demo";
const GLOBAL: &str = "-a credentials.json --lxdb-auth-id state";

/// What the demo made, for programs.
#[derive(Serialize)]
struct Made<'a> {
    folder: &'a Path,
    sync_id: &'a str,
    runs: [&'a RunReport; 2],
}

/// Shows all of it.
pub(super) async fn demo(session: &Session, args: &DemoArgs) -> Result<Exit> {
    let folder = folder(args.dir.as_deref())?;
    let database = folder.join("shop.db");
    let credentials = folder.join("credentials.json");
    write_credentials(&folder, &credentials)?;
    let output = session.output.clone();
    let terminal = match output.form {
        OutputForm::Table => output.terminal.clone(),
        OutputForm::Json => output.terminal.clone().without_results(),
    };
    let session = Session {
        settings: GlobalSettings {
            auth_file: Some(credentials),
            state_credential: Some("state".to_owned()),
            env: String::new(),
            ..session.settings.clone()
        },
        output: Output { form: OutputForm::Table, terminal },
        interrupt: session.interrupt.clone(),
    };
    let say = |text: &str| session.output.terminal.result(text);

    say(&format!("A first look at tidelake. Everything is in\n{}\n", folder.display()));
    shop::create_shop(&database)?;
    say("\n1. A small shop: shop.db with customers, orders and events.\n");

    let create = create_command();
    say(&format!(
        "\n2. A sync that knows how its tables grow. It is checked and stored:\n\n{create}\n"
    ));
    let app = session.application().await?;
    let draft = create_settings(&create, &folder)?.draft;
    config_create::create_in(&session.output, &app, draft).await?;

    say(&format!(
        "\n3. The first sync reads everything:\n\n$ tidelake sync {GLOBAL} --sync-id {SYNC}\n\n"
    ));
    let first = sync::run_in(&session, &app, sync_settings()).await?;
    if Exit::of_report(&first) != Exit::Done {
        return Ok(Exit::of_report(&first));
    }

    let rows = shop::add_rows(&database)?;
    say(&format!(
        "\n4. {} arrive in the shop. The second sync reads those alone, and the\n   \
         table without a cursor anew:\n\n$ tidelake sync {GLOBAL} --sync-id {SYNC}\n\n",
        counted(rows, "new row"),
    ));
    let second = sync::run_in(&session, &app, sync_settings()).await?;
    if Exit::of_report(&second) != Exit::Done {
        return Ok(Exit::of_report(&second));
    }
    say(&format!("\n   The watermarks moved\n{}", moves(&second)));

    say(&format!(
        "\n5. How far it got is known exactly:\n\n$ tidelake watermarks list {GLOBAL}\n\n"
    ));
    let select = SelectArgs { sync_id: None, table: None, connector_type: None, source_key: None };
    watermarks::watermarks(&session, WatermarksCommand::List(select)).await?;

    let lake = folder.join("lake");
    say(&format!(
        "\n6. The lake. A file counts when a manifest in _tidelake names it:\n\n{}",
        tree(&lake)?
    ));
    say(&format!(
        "\nGo on with:\n  cd {}\n  tidelake plan {GLOBAL} --sync-id {SYNC}\n  \
         tidelake status {GLOBAL} --verbose\n",
        folder.display()
    ));
    if output.form == OutputForm::Json {
        let made = Made { folder: &folder, sync_id: SYNC, runs: [&first, &second] };
        output.emit(&made, |_| String::new())?;
    }
    Ok(Exit::Done)
}

/// The folder that was named, or a temporary one.
fn folder(named: Option<&Path>) -> Result<PathBuf> {
    let wrong = |folder: &Path, what: &str| {
        configuration(format!("the folder {} {what}", folder.display()))
            .with_hint("name an empty or a new folder with --dir")
    };
    let folder = match named {
        Some(folder) => folder.to_owned(),
        None => {
            let run = Machine::new().new_run_id().to_string().to_lowercase();
            let (_, tail) = run.split_at_checked(16).unwrap_or(("", &run));
            std::env::temp_dir().join(format!("tidelake-demo-{tail}"))
        }
    };
    let folder = std::path::absolute(&folder)
        .map_err(|error| wrong(&folder, "cannot be used").with_source(error))?;
    std::fs::create_dir_all(&folder)
        .map_err(|error| wrong(&folder, "cannot be made").with_source(error))?;
    let mut entries = std::fs::read_dir(&folder)
        .map_err(|error| wrong(&folder, "cannot be read").with_source(error))?;
    if entries.next().is_some() {
        return Err(wrong(&folder, "is not empty"));
    }
    Ok(folder)
}

fn write_credentials(folder: &Path, path: &Path) -> Result<()> {
    let credentials = json!({
        "shop": crate::wiring::file_credential(&folder.join("shop.db")),
        "state": crate::wiring::file_credential(&folder.join("state.db")),
    });
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| {
        std::io::Write::write_all(&mut file, format!("{credentials:#}\n").as_bytes())
    });
    written.map_err(|error| {
        configuration(format!("{} cannot be written", path.display())).with_source(error)
    })
}

/// The command that is shown, and then parsed as if it had been typed.
fn create_command() -> String {
    let mut text = format!(
        "$ tidelake config create {GLOBAL} --sync-id {SYNC} \\\n    \
         --source-db-auth-id shop --output-dir lake"
    );
    for table in shop::INCREMENTAL_TABLES {
        let _ = write!(text, " \\\n    --incremental-table {table}");
    }
    text.push('\n');
    text
}

fn create_settings(command: &str, folder: &Path) -> Result<CreateSettings> {
    use clap::Parser;
    let words = command.split_whitespace().filter(|word| !matches!(*word, "$" | "\\"));
    let cli = Cli::try_parse_from(words);
    let Ok(Cli { command: Command::Config(ConfigCommand::Create(mut args)), .. }) = cli else {
        return Err(Error::new(ErrorKind::Internal, "the demo's own command is not valid"));
    };
    // The process does not run in the folder, as whoever types it would.
    args.target.output_dir = Some(folder.join("lake"));
    CreateSettings::resolve("", *args)
}

fn sync_settings() -> SyncSettings {
    SyncSettings {
        sync_id: SYNC.to_owned(),
        mode: RunMode::Whole,
        resume: Resume::No,
        on_mismatch: OnMismatch::Refuse,
        reset_watermarks: false,
        leases: LeaseTimes::default(),
    }
}

/// Each watermark before and after.
fn moves(report: &RunReport) -> String {
    let mut rows = Vec::new();
    for table in report.tables.iter().filter(|table| table.watermark_after.is_some()) {
        rows.push((table.table.to_string(), or_dash(table.watermark_before.as_ref())));
        rows.push((String::new(), format!("to {}", or_dash(table.watermark_after.as_ref()))));
    }
    let rows: Vec<_> = rows.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    fields(3, &rows, None)
}

/// The files below a folder, with their sizes.
fn tree(folder: &Path) -> Result<String> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("{name}/\n");
    branch(folder, "", &mut text).map_err(|error| {
        Error::new(ErrorKind::Unavailable, format!("{} cannot be read", folder.display()))
            .with_source(error)
    })?;
    Ok(text)
}

fn branch(folder: &Path, indent: &str, text: &mut String) -> std::io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let last = entries.len().saturating_sub(1);
    for (number, entry) in entries.iter().enumerate() {
        let (edge, deeper) =
            if number == last { ("└── ", "    ") } else { ("├── ", "│   ") };
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == "_tidelake" {
            let _ = writeln!(text, "{indent}{edge}{name}/  {}", documents(&entry.path())?);
        } else if entry.file_type()?.is_dir() {
            let _ = writeln!(text, "{indent}{edge}{name}/");
            branch(&entry.path(), &format!("{indent}{deeper}"), text)?;
        } else {
            let bytes = size(entry.metadata()?.len());
            let _ = writeln!(text, "{indent}{edge}{name}  {bytes}");
        }
    }
    Ok(())
}

/// What lies in a folder of documents, which change with every run.
fn documents(folder: &Path) -> std::io::Result<String> {
    let runs = std::fs::read_dir(folder.join("runs"))?.count();
    let manifests = counted(u64::try_from(runs).unwrap_or(u64::MAX), "manifest");
    Ok(format!("owner, latest, {manifests}"))
}
