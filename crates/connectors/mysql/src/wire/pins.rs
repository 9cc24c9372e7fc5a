//! Settings of a session that could change what values mean, which rows are seen or
//! when a statement is cut off.

use crate::config::MysqlConfig;

/// A week; a reader that is held up by the lake's storage is slow, not gone.
const PATIENCE: &str = "604800";

/// Settings that both families know.
const PINNED: [(&str, &str); 12] = [
    ("time_zone", "'+00:00'"),
    // Backslashes in literals stand for themselves; double quotes enclose text.
    ("sql_mode", "'NO_BACKSLASH_ESCAPES'"),
    // Text is sent in the bytes that are stored; what has to become another
    // character set is converted where it can be seen to work.
    ("character_set_results", "NULL"),
    ("autocommit", "1"),
    ("sql_select_limit", "18446744073709551615"),
    ("sql_big_selects", "1"),
    // Otherwise `IS NULL` may find the row that was inserted last.
    ("sql_auto_is_null", "0"),
    // What the server warns of while it reads is looked at; notes are not.
    ("sql_notes", "0"),
    ("net_write_timeout", PATIENCE),
    ("net_read_timeout", PATIENCE),
    ("wait_timeout", PATIENCE),
    ("lock_wait_timeout", "30"),
];

/// The statements that pin them.
pub(super) fn statements(config: &MysqlConfig, is_mariadb: bool) -> [String; 2] {
    let seconds = config.statement_timeout;
    let mut settings = PINNED.map(|(name, value)| format!("{name} = {value}")).to_vec();
    if is_mariadb {
        // So many from the start on the other, where it takes a privilege to set it.
        settings.push("max_error_count = 1024".into());
        settings.push(format!("max_statement_time = {seconds}"));
        settings.push("idle_transaction_timeout = 0".into());
        settings.push("idle_readonly_transaction_timeout = 0".into());
    } else {
        settings.push(format!("max_execution_time = {}", seconds.saturating_mul(1000)));
    }
    [
        format!("SET SESSION {}", settings.join(", SESSION ")),
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY".into(),
    ]
}
