//! Other spellings of the same command line, made one before it is parsed.

use std::ffi::OsString;

/// Option names with underscores become kebab-case, and `sync[export]` and
/// `sync[publish]` become `sync` with an option. Values stay as they are, and so
/// does everything after a bare `--`.
pub(crate) fn normalised(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut normal = Vec::new();
    let mut arguments = arguments.into_iter();
    normal.extend(arguments.next());
    let mut named = false;
    for argument in arguments.by_ref() {
        let Some(text) = argument.to_str() else {
            normal.push(argument);
            continue;
        };
        match text {
            "--" => {
                normal.push(argument);
                break;
            }
            "sync[export]" if !named => normal.extend(["sync", "--export-only"].map(Into::into)),
            "sync[publish]" if !named => normal.extend(["sync", "--publish-only"].map(Into::into)),
            _ => normal.push(option(text).map_or(argument, Into::into)),
        }
        named |= normal.last().is_some_and(|last| COMMANDS.iter().any(|name| *name == last));
    }
    normal.extend(arguments);
    normal
}

/// Commands after which `sync[export]` is no command any more.
const COMMANDS: [&str; 8] =
    ["demo", "config", "sync", "plan", "status", "watermarks", "lxdb", "completions"];

/// `--some_option=a_value` as `--some-option=a_value`.
fn option(text: &str) -> Option<String> {
    let name = text.strip_prefix("--")?;
    Some(match name.split_once('=') {
        Some((name, value)) => format!("--{}={value}", name.replace('_', "-")),
        None => format!("--{}", name.replace('_', "-")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(typed: &str, normal: &str) {
        let words = typed.split(' ').map(OsString::from);
        let expected: Vec<_> = normal.split(' ').map(OsString::from).collect();
        assert_eq!(normalised(words), expected);
    }

    #[test]
    fn only_names_of_options_lose_their_underscores() {
        check(
            "tidelake config create --source_db_auth_id my_shop --sub_path=a_b/c_d",
            "tidelake config create --source-db-auth-id my_shop --sub-path=a_b/c_d",
        );
        check("t sync -p -2 --sync_id a_b", "t sync -p -2 --sync-id a_b");
        check("t sync -- --a_b", "t sync -- --a_b");
        check("t_t --x_", "t_t --x-");
    }

    #[test]
    fn the_halves_of_a_sync_are_options() {
        check("t sync[export] --sync_id s", "t sync --export-only --sync-id s");
        check("t -a f sync[publish]", "t -a f sync --publish-only");
        check("t config show --sync-id sync[export]", "t config show --sync-id sync[export]");
    }
}
