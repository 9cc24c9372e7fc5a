//! When a run did what, for those who want to know where its time goes.
//!
//! Told at DEBUG at the end of a run; where nobody listens, nothing is kept.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidelake_connector::Source;
use tidelake_model::TableName;
use tidelake_state::StateStore;

use crate::counted::Objects;

/// One phase of a run, or of its work on one table.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    table: Option<TableName>,
    phase: &'static str,
    /// Since the program began.
    from: Duration,
    took: Duration,
}

/// The phases of one run.
pub(crate) struct Timeline {
    began: Instant,
    entries: Option<Mutex<Vec<Entry>>>,
}

/// What a run asked of others, counted where it was asked.
pub(crate) struct Totals<'a> {
    pub(crate) state: &'a dyn StateStore,
    pub(crate) source: &'a dyn Source,
    pub(crate) primary: Option<&'a dyn Source>,
    pub(crate) objects: &'a Objects,
}

impl Timeline {
    /// A time line that counts from when the program began.
    pub(crate) fn new(began: Instant) -> Arc<Self> {
        let is_wanted = tracing::enabled!(tracing::Level::DEBUG);
        Arc::new(Self { began, entries: is_wanted.then(Mutex::default) })
    }

    /// Does something, and notes when.
    pub(crate) async fn of<T>(
        &self,
        table: Option<&TableName>,
        phase: &'static str,
        work: impl Future<Output = T>,
    ) -> T {
        let from = Instant::now();
        let done = work.await;
        self.note(table, phase, from);
        done
    }

    /// Notes what began at that moment and has just ended.
    pub(crate) fn note(&self, table: Option<&TableName>, phase: &'static str, from: Instant) {
        let Some(entries) = &self.entries else { return };
        let took = from.elapsed();
        let from = from.saturating_duration_since(self.began);
        let entry = Entry { table: table.cloned(), phase, from, took };
        entries.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// Notes how the run started: all that was done before it.
    pub(crate) fn started(&self) {
        self.note(None, "start", self.began);
    }

    /// Tells what was noted, and what it took of others.
    pub(crate) fn tell(&self, totals: &Totals<'_>) {
        let Some(entries) = &self.entries else { return };
        let entries = std::mem::take(&mut *entries.lock().unwrap_or_else(PoisonError::into_inner));
        tracing::debug!("time line: from, for (milliseconds since the program began), what");
        for line in lines(entries) {
            tracing::debug!("time line: {line}");
        }
        tracing::debug!("time line: {}", totals.text());
    }
}

/// A phase of a table stands below the table's own line.
fn lines(mut entries: Vec<Entry>) -> Vec<String> {
    entries.sort_by_key(|entry| entry.from);
    let mut phases: BTreeMap<&TableName, Vec<&Entry>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.phase != WORK) {
        if let Some(table) = &entry.table {
            phases.entry(table).or_default().push(entry);
        }
    }
    let mut lines = vec![];
    let starts = |entry: &&Entry| entry.table.is_none() || entry.phase == WORK;
    for entry in entries.iter().filter(starts) {
        let what = match &entry.table {
            Some(table) => table.to_string(),
            None => entry.phase.to_owned(),
        };
        lines.push(line(entry, &what));
        let Some(table) = &entry.table else { continue };
        let phases = phases.remove(table).unwrap_or_default();
        lines.extend(phases.iter().map(|phase| line(phase, &format!("  {}", phase.phase))));
    }
    lines
}

/// The phase that is all of the work on a table.
pub(crate) const WORK: &str = "table";

fn line(entry: &Entry, what: &str) -> String {
    let millis = |duration: Duration| duration.as_secs_f64() * 1_000.0;
    format!("{:9.1} {:9.1}  {what}", millis(entry.from), millis(entry.took))
}

impl Totals<'_> {
    fn text(&self) -> String {
        let usage = self.state.usage();
        let trips = self.source.round_trips();
        let trips = trips.saturating_add(self.primary.map_or(0, |primary| primary.round_trips()));
        let mut text = format!("state: {} transactions, {} reads", usage.transactions, usage.reads);
        if usage.round_trips > 0 {
            let _ = write!(text, ", {} round trips", usage.round_trips);
        }
        let Objects { written, read } = self.objects;
        let _ = write!(
            text,
            "; source: {trips} round trips; lake: {} objects written, {} read",
            written.count(),
            read.count(),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_stand_below_their_table_in_order() {
        let orders = TableName::new("sales", "orders");
        let entry = |table: Option<&TableName>, phase, from| Entry {
            table: table.cloned(),
            phase,
            from: Duration::from_millis(from),
            took: Duration::from_micros(1_500),
        };
        let found = lines(vec![
            entry(Some(&orders), "advance", 7),
            entry(Some(&orders), "lake", 5),
            entry(None, "end", 9),
            entry(None, "start", 0),
            entry(Some(&orders), WORK, 5),
        ]);
        let wanted = [
            "      0.0       1.5  start",
            "      5.0       1.5  sales.orders",
            "      5.0       1.5    lake",
            "      7.0       1.5    advance",
            "      9.0       1.5  end",
        ];
        assert_eq!(found, wanted);
    }
}
