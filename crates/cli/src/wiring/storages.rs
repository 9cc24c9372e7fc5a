//! The storages of this build, and their credentials.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tidelake_lake::{
    AzureDirectory, AzureLogin, AzureSettings, GcsLogin, GcsSettings, S3Settings, Storage, azure,
    azure_connection_string, gcs, gcs_directory, local, s3, s3_directory,
};
use tidelake_model::{CredentialInfo, Error, Result, Secret, TargetLocation};
use tidelake_sync::{Credentials, Storages};

use crate::credentials::{CredentialsFile, KnownSystem, Profile};
use crate::settings::configuration;

const S3: &str = "s3";
const AZURE: &str = "azure";
const GCS: &str = "gcs";

/// What a credential of each may hold.
pub(super) fn known() -> Vec<KnownSystem> {
    let system = |name, auth_modes, schema| KnownSystem { name, auth_modes, schema: Some(schema) };
    vec![
        system(
            S3,
            &["profile", "keys"],
            schema(&[
                "directory",
                "profile",
                "access_key_id",
                "secret_access_key",
                "session_token",
                "region",
                "endpoint_url",
            ]),
        ),
        system(
            AZURE,
            &["service_principal", "account_key", "sas", "connection_string"],
            azure_schema(),
        ),
        system(
            GCS,
            &["profile"],
            schema(&["directory", "service_account_file", "profile", "endpoint_url"]),
        ),
    ]
}

/// JSON Schema of an `info` of texts, which must say a directory.
fn schema(keys: &[&str]) -> Value {
    let text = json!({"type": "string"});
    let properties: Map<_, _> = keys.iter().map(|key| ((*key).to_owned(), text.clone())).collect();
    json!({"properties": properties, "required": ["directory"]})
}

fn azure_schema() -> Value {
    let mut azure = schema(&[
        "directory",
        "account",
        "azure_client_id",
        "azure_tenant_id",
        "azure_client_secret",
        "azure_authority_host",
        "account_key",
        "sas",
        "connection_string",
        "endpoint_url",
    ]);
    if let Some(azure) = azure.as_object_mut() {
        let modes = json!({
            "service_principal": ["azure_client_id", "azure_tenant_id", "azure_client_secret"],
            "account_key": ["account_key"],
            "sas": ["sas"],
            "connection_string": ["connection_string"],
        });
        azure.insert("modes".to_owned(), modes);
    }
    azure
}

/// Opens lakes in folders, buckets and containers.
pub(super) struct LakeStorages {
    pub(super) credentials: Arc<CredentialsFile>,
}

#[async_trait]
impl Storages for LakeStorages {
    async fn open(&self, location: &TargetLocation) -> Result<Arc<dyn Storage>> {
        match location {
            TargetLocation::Folder(folder) => {
                local(folder).map(|storage| storage as _).map_err(|error| {
                    error.with_hint("name a folder, existing or new, with --output-dir")
                })
            }
            TargetLocation::Credential(id) => {
                let credential = self.credentials.credential(id)?;
                let info = &credential.info;
                match credential.kind.as_str() {
                    S3 => Ok(s3(s3_settings(id, info)?)?),
                    AZURE => Ok(azure(azure_settings(id, info)?)?),
                    GCS => Ok(gcs(gcs_settings(id, info)?)?),
                    other => Err(configuration(format!("{id}: {other:?} is no storage"))
                        .with_hint(format!(
                            "use a credential of ds_type {S3}, {AZURE} or {GCS}, or a folder with \
                             --output-dir"
                        ))),
                }
            }
        }
    }
}

fn own(info: &CredentialInfo, key: &str) -> Option<String> {
    info.text(key).map(str::to_owned)
}

fn secret(info: &CredentialInfo, key: &str) -> Option<Secret> {
    own(info, key).map(Secret::new)
}

/// The directory, read by `parse`; whoever must mend it is told where.
fn directory<T>(id: &str, info: &CredentialInfo, parse: fn(&str) -> Result<T>) -> Result<T> {
    let text = info.text("directory").unwrap_or_default();
    parse(text).map_err(|error| error.with_hint(format!("mend {id}.info.directory")))
}

