//! Where all parts meet: the only file that knows which systems exist.

mod storages;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tidelake_connector::Connector;
use tidelake_model::{CredentialInfo, Result};
use tidelake_state::StateStore;
use tidelake_sync::{Application, Faults, LeaseTimes, NoFaults, Patience, Registry};

use crate::credentials::{Catalogue, CredentialsFile, KnownSystem};
use crate::host::Machine;
use crate::settings::{GlobalSettings, configuration};

/// Systems that are known but not built, with the ways to log in to them.
const PLANNED: [(&str, &[&str]); 23] = [
    ("mssql", &["classic"]),
    ("redshift", &["classic"]),
    ("clickhouse", &["classic"]),
    ("timescaledb", &["classic"]),
    ("synapse", &["classic"]),
    ("oracle", &["classic"]),
    ("saphana", &["classic", "connection_string"]),
    ("duckdb", &["filesystem"]),
    ("snowflake", &["password", "pat", "key_pair"]),
    ("databricks", &["token", "oauth"]),
    ("fabric", &["service_principal"]),
    ("bigquery", &["profile", "service_account"]),
    ("cassandra", &["classic"]),
    ("dynamodb", &["profile", "keys"]),
    ("elasticsearch", &["classic", "api_key"]),
    ("odbc", &["connection_string", "driver"]),
    ("adbc", &["connection_string", "driver"]),
    ("onelake", &["service_principal", "account_key", "sas", "connection_string"]),
    ("aws_glue", &[]),
    ("motherduck", &[]),
    ("ducklake", &[]),
    ("sql", &[]),
    ("sap_hana", &[]),
];

/// The ways to log in to databases that are built.
const AUTH_MODES: [(&str, &[&str]); 4] = [
    ("sqlite", &["filesystem"]),
    ("postgres", &["classic"]),
    ("mysql", &["classic"]),
    ("mariadb", &["classic"]),
];

/// The application with the parts that the settings name.
pub(crate) async fn application(settings: &GlobalSettings) -> Result<Application> {
    let connectors = registry();
    let catalogue = Arc::new(catalogue(&connectors));
    let credentials = Arc::new(CredentialsFile::load(settings.auth_file.clone(), catalogue)?);
    let state = state_store(settings, &credentials).await?;
    tracing::debug!("the state store is {}", state.location());
    Ok(Application {
        state,
        connectors,
        credentials: credentials.clone(),
        storages: Arc::new(storages::LakeStorages { credentials }),
        host: Arc::new(Machine::new()),
        faults: faults()?,
        leases: LeaseTimes::default(),
        patience: Patience::default(),
        began: settings.began,
    })
}

/// Cores that this process may use.
pub(crate) fn cores() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores).unwrap_or(1)
}

#[cfg(debug_assertions)]
fn faults() -> Result<Arc<dyn Faults>> {
    Ok(match crate::faults::Abort::from_environment()? {
        Some(fault) => Arc::new(fault),
        None => Arc::new(NoFaults),
    })
}

#[cfg(not(debug_assertions))]
fn faults() -> Result<Arc<dyn Faults>> {
    Ok(Arc::new(NoFaults))
}

/// The connectors of this build.
fn registry() -> Registry {
    let connectors: Vec<Arc<dyn Connector>> = vec![
        #[cfg(feature = "sqlite")]
        Arc::new(tidelake_sqlite::SqliteConnector),
        #[cfg(feature = "postgres")]
        Arc::new(tidelake_postgres::Postgres),
        #[cfg(feature = "mysql")]
        Arc::new(tidelake_mysql::Mysql::MySql),
        #[cfg(feature = "mysql")]
        Arc::new(tidelake_mysql::Mysql::MariaDb),
    ];
    Registry::new(connectors, PLANNED.iter().map(|(name, _)| *name).collect())
}

/// Everything that a credential may be for.
fn catalogue(connectors: &Registry) -> Catalogue {
    let mut systems = Vec::new();
    for (name, auth_modes) in AUTH_MODES {
        let schema = connectors.connector(name).ok().map(|connector| connector.config_schema());
        let schema = schema.map(with_state_keys);
        systems.push(KnownSystem { name, auth_modes, schema });
    }
    systems.extend(storages::known());
    let planned = PLANNED.iter();
    systems.extend(planned.map(|(name, auth_modes)| KnownSystem {
        name,
        auth_modes,
        schema: None,
    }));
    Catalogue { systems, state_keys: STATE_KEYS.to_vec() }
}

/// Keys of a credential that only a state store reads, so that one credential
/// can be both the source's and the store's.
const STATE_KEYS: [&str; 1] = ["schema"];

