//! The walls between the crates, checked against the code as it is.
//!
//! A failure names the file and line that went through a wall. Either the code
//! moves to the other side, or the wall does: then this file and
//! `ARCHITECTURE.md` change together, and `docs/decisions/` tells why.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use cargo_metadata::{DependencyKind, MetadataCommand};

/// Which of our crates a crate may depend on, both named by their folders.
const ARROWS: [(&str, &[&str]); 10] = [
    ("value", &[]),
    ("watermark", &["value"]),
    ("model", &["watermark"]),
    ("connector", &["model", "watermark"]),
    ("connectors/*", &["connector", "model", "watermark"]),
    ("lake", &["model", "watermark"]),
    ("state", &["model", "watermark"]),
    ("sync", &["connector", "lake", "state", "model", "watermark"]),
    ("cli", &["sync", "connectors/*", "connector", "lake", "state", "model", "watermark"]),
    ("fuzz", &["sync", "connectors/*", "connector", "lake", "model", "watermark"]),
];

/// Libraries that only some crates may name in their manifest.
const RESERVED: [(&str, &[&str]); 12] = [
    ("parquet", &["lake"]),
    ("object_store", &["lake"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("tokio-postgres", &["connectors/*", "state"]),
    ("postgres", &["connectors/*", "state"]),
    ("rusqlite", &["connectors/*", "state"]),
    ("libsqlite3-sys", &["connectors/*", "state"]),
    ("mysql_async", &["connectors/*", "state"]),
    ("tiberius", &["connectors/*", "state"]),
    ("sqlx", &["connectors/*", "state"]),
];

/// The pure crates: values, and the algebra over them.
const PURE: [&str; 2] = ["value", "watermark"];

/// What a person can keep in mind of a pure crate at once.
const PURE_LINES: usize = 600;

#[test]
fn arrows_point_inwards() -> Result<()> {
    let arrows = BTreeMap::from(ARROWS);
    let members = members()?;
    let folders: BTreeMap<&str, &str> =
        members.iter().map(|member| (member.name.as_str(), member.kind())).collect();

    let mut breaches = Vec::new();
    for member in &members {
        let Some(allowed) = arrows.get(member.kind()) else {
            breaches.push(format!("{}:1: no arrow is drawn for this crate", member.manifest));
            continue;
        };
        for dependency in &member.dependencies {
            let Some(target) = folders.get(dependency.as_str()) else { continue };
            if !allowed.contains(target) {
                breaches.push(member.breach(dependency, "points against the arrows")?);
            }
        }
    }
    report(&breaches)
}

#[test]
fn libraries_stay_behind_their_walls() -> Result<()> {
    let reserved = BTreeMap::from(RESERVED);
    let mut breaches = Vec::new();
    for member in members()? {
        for dependency in &member.dependencies {
            let strangers = reserved
                .get(dependency.as_str())
                .is_some_and(|owners| !owners.contains(&member.kind()));
            if strangers {
                breaches.push(member.breach(dependency, "belongs to other crates")?);
            }
            let is_pure = PURE.contains(&member.kind()) && dependency != "tidelake-value";
            if is_pure {
                breaches.push(member.breach(dependency, "in a crate that depends on nothing")?);
            }
        }
    }
    report(&breaches)
}

#[test]
fn a_system_is_named_only_at_home() -> Result<()> {
    let root = root()?;
    let systems = systems(&root)?;
    let mut breaches = Vec::new();
    for file in product_files(&root)? {
        let text = fs::read_to_string(root.join(&file))?;
        for (number, line) in product_lines(&text) {
            for system in &systems {
                if mentions(line, system) && !is_home(&root, &file, system) {
                    breaches.push(format!("{}:{number}: names {system}", file.display()));
                }
            }
        }
    }
    report(&breaches)
}

#[test]
fn the_pure_crates_stay_small() -> Result<()> {
    let root = root()?;
    let mut breaches = Vec::new();
    for name in PURE {
        let folder = Path::new("crates").join(name);
        let mut lines = Vec::new();
        for file in product_files(&root)? {
            if file.starts_with(&folder) {
                let text = fs::read_to_string(root.join(&file))?;
                let code = product_lines(&text).into_iter().filter(|(_, line)| is_code(line));
                lines.extend(code.map(|(number, _)| format!("{}:{number}", file.display())));
            }
        }
        ensure!(!lines.is_empty(), "crates/{name} has no code: has it moved?");
        if let Some(place) = lines.get(PURE_LINES) {
            breaches.push(format!(
                "{place}: line {} of code, of {} in all; {PURE_LINES} are allowed",
                PURE_LINES + 1,
                lines.len()
            ));
        }
    }
    report(&breaches)
}

#[test]
fn a_name_is_found_at_the_start_of_a_word_in_any_spelling() {
    for line in [
        "sqlite",
        "// Like SQLite, but slower.",
        "fn open_sqlite3() {",
        "struct SqliteSource;",
        "struct OurSqlite;",
        "use tidelake_sqlite::connect;",
        "const SQLITE_LIMIT: u8 = 1;",
    ] {
        assert!(mentions(line, "sqlite"), "{line}");
    }
    for line in ["let sql = lite;", "mysqlite", "sq-lite"] {
        assert!(!mentions(line, "sqlite"), "{line}");
    }
}

#[test]
fn test_modules_and_comments_are_told_from_code() {
    let text = "\
//! Docs.

pub fn one() {} // Trailing.
/* Block
   comment. */
#[cfg(test)]
use super::thing;
#[cfg(test)]
#[allow(dead_code)]
mod tests {
    fn inner() {
    }
}
pub fn two() {}
";
    let product: Vec<usize> = product_lines(text).iter().map(|(number, _)| *number).collect();
    assert_eq!(product, [1, 2, 3, 4, 5, 14]);
    assert!(is_code("pub fn one() {} // Trailing."));
    for line in ["    // Comment.", "", "/// Docs.", "//! Docs."] {
        assert!(!is_code(line), "{line}");
    }
}

/// A crate of the workspace and what its manifest asks for outside tests.
struct Member {
    name: String,
    folder: String,
    manifest: String,
    dependencies: Vec<String>,
}

impl Member {
    /// The folder below `crates/`, all connectors being of one kind.
    fn kind(&self) -> &str {
        let below = self.folder.strip_prefix("crates/").unwrap_or(&self.folder);
        if below.starts_with("connectors/") { "connectors/*" } else { below }
    }

    fn breach(&self, dependency: &str, what: &str) -> Result<String> {
        let manifest = fs::read_to_string(root()?.join(&self.manifest))?;
        let line = manifest
            .lines()
            .scan("", |section, line| {
                if line.starts_with('[') {
                    *section = line;
                }
                Some((*section, line))
            })
            .position(|(section, line)| {
                let key = line.split(['.', ' ', '=']).next().unwrap_or_default();
                let named = key.trim_matches('"') == dependency
                    || line.contains(&format!("package = \"{dependency}\""));
                (named && !section.contains("dev-dependencies"))
                    || section.ends_with(&format!("dependencies.{dependency}]"))
            })
            .map_or(1, |index| index + 1);
        Ok(format!("{}:{line}: the dependency on {dependency} {what}", self.manifest))
    }
}

fn members() -> Result<Vec<Member>> {
    let root = root()?;
    let metadata =
        MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec()?;
    let mut members = Vec::new();
    for package in metadata.workspace_packages() {
        let manifest = package.manifest_path.as_std_path();
        let manifest = fs::canonicalize(manifest)?
            .strip_prefix(&root)
            .context("a member lies outside the workspace")?
            .to_path_buf();
        let folder = manifest.parent().unwrap_or(Path::new(""));
        members.push(Member {
            name: package.name.to_string(),
            folder: folder.display().to_string(),
            manifest: manifest.display().to_string(),
            dependencies: package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind != DependencyKind::Development)
                .map(|dependency| dependency.name.clone())
                .collect(),
        });
    }
    ensure!(members.len() > 1, "the workspace has no members");
    Ok(members)
}

fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::canonicalize(&here).with_context(|| format!("no workspace at {}", here.display()))
}

