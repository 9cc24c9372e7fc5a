//! Servers that say nothing for long: at work, or lost.
//!
//! A statement may rightly take hours before its first row. Silence alone
//! therefore ends nothing; after a while the server is asked on another connection
//! what the statement does.

use std::error::Error as _;
use std::sync::Arc;

use tidelake_model::{Error, ErrorKind, Result};

use super::RowConnection;
use crate::config::MysqlConfig;
use crate::failure::ServerError;

/// States in which the server waits for us to take rows. Where none arrive here
/// meanwhile, something between is broken.
const SENDING: [&str; 2] = ["Writing to net", "Sending to client"];

/// An error of kind `Unavailable` unless that connection works on a statement.
pub(super) async fn still_works(config: &Arc<MysqlConfig>, id: u32) -> Result<()> {
    let asked = async {
        let mut connection = RowConnection::connect(config).await?;
        connection.ask("SHOW FULL PROCESSLIST").await
    };
    match tokio::time::timeout(config.connect_limit(), asked).await {
        Ok(Ok(rows)) if rows.iter().any(|row| is_at_work(row, id)) => Ok(()),
        Ok(Ok(_)) => Err(stalled("the server does not work on the statement any more")),
        // It answers, if only to say that it has no place for one more.
        Ok(Err(error)) if error.source().is_some_and(|cause| cause.is::<ServerError>()) => Ok(()),
        Ok(Err(error)) => Err(stalled("it cannot be asked what it does").with_source(error)),
        Err(_) => Err(stalled("it does not answer on another connection either")),
    }
}

/// Whether a row of the list of connections is that one, busy: its number, user,
/// host, schema, command, seconds and state.
fn is_at_work(row: &[Option<String>], id: u32) -> bool {
    let text = |index: usize| row.get(index).and_then(Option::as_deref).unwrap_or("");
    let is_it = text(0).parse::<u64>().is_ok_and(|number| number & 0xFFFF_FFFF == u64::from(id));
    is_it && matches!(text(4), "Query" | "Execute" | "Prepare") && !SENDING.contains(&text(6))
}

fn stalled(why: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("nothing came from the server for long, and {why}"))
        .with_hint(
            "look for what stands between here and the server; stall_timeout in the credential \
             says how long silence is borne",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, command: &str, state: &str) -> Vec<Option<String>> {
        [id, "u", "h", "d", command, "3", state].map(|text| Some(text.to_owned())).to_vec()
    }

    #[test]
    fn only_a_busy_connection_is_at_work() {
        assert!(is_at_work(&row("7", "Execute", "Sending data"), 7));
        assert!(is_at_work(&row("4294967303", "Query", ""), 7));
        assert!(!is_at_work(&row("8", "Execute", "Sending data"), 7));
        assert!(!is_at_work(&row("7", "Sleep", ""), 7));
        assert!(!is_at_work(&row("7", "Killed", ""), 7));
        assert!(!is_at_work(&row("7", "Execute", "Writing to net"), 7));
        assert!(!is_at_work(&row("7", "Execute", "Sending to client"), 7));
        assert!(!is_at_work(&[], 7));
    }
}
