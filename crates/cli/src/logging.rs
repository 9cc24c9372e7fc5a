//! What the program tells of its work: stderr for people, files for machines.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use tidelake_model::{Error, ErrorKind, Result, instant_text};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

use crate::output::one_line;
use crate::settings::GlobalSettings;
use crate::terminal::Terminal;

/// Starts the log. Our own crates speak at the level that was asked for, others
/// only of trouble.
pub(crate) fn start(settings: &GlobalSettings, terminal: &Terminal) -> Result<()> {
    let level = settings.log_level;
    let filter = Targets::new().with_default(level.min(Level::WARN)).with_target("tidelake", level);
    let writer = terminal.clone();
    let people = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .event_format(Plain { started: (level >= Level::DEBUG).then_some(settings.began) })
        .with_writer(move || writer.clone());
    let machines = match &settings.log_dir {
        None => None,
        Some(folder) => {
            let file = Arc::new(log_file(folder)?);
            Some(tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(file))
        }
    };
    tracing_subscriber::registry().with(people).with(machines).with(filter).init();
    Ok(())
}

/// Today's file, to which several processes may append: each line is one write.
fn log_file(folder: &Path) -> Result<File> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = instant_text(i128::try_from(now.as_nanos()).unwrap_or_default());
    let day = now.split('T').next().unwrap_or_default();
    let path = folder.join(format!("tidelake-{day}.jsonl"));
    std::fs::create_dir_all(folder)
        .and_then(|()| OpenOptions::new().create(true).append(true).open(&path))
        .map_err(|error| {
            let message = format!("the log file {} cannot be written", path.display());
            Error::new(ErrorKind::Configuration, message)
                .with_hint("name a folder that you may write to with --log-dir")
                .with_source(error)
        })
}

/// `warning: message`, in the same form as errors; at DEBUG with the time since
/// the program began.
struct Plain {
    started: Option<Instant>,
}

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let label = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "info",
            _ => "debug",
        };
        if let Some(started) = self.started {
            write!(writer, "[{:7.3}s] ", started.elapsed().as_secs_f64())?;
        }
        write!(writer, "{label}: ")?;
        let mut fields = String::new();
        context.format_fields(Writer::new(&mut fields), event)?;
        writeln!(writer, "{}", one_line(&fields))
    }
}