/// The names of all systems: the folders that connectors live in.
fn systems(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("crates/connectors"))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.push(entry.file_name().to_string_lossy().to_ascii_lowercase());
        }
    }
    ensure!(!names.is_empty(), "crates/connectors is empty");
    names.sort();
    Ok(names)
}

/// Whether a file is one of the few places that may name this system.
fn is_home(root: &Path, file: &Path, system: &str) -> bool {
    let store = Path::new("crates/state/src").join(system);
    let store_file = store.with_extension("rs");
    let has_store = root.join(&store).is_dir() || root.join(&store_file).is_file();
    file.starts_with(Path::new("crates/connectors").join(system))
        || file == Path::new("crates/cli/src/wiring.rs")
        || file.starts_with(store)
        || file == store_file
        || (has_store && file == Path::new("crates/state/src/lib.rs"))
}

/// Every Rust file below a crate's `src`, relative to the workspace. A file of
/// tests, which its parent includes under `cfg(test)`, is not product code.
fn product_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
                continue;
            }
            let relative = path.strip_prefix(root)?;
            let in_source = relative.iter().any(|part| part == "src");
            let is_rust = path.extension().is_some_and(|extension| extension == "rs");
            let is_tests = path.file_name().is_some_and(|name| name == "tests.rs");
            if in_source && is_rust && !is_tests {
                files.push(relative.to_path_buf());
            }
        }
    }
    ensure!(!files.is_empty(), "there is no Rust file below crates");
    files.sort();
    Ok(files)
}

/// The numbered lines of a file without items under `#[cfg(test)]`. That the
/// file is formatted, another check ensures: an item ends at its own indent.
fn product_lines(text: &str) -> Vec<(usize, &str)> {
    let mut product = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            product.push((index + 1, line));
            continue;
        }
        let indent = line.get(..line.len() - line.trim_start().len()).unwrap_or_default();
        let first = lines.by_ref().find(|(_, line)| !line.trim_start().starts_with("#["));
        if first.is_some_and(|(_, line)| line.trim_end().ends_with('{')) {
            lines.by_ref().find(|(_, line)| {
                line.strip_prefix(indent).is_some_and(|rest| matches!(rest, "}" | "};"))
            });
        }
    }
    product
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//")
}

/// Whether a word of the line starts with the name. Words begin after anything
/// that is no letter or digit, and at a capital letter.
fn mentions(line: &str, name: &str) -> bool {
    line.to_ascii_lowercase().match_indices(name).any(|(start, _)| {
        let before = line.get(..start).and_then(|before| before.chars().next_back());
        let capital = line.get(start..).is_some_and(|word| word.starts_with(char::is_uppercase));
        before.is_none_or(|before| !before.is_alphanumeric()) || capital
    })
}

fn report(breaches: &[String]) -> Result<()> {
    ensure!(breaches.is_empty(), "these went through a wall:\n{}", breaches.join("\n"));
    Ok(())
}
