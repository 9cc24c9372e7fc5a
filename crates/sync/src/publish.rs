//! Step 7: making committed files queryable.

use tidelake_connector::{Load, TargetTable};
use tidelake_model::{
    Error, ErrorKind, Manifest, Owner, PublishSettings, Result, Strategy, SyncConfig, TableName,
};

use crate::run::OnMismatch;
use crate::table_run::TableWork;
use crate::tables::filter_of;

impl TableWork<'_> {
    /// Loads the manifest's files. The target must hold exactly as many rows as
    /// were exported; otherwise the watermark stays.
    pub(crate) async fn publish(&self, manifest: &Manifest, replaces: bool) -> Result<()> {
        let (Some(publisher), Some(settings)) = (&self.run.publisher, &self.run.sync.publish)
        else {
            return Ok(());
        };
        let strategy = self
            .selected
            .cursor
            .as_ref()
            .map_or(Strategy::Append, |cursor| cursor.settings.strategy);
        let schema = std::sync::Arc::new(manifest.schema.clone());
        let rows = || self.lake.rows(manifest.files.clone(), std::sync::Arc::clone(&schema));
        let load = Load {
            manifest,
            target: &target_table(&self.run.sync, settings, &manifest.table, &manifest.started_at),
            strategy,
            method: settings.method,
            replaces: replaces || starts_anew(manifest),
            primary_key: settings.primary_keys,
            owner: &self.owner_text(),
            takes_over: self.run.request.on_mismatch != OnMismatch::Refuse,
            rows: &rows,
        };
        // The ledger knows a run that was loaded already.
        let table = Some(&self.report.table);
        let loaded = self.run.retry.keep(table, || publisher.load(&load)).await?;
        let exported: u64 = manifest.files.iter().map(|file| file.rows).sum();
        if loaded != exported {
            return Err(Error::new(
                ErrorKind::Data,
                format!("{exported} rows were exported, but the target has {loaded} of them"),
            )
            .with_hint("look at the target's ledger table _tidelake_loads"));
        }
        Ok(())
    }
}

impl TableWork<'_> {
    /// Whose rows these are, for a target's ledger.
    fn owner_text(&self) -> String {
        let Owner { state_store, env, scope, table, .. } = self.owner();
        let env = if env.is_empty() { env } else { format!(", environment {env}") };
        format!("table {table} of sync {scope}{env}, state store {state_store}")
    }
}

/// Whether the manifest holds all rows of the table: it is exported whole, or was
/// read from the beginning. What the target may hold of an earlier life of the
/// sync would otherwise be doubled.
fn starts_anew(manifest: &Manifest) -> bool {
    manifest.window.as_ref().is_none_or(|window| {
        let before = &window.window.progress;
        window.cursor.is_none() || (before.watermark.is_none() && before.max_seen.is_none())
    })
}

/// Refuses patterns that give two tables one place: each would replace the other.
pub(crate) fn check_places<'a>(
    sync: &SyncConfig,
    tables: impl Iterator<Item = &'a TableName>,
) -> Result<()> {
    let Some(settings) = &sync.publish else { return Ok(()) };
    let mut places = std::collections::BTreeMap::new();
    let filter = filter_of(sync);
    let same_database = settings.credential_id == sync.source.credential_id
        && settings.database == sync.source.database;
    for table in tables {
        let TargetTable { schema, table: name } = target_table(sync, settings, table, "");
        if same_database && schema == table.schema && name == table.table {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!("{table} would be published into itself"),
            )
            .with_hint(
                "choose a --publish-schema-pattern such as lake_{schema}, or another target",
            ));
        }
        let place = TableName::new(&schema, &name);
        if same_database && filter.matches(&place) {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "{table} would be published as {place}, which the next run would read as a \
                     table of the source"
                ),
            )
            .with_hint(
                "name the source's schemas with --source-schema-name, so that the target's is \
                 none of them",
            ));
        }
        if let Some(other) = places.insert((schema, name), table) {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!("{other} and {table} would both be published to {place}"),
            )
            .with_hint(
                "let --publish-schema-pattern or --publish-table-pattern tell them apart, for \
                 example with {schema}_{table}",
            ));
        }
    }
    Ok(())
}

/// The name of a table in the target.
pub(crate) fn target_table(
    sync: &SyncConfig,
    settings: &PublishSettings,
    table: &TableName,
    at: &str,
) -> TargetTable {
    let digits: String = at.chars().filter(char::is_ascii_digit).take(14).collect();
    let date = digits.get(..8).unwrap_or(&digits);
    let sub_path = sync.target.sub_path.as_deref().unwrap_or("").replace('/', "_");
    let tokens = [
        ("{schema}", table.schema.as_str()),
        ("{table}", table.table.as_str()),
        ("{subpath}", sub_path.as_str()),
        ("{date}", date),
        ("{timestamp}", digits.as_str()),
    ];
    let fill = |pattern: &str| {
        let mut text = String::new();
        let mut rest = pattern;
        // One pass, so that a name that looks like a token stays a name.
        while let Some(character) = rest.chars().next() {
            let token =
                tokens.iter().find_map(|(token, value)| Some((rest.strip_prefix(token)?, value)));
            match token {
                Some((after, value)) => {
                    text.push_str(value);
                    rest = after;
                }
                None => {
                    text.push(character);
                    rest = rest.get(character.len_utf8()..).unwrap_or("");
                }
            }
        }
        text
    };
    TargetTable { schema: fill(&settings.schema_pattern), table: fill(&settings.table_pattern) }
}
