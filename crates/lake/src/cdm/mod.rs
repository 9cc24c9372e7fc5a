//! Common Data Model metadata: documents from which tools that know Microsoft's
//! Common Data Model find tables, their columns and their files.
//!
//! Per schema there is a manifest in the schema's folder, per table a document
//! with its attributes in the table's folder, and one manifest above them all.
//! Each manifest stands there twice: as `manifest.cdm.json`, and under the name
//! that Microsoft's object model asks for when none is given,
//! `default.manifest.cdm.json`. Everything here is a pure function of manifests;
//! paths are relative to the document that names them.

mod attributes;

use serde_json::{Value, json};
use tidelake_model::{DataFile, Manifest, Result};

use crate::documents;
use crate::lake::{Lake, TableLake};
use crate::layout::{base_folder, encode_name, schema_folder};

/// Version of the documents' form, as Microsoft counts it.
const SEMANTIC_VERSION: &str = "1.0.0";

/// The names under which a manifest stands in its folder.
const MANIFEST_NAMES: [&str; 2] = ["default.manifest.cdm.json", "manifest.cdm.json"];

/// A table as the documents describe it.
#[derive(Debug, Clone, PartialEq)]
pub struct CdmTable {
    /// The newest manifest, for the schema.
    pub manifest: Manifest,
    /// The files that count.
    pub files: Vec<DataFile>,
}

/// A schema as the documents describe it.
#[derive(Debug, Clone, PartialEq)]
pub struct CdmSchema {
    /// Path between the base and the schema.
    pub sub_path: Option<String>,
    /// Name of the schema.
    pub schema: String,
    /// Name of the manifest; the schema's name when absent.
    pub manifest_name: Option<String>,
    /// Its tables.
    pub tables: Vec<CdmTable>,
}

impl CdmSchema {
    fn manifest_name(&self) -> &str {
        self.manifest_name.as_deref().unwrap_or(&self.schema)
    }

    fn last_modified(&self) -> Option<&str> {
        self.tables.iter().map(|table| table.manifest.finished_at.as_str()).max()
    }
}

/// The documents of one schema with their keys in the lake. `now` is a time in
/// RFC 3339 form.
pub fn schema_documents(schema: &CdmSchema, now: &str) -> Vec<(String, Value)> {
    let folder = schema_folder(schema.sub_path.as_deref(), &schema.schema);
    let mut documents: Vec<_> = schema
        .tables
        .iter()
        .map(|table| {
            let name = encode_name(&table.manifest.table.table);
            (format!("{folder}/{name}/{name}.cdm.json"), table_document(table))
        })
        .collect();
    let mut manifest = manifest(schema.manifest_name(), schema.last_modified(), now);
    let entities = schema.tables.iter().map(|table| entity(table, now));
    set(&mut manifest, "entities", entities.collect());
    documents.extend(named(&folder, &manifest));
    documents
}

/// The manifest above all schemas, with its keys in the lake.
pub fn global_documents(
    sub_path: Option<&str>,
    name: &str,
    schemas: &[CdmSchema],
    now: &str,
) -> Vec<(String, Value)> {
    let last_modified = schemas.iter().filter_map(CdmSchema::last_modified).max();
    let mut manifest = manifest(name, last_modified, now);
    set(&mut manifest, "entities", json!([]));
    let sub_manifests = schemas.iter().map(|schema| {
        let folder = encode_name(&schema.schema);
        let [document, _] = MANIFEST_NAMES;
        let mut declaration = json!({
            "manifestName": schema.manifest_name(),
            "definition": format!("{folder}/{document}"),
            "lastFileStatusCheckTime": now,
        });
        if let Some(time) = schema.last_modified() {
            set(&mut declaration, "lastFileModifiedTime", json!(time));
        }
        declaration
    });
    set(&mut manifest, "subManifests", sub_manifests.collect());
    named(&base_folder(sub_path), &manifest).collect()
}

fn named<'a>(folder: &'a str, manifest: &'a Value) -> impl Iterator<Item = (String, Value)> + 'a {
    MANIFEST_NAMES.iter().map(move |name| {
        let key = if folder.is_empty() { (*name).to_owned() } else { format!("{folder}/{name}") };
        (key, manifest.clone())
    })
}

/// Sets a property of an object.
fn set(document: &mut Value, key: &str, value: Value) {
    if let Some(object) = document.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

fn imports() -> Value {
    json!([{ "corpusPath": "cdm:/foundations.cdm.json" }])
}

fn manifest(name: &str, last_modified: Option<&str>, now: &str) -> Value {
    let mut manifest = json!({
        "manifestName": name,
        "jsonSchemaSemanticVersion": SEMANTIC_VERSION,
        "imports": imports(),
        "lastFileStatusCheckTime": now,
        "lastFileModifiedTime": now,
    });
    if let Some(time) = last_modified {
        set(&mut manifest, "lastChildFileModifiedTime", json!(time));
    }
    manifest
}

/// The declaration of a table in its schema's manifest. An entity's name is part
/// of a path, so it is the name that its folder has.
fn entity(table: &CdmTable, now: &str) -> Value {
    let name = encode_name(&table.manifest.table.table);
    let partitions = table.files.iter().map(|file| {
        json!({
            "name": file.key.strip_suffix(".parquet").unwrap_or(&file.key),
            "location": format!("{name}/{}", file.key),
            "lastFileStatusCheckTime": now,
            "exhibitsTraits": [{ "traitReference": "is.partition.format.parquet" }],
        })
    });
    json!({
        "type": "LocalEntity",
        "entityName": name,
        "entityPath": format!("{name}/{name}.cdm.json/{name}"),
        "dataPartitions": partitions.collect::<Vec<_>>(),
        "lastFileStatusCheckTime": now,
        "lastFileModifiedTime": table.manifest.finished_at,
    })
}

fn table_document(table: &CdmTable) -> Value {
    let manifest = &table.manifest;
    let fields = manifest.schema.fields().iter();
    let attributes = fields.map(|field| attributes::attribute(field, manifest));
    json!({
        "jsonSchemaSemanticVersion": SEMANTIC_VERSION,
        "imports": imports(),
        "definitions": [{
            "entityName": encode_name(&manifest.table.table),
            "sourceName": manifest.table.to_string(),
            "hasAttributes": attributes.collect::<Vec<_>>(),
        }],
    })
}

impl TableLake {
    /// The table as the documents describe it; `None` where no run was committed.
    pub async fn cdm_table(&self) -> Result<Option<CdmTable>> {
        let Some(latest) = self.latest().await? else {
            return Ok(None);
        };
        let Some(head) = latest.manifests.iter().find(|live| live.run_id == latest.head) else {
            return Ok(None);
        };
        let manifest = self.manifest(head).await?;
        let files = self.live_files(&latest).await?;
        Ok(Some(CdmTable { manifest, files }))
    }
}

impl Lake {
    /// Writes Common Data Model documents over those that are there: a document of
    /// a table before the manifest that names it.
    pub async fn write_metadata(&self, documents: Vec<(String, Value)>) -> Result<()> {
        for (key, document) in documents {
            self.storage().put(&key, documents::print(&document)?).await?;
        }
        Ok(())
    }
}
