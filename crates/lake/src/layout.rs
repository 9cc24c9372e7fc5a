//! Where things lie: names in paths, and the keys inside a table's folder.

use sha2::{Digest, Sha256};
use tidelake_model::{RunId, TableName};

/// The folder of a table that holds its documents.
pub(crate) const DOCUMENTS: &str = "_tidelake";

/// Longest name in a path, in bytes. File systems stop at 255, and a name may
/// still get a prefix and a suffix.
const LONGEST_NAME: usize = 200;

/// A schema's or a table's name as one segment of a path.
///
/// Distinct names give distinct segments, and no segment leads out of its folder.
/// Percent-encoded are the characters that separate, hide or end names on some
/// file system or object store, those that readers expand as patterns, and `=`,
/// from which readers infer partitions. A name that is too long is cut and ends
/// in a hash.
pub fn encode_name(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    let last = name.char_indices().next_back().map(|(at, _)| at);
    // Files of the Common Data Model stand beside the tables' folders.
    let document = name.to_ascii_lowercase().ends_with(".cdm.json").then(|| name.len() - 9);
    for (at, character) in name.char_indices() {
        let at_edge = at == 0 || Some(at) == last;
        let reserved = is_reserved(character)
            || (at_edge && matches!(character, '.' | ' '))
            || (at == 0 && name.eq_ignore_ascii_case(DOCUMENTS))
            || document == Some(at);
        if reserved {
            let mut buffer = [0; 4];
            for byte in character.encode_utf8(&mut buffer).bytes() {
                encoded.push_str(&format!("%{byte:02X}"));
            }
        } else {
            encoded.push(character);
        }
    }
    if encoded.is_empty() {
        // A percent sign is otherwise followed by two hexadecimal digits.
        return "%~".to_owned();
    }
    if encoded.len() > LONGEST_NAME {
        return shorten(&encoded);
    }
    encoded
}

fn is_reserved(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '/' | '\\'
                | '%'
                | ':'
                | '*'
                | '?'
                | '"'
                | '<'
                | '>'
                | '|'
                | '['
                | ']'
                | '{'
                | '}'
                | '#'
                | '='
        )
}

fn shorten(encoded: &str) -> String {
    let hash: String = hex(&Sha256::digest(encoded.as_bytes())).chars().take(40).collect();
    let mut end = LONGEST_NAME - hash.len() - 2;
    while !encoded.is_char_boundary(end) {
        end -= 1;
    }
    let start = encoded.get(..end).unwrap_or_default();
    format!("{start}%~{hash}")
}

/// A table's folder relative to the lake's base. The segments of `sub_path` are
/// the user's own choice and stay as they are where they lead nowhere else.
pub(crate) fn table_folder(sub_path: Option<&str>, table: &TableName) -> String {
    let schema = schema_folder(sub_path, &table.schema);
    format!("{schema}/{}", encode_name(&table.table))
}

pub(crate) fn schema_folder(sub_path: Option<&str>, schema: &str) -> String {
    let mut folder = base_folder(sub_path);
    if !folder.is_empty() {
        folder.push('/');
    }
    folder.push_str(&encode_name(schema));
    folder
}

pub(crate) fn base_folder(sub_path: Option<&str>) -> String {
    let segments = sub_path.unwrap_or_default().split('/').filter(|segment| !segment.is_empty());
    let segments: Vec<_> = segments
        .map(|segment| {
            let plain =
                segment.chars().all(|character| character == '=' || !is_reserved(character))
                    && !matches!(segment, "." | "..")
                    && !segment.eq_ignore_ascii_case(DOCUMENTS)
                    && segment.len() <= LONGEST_NAME;
            if plain { segment.to_owned() } else { encode_name(segment) }
        })
        .collect();
    segments.join("/")
}

/// The key of a data file, relative to its table's folder.
pub(crate) fn data_key(run: RunId, attempt: u64, slice: u32, number: u32) -> String {
    format!("{run}-{attempt}-{slice}-{number}.parquet")
}

/// Run and attempt of a data file's key; `None` for a key that is not ours.
pub(crate) fn parse_data_key(key: &str) -> Option<(RunId, u64)> {
    let mut parts = key.strip_suffix(".parquet")?.split('-');
    let run = parts.next()?.parse().ok()?;
    let attempt = parts.next()?.parse().ok()?;
    parts.next()?.parse::<u32>().ok()?;
    parts.next()?.parse::<u32>().ok()?;
    parts.next().is_none().then_some((run, attempt))
}

pub(crate) fn manifest_key(run: RunId) -> String {
    format!("{DOCUMENTS}/runs/{run}.json")
}

pub(crate) fn checkpoint_key(run: RunId) -> String {
    format!("{DOCUMENTS}/checkpoints/{run}.json")
}

