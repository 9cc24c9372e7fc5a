//! Common Data Model files beside the lake's data.

use std::collections::BTreeMap;

use tidelake_lake::cdm::{CdmSchema, CdmTable, global_documents, schema_documents};
use tidelake_model::{Notice, NoticeCode, Result, TableName};

use crate::context::RunContext;
use crate::run::TableReport;

/// Writes the metadata where a run changed anything in the lake. A failure is told
/// and fails nothing.
pub(crate) async fn renew(
    context: &RunContext,
    reports: &[TableReport],
    names: &[TableName],
) -> Vec<Notice> {
    if !reports.iter().any(|report| report.committed) {
        return vec![];
    }
    let Err(error) = write(context, names).await else { return vec![] };
    let message = format!("the Common Data Model files were not written: {}", error.chain());
    vec![Notice::new(NoticeCode::Setting, message)]
}

/// Writes the metadata of every schema of the sync, from what the lake holds
/// now of these tables, which are all that the sync has. Tables that never were
/// exported are left out.
async fn write(context: &RunContext, names: &[TableName]) -> Result<()> {
    let Some(settings) = &context.sync.metadata else { return Ok(()) };
    let sub_path = context.sync.target.sub_path.as_deref();
    let mut tables: BTreeMap<&str, Vec<CdmTable>> = BTreeMap::new();
    for name in names {
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
