//! Brings a store's tables to this program's version.
//!
//! The steps are embedded by refinery and recorded in refinery's own table, but
//! applied here: all of them in one transaction where the database has such, under
//! a lock that the store took before, so that two processes can open an empty store
//! at once. Where a statement that makes a table commits by itself, the steps are
//! written so that one that was interrupted can be run again.

use refinery::Migration;
use tidelake_model::{Error, ErrorKind, Result};

use super::reader::Reader;
use super::{Cell, Session, Statement};
use crate::time::time_text;

/// The table of the steps that were applied.
pub(crate) const HISTORY: &str = "refinery_schema_history";

/// Whether nothing is missing of a store's tables, as most often. An error says
/// nothing: it may be that they are not there.
pub(crate) async fn is_current<S: Session>(session: &mut S, steps: &[Migration]) -> Result<bool> {
    let found = applied(session).await?;
    let mut known: Vec<_> =
        steps.iter().map(|step| (version(step), step.checksum().to_string())).collect();
    known.sort();
    Ok(found == known)
}

/// Applies what is missing; everything else of the store is not looked at.
pub(crate) async fn migrate<S: Session>(
    session: &mut S,
    steps: &[Migration],
    location: &str,
) -> Result<()> {
    // Asked first, because making tables takes a right that using them does not.
    if !session.has_table(HISTORY).await? {
        session
            .batch(&format!(
                "CREATE TABLE {HISTORY} (version INTEGER PRIMARY KEY, name VARCHAR(255), \
                applied_on VARCHAR(255), checksum VARCHAR(255));"
            ))
            .await?;
    }
    let applied = applied(session).await?;
    let known = steps.iter().map(version).max().unwrap_or(0);
    if let Some((newest, _)) = applied.last().filter(|(newest, _)| *newest > known) {
        let message = format!(
            "the state store {location} is of version {newest}, this program knows up to {known}"
        );
        return Err(Error::new(ErrorKind::Configuration, message)
            .with_hint("use the newer tidelake that made it"));
    }
    let mut steps: Vec<_> = steps.iter().collect();
    steps.sort();
    for step in steps {
        let checksum = step.checksum().to_string();
        match applied.iter().find(|(applied, _)| *applied == version(step)) {
            Some((_, found)) if *found == checksum => {}
            Some(_) => return Err(differs(step, location)),
            None => apply(session, step, checksum).await?,
        }
    }
    Ok(())
}

fn version(step: &Migration) -> u64 {
    u64::try_from(step.version()).unwrap_or(0)
}

fn differs(step: &Migration, location: &str) -> Error {
    let message = format!("step {step} of the state store {location} is not this program's");
    Error::new(ErrorKind::Configuration, message)
        .with_hint("the tables were made by another program; choose another place for the store")
}

/// Versions and checksums in rising order.
async fn applied<S: Session>(session: &mut S) -> Result<Vec<(u64, String)>> {
    let statement =
        Statement::new(format!("SELECT version, checksum FROM {HISTORY} ORDER BY version"));
    let found = session.query(&statement).await?;
    let read = |cells| {
        let mut reader = Reader::new(cells);
        Ok((reader.count()?, reader.text()?))
    };
    found.into_iter().map(read).collect()
}

async fn apply<S: Session>(session: &mut S, step: &Migration, checksum: String) -> Result<()> {
    session.batch(step.sql().unwrap_or_default()).await?;
    let applied_on = time_text(session.now().await?);
    let number = i64::from(step.version());
    let statement = Statement::new(format!(
        "INSERT INTO {HISTORY} (version, name, applied_on, checksum) VALUES ({number}, "
    ))
    .bind(step.name())
    .sql(", ")
    .bind(Cell::from(applied_on))
    .sql(", ")
    .bind(checksum)
    .sql(")");
    session.execute(&statement).await.map(drop)
}