/// The run of a manifest's or a checkpoint's key; `None` for another document.
pub(crate) fn parse_document_key(key: &str) -> Option<RunId> {
    let name = key.strip_prefix(DOCUMENTS)?.strip_prefix('/')?;
    let name = name.strip_prefix("runs/").or_else(|| name.strip_prefix("checkpoints/"))?;
    name.strip_suffix(".json")?.parse().ok()
}

pub(crate) fn latest_key() -> String {
    format!("{DOCUMENTS}/latest.json")
}

pub(crate) fn owner_key() -> String {
    format!("{DOCUMENTS}/owner.json")
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_names_stay_readable() {
        for name in ["orders", "Orders 2024", "größe", "a.b", "_private", "a-b", "客户", "it's"]
        {
            assert_eq!(encode_name(name), name);
        }
    }

    #[test]
    fn names_that_mean_something_to_a_path_are_encoded() {
        for (name, encoded) in [
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("a/b", "a%2Fb"),
            ("a\\b", "a%5Cb"),
            ("100%", "100%25"),
            ("_tidelake", "%5Ftidelake"),
            ("_TIDELAKE", "%5FTIDELAKE"),
            ("a\nb", "a%0Ab"),
            (".hidden", "%2Ehidden"),
            ("end ", "end%20"),
            ("day=1", "day%3D1"),
            ("", "%~"),
            ("manifest.cdm.json", "manifest%2Ecdm.json"),
        ] {
            assert_eq!(encode_name(name), encoded, "{name:?}");
        }
    }

    #[test]
    fn long_names_differ_though_they_begin_alike() {
        let long = "é".repeat(300);
        let other = format!("{long}x");
        assert!(encode_name(&long).len() <= LONGEST_NAME);
        assert_ne!(encode_name(&long), encode_name(&other));
    }

    #[test]
    fn a_sub_path_cannot_lead_out() {
        let table = TableName::new("public", "orders");
        assert_eq!(table_folder(None, &table), "public/orders");
        assert_eq!(table_folder(Some("/raw/day=1/"), &table), "raw/day=1/public/orders");
        assert_eq!(table_folder(Some("../.."), &table), "%2E%2E/%2E%2E/public/orders");
    }

    #[test]
    fn only_our_own_keys_are_data_keys() {
        let run = RunId::from_number(7);
        let key = data_key(run, 3, 0, 12);
        assert_eq!(parse_data_key(&key), Some((run, 3)));
        for strange in ["../x.parquet", "x.parquet", "_tidelake/latest.json", "a/b.parquet"] {
            assert_eq!(parse_data_key(strange), None, "{strange}");
        }
        assert_eq!(parse_data_key(&format!("../{key}")), None);
    }

    #[test]
    fn only_manifests_and_checkpoints_are_documents_of_a_run() {
        let run = RunId::from_number(7);
        for key in [manifest_key(run), checkpoint_key(run)] {
            assert_eq!(parse_document_key(&key), Some(run), "{key}");
        }
        for strange in
            [latest_key(), owner_key(), data_key(run, 1, 0, 0), format!("runs/{run}.json")]
        {
            assert_eq!(parse_document_key(&strange), None, "{strange}");
        }
        assert_eq!(parse_document_key(&format!("_tidelake/runs/../{run}.json")), None);
    }

    fn name() -> impl Strategy<Value = String> {
        let awkward = prop::sample::select(vec![
            "/",
            "\\",
            "%",
            ".",
            "..",
            " ",
            "_",
            "~",
            "=",
            "2F",
            "%2F",
            "tidelake",
            "a",
            "A",
            "é",
            "\0",
            ".cdm.json",
            "\u{7f}",
        ]);
        prop_oneof![
            any::<String>(),
            prop::collection::vec(awkward, 0..6).prop_map(|parts| parts.concat()),
            prop::collection::vec(prop::sample::select(vec!["x", "é", "/"]), 90..260)
                .prop_map(|parts| parts.concat()),
        ]
    }

    proptest! {
        #[test]
        fn distinct_tables_never_share_a_folder(
            left in (name(), name()), right in (name(), name()),
        ) {
            let folder = |(schema, table): &(String, String)| {
                table_folder(Some("lake"), &TableName::new(schema.clone(), table.clone()))
            };
            prop_assert_eq!(left == right, folder(&left) == folder(&right));
        }

        #[test]
        fn no_folder_leaves_the_base(schema in name(), table in name(), sub_path in name()) {
            let folder = table_folder(Some(&sub_path), &TableName::new(schema, table));
            for segment in folder.split('/') {
                prop_assert!(!segment.is_empty() && segment != "." && segment != "..");
                prop_assert!(segment.len() <= LONGEST_NAME);
                prop_assert!(!segment.eq_ignore_ascii_case(DOCUMENTS));
                prop_assert!(!segment.contains(['\\', '\0', ':']));
            }
            let depth = folder.split('/').count();
            prop_assert!(depth >= 2);
        }
    }
}
