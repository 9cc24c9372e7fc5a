//! One file per thing a user can ask for: resolve, call, show.

mod backfill;
mod cleanup;
mod compact;
mod completions;
mod config_create;
mod configs;
mod demo;
mod doctor;
mod explain;
mod lxdb;
mod man;
mod plan;
mod reference;
mod status;
mod sync;
mod verify;
mod watermarks;

use tidelake_model::{Error, ErrorKind, Result, WatermarkFilter};
use tidelake_sync::Application;
use tokio_util::sync::CancellationToken;

use crate::args::{Command, ConfigCommand, LxdbCommand, SelectArgs};
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Output;
use crate::settings::{CreateSettings, GlobalSettings, SyncSettings};
use crate::wiring;

/// What every command works with.
pub(crate) struct Session {
    pub(crate) settings: GlobalSettings,
    pub(crate) output: Output,
    /// Cancelled by the first Ctrl-C.
    pub(crate) interrupt: CancellationToken,
}

impl Session {
    async fn application(&self) -> Result<Application> {
        wiring::application(&self.settings).await
    }

    fn env(&self) -> &str {
        &self.settings.env
    }
}

/// Does what was asked for. What needs no state store and no network is done
/// without a runtime.
pub(crate) fn execute(settings: GlobalSettings, output: Output, command: Command) -> Result<Exit> {
    match command {
        Command::Completions(args) => Ok(completions::print(&output, &args)),
        Command::Man(args) => man::print(&output, &args),
        Command::Reference => Ok(reference::print(&output)),
        command => {
            let is_durable = matches!(
                command,
                Command::Sync(_) | Command::Demo(_) | Command::Backfill(_) | Command::Compact(_)
            );
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            let runtime = runtime.map_err(|error| {
                Error::new(ErrorKind::Internal, "no threads could be started").with_source(error)
            })?;
            let exit = runtime.block_on(async {
                let interrupt = interrupt::watch(output.terminal.clone(), is_durable);
                work(&Session { settings, output, interrupt }, command).await
            });
            // A connection that hangs while it is closed must not keep the user.
            runtime.shutdown_background();
            exit
        }
    }
}

async fn work(session: &Session, command: Command) -> Result<Exit> {
    match command {
        Command::Demo(args) => demo::demo(session, &args).await,
        Command::Config(ConfigCommand::Create(args)) => {
            let settings = CreateSettings::resolve(session.env(), *args)?;
            config_create::create(session, settings).await
        }
        Command::Config(ConfigCommand::List) => configs::list(session).await,
        Command::Config(ConfigCommand::Show(args)) => configs::show(session, &args.sync_id).await,
        Command::Config(ConfigCommand::Delete(args)) => {
            configs::delete(session, &args.sync_id).await
        }
        Command::Sync(args) => sync::sync(session, SyncSettings::resolve(args)?).await,
        Command::Plan(args) => plan::plan(session, &args.sync_id).await,
        Command::Verify(args) => verify::verify(session, args).await,
        Command::Explain(args) => explain::explain(session, &args).await,
        Command::Backfill(args) => backfill::run(session, &args).await,
        Command::Compact(args) => compact::run(session, &args).await,
        Command::Cleanup(args) => cleanup::run(session, &args).await,
        Command::Doctor(args) => doctor::run(session, &args).await,
        Command::Status(args) => status::status(session, &args).await,
        Command::Watermarks(command) => watermarks::watermarks(session, command).await,
        Command::Lxdb(LxdbCommand::Init) => lxdb::init(session).await,
        Command::Lxdb(LxdbCommand::Drop(args)) => lxdb::destroy(session, args.confirm).await,
        Command::Lxdb(LxdbCommand::Truncate(args)) => lxdb::truncate(session, args.confirm).await,
        Command::Lxdb(LxdbCommand::Locks(args)) => lxdb::locks(session, &args).await,
        Command::Lxdb(LxdbCommand::ReleaseLocks(args)) => lxdb::release(session, &args).await,
        // Done before a runtime was started.
        Command::Completions(_) | Command::Man(_) | Command::Reference => Ok(Exit::Done),
    }
}

/// The watermarks that were selected.
fn watermark_filter(env: &str, select: &SelectArgs) -> WatermarkFilter {
    WatermarkFilter {
        env: Some(env.to_owned()),
        scope: select.sync_id.clone(),
        connector_type: select.connector_type.clone(),
        source_key: select.source_key.clone(),
        table: select.table.clone(),
    }
}
