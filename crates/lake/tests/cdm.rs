//! Common Data Model documents: their content, and their form as Microsoft's
//! published schema documents describe it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]

#[allow(unreachable_pub)]
mod common;

use std::collections::HashMap;
use std::path::Path;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use common::*;
use serde_json::{Value, json};
use tidelake_lake::cdm::{CdmSchema, CdmTable, global_documents, schema_documents};
use tidelake_lake::{Lake, Storage, memory};
use tidelake_model::{DataFile, TableName};

const NOW: &str = "2026-11-30T10:00:00Z";

fn table(name: &str) -> CdmTable {
    let extension =
        |name: &str| HashMap::from([("ARROW:extension:name".to_owned(), name.to_owned())]);
    let fields = vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8, true),
        Field::new("price", DataType::Decimal128(18, 4), true),
        Field::new("large", DataType::UInt64, true),
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("local", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("day", DataType::Date32, true),
        Field::new("uuid", DataType::FixedSizeBinary(16), true)
            .with_metadata(extension("arrow.uuid")),
        Field::new("doc", DataType::Utf8, true).with_metadata(extension("arrow.json")),
    ];
    let file = |number| DataFile {
        key: format!("{}-1-0-{number}.parquet", run(1)),
        rows: 1,
        bytes: 1,
        sha256: String::new(),
        cursor_min: None,
        cursor_max: None,
        cursor_nulls: 0,
    };
    let mut manifest = manifest(run(1), 0, Vec::new());
    manifest.table = TableName::new("public", name);
    manifest.schema = Schema::new(fields);
    CdmTable { manifest, files: vec![file(0), file(1)] }
}

fn schema(tables: Vec<CdmTable>) -> CdmSchema {
    CdmSchema {
        sub_path: Some("raw".to_owned()),
        schema: "public".to_owned(),
        manifest_name: None,
        tables,
    }
}

fn find<'a>(documents: &'a [(String, Value)], key: &str) -> &'a Value {
    let found = documents.iter().find(|(name, _)| name == key);
    let names: Vec<_> = documents.iter().map(|(name, _)| name).collect();
    &found.unwrap_or_else(|| panic!("{key} is not among {names:?}")).1
}

#[test]
fn a_table_has_its_columns_as_attributes() {
    let documents = schema_documents(&schema(vec![table("orders")]), NOW);
    let document = find(&documents, "raw/public/orders/orders.cdm.json");
    let entity = &document["definitions"][0];
    assert_eq!(entity["entityName"], "orders");
    assert_eq!(entity["sourceName"], "public.orders");
    let attributes = entity["hasAttributes"].as_array().unwrap();
    assert_eq!(
        attributes[0],
        json!({ "name": "id", "dataType": "bigInteger", "dataFormat": "Int64",
                "isNullable": false, "isPrimaryKey": true })
    );
    assert_eq!(
        attributes[1],
        json!({ "name": "name", "dataType": "string", "dataFormat": "String",
                "isNullable": true, "maximumLength": 20 })
    );
    assert_eq!(
        attributes[2]["appliedTraits"],
        json!([{ "traitReference": "is.dataFormat.numeric.shaped", "arguments": [
            { "name": "precision", "value": 18 }, { "name": "scale", "value": 4 } ] }])
    );
    let types: Vec<_> =
        attributes.iter().map(|attribute| attribute["dataType"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        [
            "bigInteger",
            "string",
            "decimal",
            "decimal",
            "dateTimeOffset",
            "dateTime",
            "date",
            "guid",
            "json"
        ]
    );
}

#[test]
fn a_schema_has_its_tables_as_entities_and_their_files_as_partitions() {
    let documents = schema_documents(&schema(vec![table("orders"), table("a/b")]), NOW);
    let manifest = find(&documents, "raw/public/manifest.cdm.json");
    assert_eq!(manifest, find(&documents, "raw/public/default.manifest.cdm.json"));
    assert_eq!(manifest["manifestName"], "public");
    assert_eq!(manifest["lastFileStatusCheckTime"], NOW);
    assert_eq!(manifest["lastChildFileModifiedTime"], "2026-11-30T09:15:07Z");
    let entity = &manifest["entities"][0];
    assert_eq!(entity["type"], "LocalEntity");
    assert_eq!(entity["entityPath"], "orders/orders.cdm.json/orders");
    let partitions = entity["dataPartitions"].as_array().unwrap();
    assert_eq!(partitions.len(), 2);
    assert_eq!(partitions[0]["location"], format!("orders/{}-1-0-0.parquet", run(1)));
    assert_eq!(manifest["entities"][1]["entityPath"], "a%2Fb/a%2Fb.cdm.json/a%2Fb");
    find(&documents, "raw/public/a%2Fb/a%2Fb.cdm.json");
}

#[test]
fn the_global_manifest_leads_to_those_of_the_schemas() {
    let named = CdmSchema { manifest_name: Some("Sales".to_owned()), ..schema(vec![table("t")]) };
    let documents = global_documents(Some("raw"), "lake", &[named], NOW);
    let manifest = find(&documents, "raw/default.manifest.cdm.json");
    assert_eq!(manifest["subManifests"][0]["manifestName"], "Sales");
    assert_eq!(manifest["subManifests"][0]["definition"], "public/default.manifest.cdm.json");
    let top = global_documents(None, "lake", &[], NOW);
    find(&top, "manifest.cdm.json");
}

#[test]
fn documents_have_the_published_form() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cdm.schema.json");
    let form: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let check = |name: &str, document: &Value| {
        let mut form = form.clone();
        form["$ref"] = json!(format!("#/definitions/{name}"));
        let validator = jsonschema::validator_for(&form).unwrap();
        let errors: Vec<_> =
            validator.iter_errors(document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}\n{document:#}");
        let mut broken = document.clone();
        broken["unheard"] = json!(1);
        assert!(!validator.is_valid(&broken), "the form lets unknown properties through");
    };
    let schema = schema(vec![table("orders"), table("empty")]);
    for (key, document) in schema_documents(&schema, NOW) {
        check(if key.ends_with("manifest.cdm.json") { "manifest" } else { "document" }, &document);
    }
    for (_, document) in global_documents(None, "lake", &[schema], NOW) {
        check("manifest", &document);
    }
}

#[tokio::test]
async fn documents_are_written_for_what_is_committed() {
    let storage = memory();
    let lake = Lake::new(storage.clone());
    let table = lake.table(None, &table_name());
    assert_eq!(table.cdm_table().await.unwrap(), None);
    let first = append(&table, None, 1, 0..5).await;
    append(&table, Some(&first), 2, 5..6).await;
    let described = table.cdm_table().await.unwrap().unwrap();
    assert_eq!(described.files.len(), 2);
    let schema = CdmSchema {
        sub_path: None,
        schema: "public".to_owned(),
        manifest_name: None,
        tables: vec![described],
    };
    for _ in 0..2 {
        lake.write_metadata(schema_documents(&schema, NOW)).await.unwrap();
    }
    for key in ["public/manifest.cdm.json", "public/orders/orders.cdm.json"] {
        let (bytes, _) = storage.get(key).await.unwrap().unwrap();
        serde_json::from_slice::<Value>(&bytes).unwrap();
    }
}
