//! What a run says while it works: bars on a terminal, lines elsewhere.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tidelake_model::{Notice, TableName, TableRunStatus};
use tidelake_sync::{Event, Events};

use crate::output::{counted, one_line};
use crate::terminal::Terminal;

/// Takes the events of a run.
pub(crate) struct Progress {
    terminal: Terminal,
    bars: Option<MultiProgress>,
    tables: Mutex<HashMap<TableName, ProgressBar>>,
    told: Mutex<HashSet<(TableName, String)>>,
}

impl Progress {
    /// Shows progress where the terminal can.
    pub(crate) fn new(terminal: &Terminal) -> Self {
        Self {
            terminal: terminal.clone(),
            bars: terminal.bars().cloned(),
            tables: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Tells what a user should know of a table, once.
    pub(crate) fn tell(&self, table: &TableName, notice: &Notice) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert((table.clone(), notice.message.clone())) {
            let note = one_line(&format!("{table}: {}", notice.message));
            self.terminal.talk(&format!("note: {note}\n"));
        }
    }

    fn with_bar(&self, table: &TableName, work: impl FnOnce(&ProgressBar)) {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = tables.get(table) {
            work(bar);
        }
    }

    fn start(&self, bars: &MultiProgress, table: &TableName, estimate: Option<u64>) {
        // Without an estimate there is no end to draw a bar to.
        let (bar, template) = match estimate {
            Some(rows) if rows > 0 => (
                ProgressBar::new(rows),
                "{spinner} {prefix:24!} {wide_bar} {human_pos:>11} of ~{human_len} rows",
            ),
            _ => (ProgressBar::new_spinner(), "{spinner} {prefix:24!} {human_pos:>11} rows"),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> ").tick_chars("|/-\\ "));
        }
        let bar = bars.add(bar.with_prefix(one_line(&table.to_string())));
        bar.enable_steady_tick(Duration::from_millis(120));
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.insert(table.clone(), bar);
    }

    fn finish(&self, table: &TableName) {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(bar), Some(bars)) = (tables.remove(table), &self.bars) {
            bar.finish_and_clear();
            bars.remove(&bar);
        }
    }
}

impl Events for Progress {
    fn event(&self, event: &Event) {
        match event {
            Event::RunStarted { run_id, tables } => {
                let tables = counted(u64::try_from(tables.len()).unwrap_or(u64::MAX), "table");
                tracing::debug!("run {run_id} of {tables} started");
            }
            Event::TableStarted { table, estimated_rows } => match &self.bars {
                Some(bars) => self.start(bars, table, *estimated_rows),
                None => tracing::debug!("{table}: started"),
            },
            Event::WindowFixed { table, window } => tracing::debug!("{table}: window {window}"),
            Event::RowsRead { table, rows, .. } => self.with_bar(table, |bar| bar.inc(*rows)),
            Event::RowsTakenBack { table, rows } => self.with_bar(table, |bar| bar.dec(*rows)),
            Event::Noticed { table, notice } => self.tell(table, notice),
            Event::TableFinished { table, status, rows } => {
                self.finish(table);
                if self.bars.is_none() {
                    tracing::info!("{table}: {}", outcome(*status, *rows));
                }
            }
        }
    }
}

/// What became of a table, in words.
fn outcome(status: TableRunStatus, rows: u64) -> String {
    match status {
        TableRunStatus::Completed | TableRunStatus::Committed if rows == 0 => "nothing new".into(),
        TableRunStatus::Completed => counted(rows, "row"),
        TableRunStatus::Committed => format!("{}, to be published", counted(rows, "row")),
        TableRunStatus::Reading | TableRunStatus::Committing => "unfinished".into(),
        TableRunStatus::Failed => "failed".into(),
        TableRunStatus::Cancelled => "cancelled".into(),
    }
}