/// Adds those keys where the system is a server: it has databases with schemas.
fn with_state_keys(mut schema: Value) -> Value {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut)
        && properties.contains_key("database")
    {
        for key in STATE_KEYS {
            properties.insert(key.to_owned(), json!({"type": ["string", "null"]}));
        }
    }
    schema
}

/// The state store of the settings: that of a credential, or a file.
async fn state_store(
    settings: &GlobalSettings,
    credentials: &CredentialsFile,
) -> Result<Arc<dyn StateStore>> {
    let Some(id) = &settings.state_credential else {
        return embedded_store(&data_folder()?.join("state.db")).await;
    };
    let credential = credentials.state_credential(id)?;
    match credential.kind.as_str() {
        #[cfg(feature = "state-sqlite")]
        "sqlite" => Ok(Arc::new(
            tidelake_state::sqlite::SqliteStore::from_credential(&credential.info).await?,
        )),
        #[cfg(feature = "state-postgres")]
        "postgres" => {
            let info = server_store(&credential.info)?;
            Ok(Arc::new(tidelake_state::postgres::PostgresStore::from_credential(&info).await?))
        }
        #[cfg(feature = "state-mysql")]
        "mysql" | "mariadb" => {
            let info = server_store(&credential.info)?;
            Ok(Arc::new(tidelake_state::mysql::MysqlStore::from_credential(&info).await?))
        }
        other => Err(configuration(format!("{id}: {other:?} cannot hold the state store"))
            .with_hint(
                "use a credential of ds_type sqlite, postgres, mysql or mariadb with --lxdb-auth-id",
            )),
    }
}

#[cfg(feature = "state-sqlite")]
async fn embedded_store(path: &Path) -> Result<Arc<dyn StateStore>> {
    use tidelake_state::sqlite::SqliteStore;
    SqliteStore::make_folder_of(path)?;
    Ok(Arc::new(SqliteStore::open(path).await?))
}

#[cfg(not(feature = "state-sqlite"))]
async fn embedded_store(_: &Path) -> Result<Arc<dyn StateStore>> {
    Err(configuration("this build has no embedded state store")
        .with_hint("name the credential of a state store with --lxdb-auth-id"))
}

/// Keys of a server's credential that tell a source how to keep its connections.
#[cfg(any(feature = "state-postgres", feature = "state-mysql"))]
const CONNECTION_KEYS: [&str; 5] =
    ["application_name", "connect_timeout", "statement_timeout", "stall_timeout", "keepalive"];

/// A server's credential with the keys that the state store knows: what else a
/// source may be told does not change what is stored.
#[cfg(any(feature = "state-postgres", feature = "state-mysql"))]
fn server_store(info: &CredentialInfo) -> Result<CredentialInfo> {
    let mut info: Value = info.parse()?;
    if let Some(fields) = info.as_object_mut() {
        for key in CONNECTION_KEYS {
            fields.remove(key);
        }
        let trusts = fields.remove("trust_server_certificate") == Some(Value::Bool(true));
        if trusts && !fields.contains_key("sslmode") {
            fields.insert("sslmode".to_owned(), "require".into());
        }
    }
    Ok(CredentialInfo::new(info))
}

/// Where this user's data is.
fn data_folder() -> Result<PathBuf> {
    let variable =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = variable("XDG_DATA_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".local").join("share")))
        .or_else(|| variable("LOCALAPPDATA"));
    base.map(|base| base.join("tidelake")).ok_or_else(|| {
        configuration("there is no data folder for the state store: HOME is not set")
            .with_hint("set HOME, or name a state store with --lxdb-auth-id")
    })
}

/// The shop of `demo`.
#[cfg(feature = "sqlite")]
pub(crate) mod shop {
    pub(crate) use tidelake_sqlite::demo::{INCREMENTAL_TABLES, add_rows, create_shop};
}

/// Without the connector there is nothing to show.
#[cfg(not(feature = "sqlite"))]
pub(crate) mod shop {
    use tidelake_model::{Error, ErrorKind};

    use super::*;

    pub(crate) const INCREMENTAL_TABLES: [&str; 0] = [];

    pub(crate) fn create_shop(_: &Path) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "this build has no database to show")
            .with_hint("build it with the feature sqlite"))
    }

    pub(crate) fn add_rows(_: &Path) -> Result<u64> {
        Ok(0)
    }
}

/// Credentials of a file that is a source or a state store.
pub(crate) fn file_credential(path: &Path) -> Value {
    json!({"ds_type": "sqlite", "auth_mode": "filesystem", "info": {"filepath": path}})
}
