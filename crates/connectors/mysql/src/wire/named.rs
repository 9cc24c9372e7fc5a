//! Small results whose columns are known by name only.

use tidelake_model::Result;

use super::answer::{End, OK, text_row};
use super::{DOING, QUERY, RowConnection, not_understood};
use crate::decode::{cell, length};

/// A row, each cell with the name of its column.
pub(crate) type NamedRow = Vec<(String, Option<String>)>;

impl RowConnection {
    /// Runs a statement and takes its whole, small result with the columns' names.
    pub(crate) async fn ask_named(&mut self, statement: &str) -> Result<Vec<NamedRow>> {
        let mut command = vec![QUERY];
        command.extend(statement.as_bytes());
        self.line.command(&command, DOING).await?;
        let count = match self.answer(DOING).await?.as_slice() {
            [OK, ..] => return Ok(vec![]),
            body => length(body).map_or(0, |(count, _)| count),
        };
        let mut names = vec![];
        for _ in 0..count {
            names.push(name(&self.answer(DOING).await?).ok_or_else(not_understood)?);
        }
        if !self.ends_with_ok {
            self.answer(DOING).await?;
        }
        let mut rows = vec![];
        loop {
            let body = self.answer(DOING).await?;
            if End::is_one(&body, self.ends_with_ok) {
                return Ok(rows);
            }
            let cells = text_row(&body).ok_or_else(not_understood)?;
            rows.push(names.iter().cloned().zip(cells).collect());
        }
    }
}

/// The name in the description of a column: after catalogue, schema and the table's
/// two names.
fn name(body: &[u8]) -> Option<String> {
    let mut rest = body;
    for _ in 0..4 {
        (_, rest) = cell(rest)?;
    }
    let (name, _) = cell(rest)?;
    Some(String::from_utf8_lossy(name).into_owned())
}