fn s3_settings(id: &str, info: &CredentialInfo) -> Result<S3Settings> {
    let (bucket, prefix) = directory(id, info, s3_directory)?;
    let mut settings = S3Settings {
        bucket,
        prefix,
        region: own(info, "region"),
        endpoint: own(info, "endpoint_url"),
        access_key_id: own(info, "access_key_id"),
        secret_access_key: secret(info, "secret_access_key"),
        session_token: secret(info, "session_token"),
    };
    if settings.access_key_id.is_some() != settings.secret_access_key.is_some() {
        return Err(configuration(format!(
            "{id}.info holds one of access_key_id and secret_access_key without the other"
        ))
        .with_hint("set both, or a profile"));
    }
    if settings.access_key_id.is_none() {
        let profile = match info.text("profile") {
            Some(name) => Some(Profile::load(name)?),
            // Without keys or a profile the machine's own role is tried.
            None => Profile::load("default").ok(),
        };
        if let Some(profile) = profile {
            let text = |key: &str| profile.get(key).map(str::to_owned);
            settings.access_key_id = text("aws_access_key_id");
            settings.secret_access_key = text("aws_secret_access_key").map(Secret::new);
            settings.session_token = text("aws_session_token").map(Secret::new);
            settings.region = settings.region.or_else(|| text("region"));
            settings.endpoint = settings.endpoint.or_else(|| text("endpoint_url"));
        }
    }
    Ok(settings)
}

fn azure_settings(id: &str, info: &CredentialInfo) -> Result<AzureSettings> {
    let place = directory(id, info, AzureDirectory::parse)?;
    let authority = own(info, "azure_authority_host");
    let mut account = own(info, "account");
    let (mut endpoint, mut suffix) = (None, None);
    let login = if let Some(key) = secret(info, "account_key") {
        AzureLogin::AccountKey(key)
    } else if let Some(sas) = secret(info, "sas") {
        AzureLogin::Sas(sas)
    } else if let Some(text) = secret(info, "connection_string") {
        let told = azure_connection_string(&text).map_err(|error| {
            Error::new(error.kind(), format!("{id}.info: {}", error.message()))
                .with_hint(error.hint().unwrap_or_default())
        })?;
        agree(id, &mut account, Some(told.account))?;
        (endpoint, suffix) = (told.endpoint, told.suffix);
        told.login
    } else {
        AzureLogin::ServicePrincipal {
            client_id: own(info, "azure_client_id").unwrap_or_default(),
            tenant_id: own(info, "azure_tenant_id").unwrap_or_default(),
            client_secret: secret(info, "azure_client_secret").unwrap_or_else(|| Secret::new("")),
            authority: authority.clone(),
        }
    };
    if authority.is_some() && !matches!(login, AzureLogin::ServicePrincipal { .. }) {
        let message = format!("{id}.info.azure_authority_host gives no token for this auth_mode");
        return Err(configuration(message).with_hint("leave it out, or use service_principal"));
    }
    agree(id, &mut account, place.account)?;
    let account = account.ok_or_else(|| {
        configuration(format!("{id}.info does not say which storage account it is about"))
            .with_hint(
                "set account, or write the directory as \
                 abfss://container@account.dfs.core.windows.net/path",
            )
    })?;
    Ok(AzureSettings {
        account,
        container: place.container,
        prefix: place.prefix,
        suffix: place.suffix.or(suffix),
        endpoint: own(info, "endpoint_url").or(endpoint),
        login,
    })
}

/// The account, which may be told in several places, but not differently.
fn agree(id: &str, account: &mut Option<String>, told: Option<String>) -> Result<()> {
    match (account.as_ref(), told) {
        (Some(account), Some(told)) if *account != told => {
            let message = format!("{id}.info speaks of two accounts, {account:?} and {told:?}");
            Err(configuration(message).with_hint("name the account once, or the same each time"))
        }
        (None, Some(told)) => {
            *account = Some(told);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn gcs_settings(id: &str, info: &CredentialInfo) -> Result<GcsSettings> {
    let (bucket, prefix) = directory(id, info, gcs_directory)?;
    let file = match (info.text("service_account_file"), info.text("profile")) {
        (Some(_), Some(_)) => {
            let message = format!("{id}.info holds both service_account_file and profile");
            return Err(configuration(message).with_hint("they mean the same; keep one"));
        }
        (file, profile) => file.or(profile).map(PathBuf::from),
    };
    if let Some(file) = &file
        && let Err(error) = std::fs::File::open(file)
    {
        let message = format!("{id}.info: the key file {} cannot be read", file.display());
        return Err(configuration(message)
            .with_hint("service_account_file is the JSON key file of a service account")
            .with_source(error));
    }
    let login = match file {
        Some(file) => GcsLogin::ServiceAccount(file),
        None => match std::env::var_os("GOOGLE_APPLICATION_CREDENTIALS") {
            Some(file) => GcsLogin::Application(file.into()),
            None => GcsLogin::Machine,
        },
    };
    Ok(GcsSettings { bucket, prefix, endpoint: own(info, "endpoint_url"), login })
}
