//! Common Data Model files beside the lake's data.

use std::collections::BTreeMap;

use tidelake_lake::cdm::{CdmSchema, CdmTable, global_documents, schema_documents};
use tidelake_model::{Result, TableName};

use crate::context::RunContext;
use crate::run::TableReport;

/// Writes the metadata of every schema of the sync, from what the lake holds
/// now, where this run changed anything. Tables that never were exported are
/// left out.
pub(crate) async fn write(context: &RunContext, reports: &[TableReport]) -> Result<()> {
    let Some(settings) = &context.sync.metadata else { return Ok(()) };
    if !reports.iter().any(|report| report.committed) {
        return Ok(());
    }
    let sub_path = context.sync.target.sub_path.as_deref();
    let mut tables: BTreeMap<&str, Vec<CdmTable>> = BTreeMap::new();
    for name in reports.iter().map(|report| &report.table) {
        let TableName { schema, .. } = name;
        if let Some(table) = context.lake.table(sub_path, name).cdm_table().await? {
            tables.entry(schema).or_default().push(table);
        }
    }
    let schemas: Vec<_> = tables
        .into_iter()
        .map(|(schema, tables)| CdmSchema {
            sub_path: sub_path.map(str::to_owned),
            schema: schema.to_owned(),
            manifest_name: settings.manifest_name.clone(),
            tables,
        })
        .collect();
    let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    for schema in &schemas {
        context.lake.write_metadata(schema_documents(schema, &now)).await?;
    }
    let name = settings.manifest_name.as_ref().unwrap_or(&context.sync.sync_id);
    let documents = global_documents(sub_path, name, &schemas, &now);
    context.lake.write_metadata(documents).await
}
