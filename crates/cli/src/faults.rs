//! Crashes on purpose, for tests; no release build holds this file.
//!
//! `TIDELAKE_FAULT=<step>[:schema.table][:n]` aborts the process right after the
//! step was done for the n-th time (the first by default), for that table or for
//! any. The steps are those of [`Step`]: `lease`, `load`, `clock`, `split`,
//! `window`, `begin`, `batch`, `staged`, `committing`, `completed`, `manifest`,
//! `latest`, `committed`, `published`, `advanced`, `cleaned`, `finished`. So
//! `TIDELAKE_FAULT=completed:main.orders:2` dies between the second and the third
//! file of a commit, as a power cut would.
//!
//! With `TIDELAKE_FAULT_HOLD=<file>` the run does not die there: it makes that
//! file and waits until somebody deletes it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tidelake_model::{Error, ErrorKind, Result, Step, TableName};
use tidelake_sync::Faults;

/// Aborts the process after one step, or holds it there.
#[derive(Debug)]
pub(crate) struct Abort {
    step: Step,
    table: Option<String>,
    left: AtomicU64,
    hold: Option<PathBuf>,
}

impl Abort {
    /// What the environment asks for.
    pub(crate) fn from_environment() -> Result<Option<Self>> {
        let Ok(text) = std::env::var("TIDELAKE_FAULT") else { return Ok(None) };
        let fault = Self::parse(&text).ok_or_else(|| {
            Error::new(ErrorKind::Configuration, format!("TIDELAKE_FAULT {text:?} is not a fault"))
                .with_hint("write <step>[:schema.table][:n], for example completed:main.orders:2")
        })?;
        let hold = std::env::var_os("TIDELAKE_FAULT_HOLD").map(PathBuf::from);
        Ok(Some(Self { hold, ..fault }))
    }

    fn parse(text: &str) -> Option<Self> {
        let (step, rest) = text.split_once(':').map_or((text, None), |(s, rest)| (s, Some(rest)));
        let (table, count) = match rest {
            None => (None, 1),
            Some(rest) => match rest.parse() {
                Ok(count) => (None, count),
                Err(_) => match rest.rsplit_once(':') {
                    Some((table, count)) => (Some(table), count.parse().ok()?),
                    None => (Some(rest), 1),
                },
            },
        };
        let table = table.map(str::to_owned);
        (count > 0).then_some(())?;
        let left = AtomicU64::new(count);
        Some(Self { step: Step::from_name(step)?, table, left, hold: None })
    }

    /// Whether it is time.
    fn is_due(&self, step: Step, table: Option<&TableName>) -> bool {
        let here = step == self.step
            && self
                .table
                .as_ref()
                .is_none_or(|name| table.is_some_and(|table| table.to_string() == *name));
        here && self.left.fetch_sub(1, Ordering::SeqCst) == 1
    }
}

#[async_trait]
impl Faults for Abort {
    async fn after(&self, step: Step, table: Option<&TableName>) -> Result<()> {
        if !self.is_due(step, table) {
            return Ok(());
        }
        let Some(hold) = &self.hold else { std::process::abort() };
        std::fs::write(hold, step.name()).map_err(|error| {
            let message = format!("{} cannot be made", hold.display());
            Error::new(ErrorKind::Configuration, message)
                .with_hint("name another file in TIDELAKE_FAULT_HOLD")
                .with_source(error)
        })?;
        while hold.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_time_of_one_table_is_due() {
        let fault = Abort::parse("completed:main.orders:2").unwrap();
        let orders = TableName::new("main", "orders");
        let others = TableName::new("main", "others");
        assert!(!fault.is_due(Step::Completed, Some(&orders)));
        assert!(!fault.is_due(Step::Completed, Some(&others)));
        assert!(!fault.is_due(Step::Latest, Some(&orders)));
        assert!(fault.is_due(Step::Completed, Some(&orders)));
        assert!(!fault.is_due(Step::Completed, Some(&orders)));
    }

    #[test]
    fn the_short_forms_mean_the_first_time_of_any_table() {
        assert!(Abort::parse("lease").unwrap().is_due(Step::Lease, None));
        let second = Abort::parse("batch:2").unwrap();
        assert!(!second.is_due(Step::Batch, None));
        assert!(second.is_due(Step::Batch, None));
        for wrong in ["", "lunch", "batch:0", "batch:a.b:x"] {
            assert!(Abort::parse(wrong).is_none(), "{wrong}");
        }
    }
}
