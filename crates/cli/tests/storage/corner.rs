//! A shop with a lake behind the proxy, in one of the clouds.

use std::process::Output;

use serde_json::{Value, json};

use crate::place::{Parts, Place, said, same};
use crate::proxy::Proxy;
use crate::reader::Reader;
use crate::shop::{Cells, Shop};
use crate::terminal::{Desk, file, server};

/// Where a lake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cloud {
    S3,
    Azure,
    Gcs,
}

/// A table that no codec makes smaller, of two parts.
const PICTURES: &str = "
    CREATE TABLE main.pictures (id INTEGER PRIMARY KEY, content BLOB NOT NULL);
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 700)
    INSERT INTO pictures SELECT n, randomblob(16000) FROM numbers";

impl Cloud {
    pub(crate) const ALL: [Self; 3] = [Self::S3, Self::Azure, Self::Gcs];

    fn setting(self, name: &str) -> Option<String> {
        let cloud = format!("{self:?}").to_uppercase();
        server(&format!("TIDELAKE_TEST_{cloud}_{name}"))
    }

    /// A credential for a place of its own, and what the reader must know of it.
    /// Whatever the program sends goes through the proxy, if there is one.
    pub(crate) fn lake(self, prefix: &str, proxy: Option<&Proxy>) -> Option<(Value, Value)> {
        let endpoint = self.setting("ENDPOINT")?;
        let through = match proxy {
            Some(proxy) => {
                let (_, rest) = endpoint.split_once("://").unwrap();
                let path =
                    rest.split_once('/').map_or(String::new(), |(_, path)| format!("/{path}"));
                format!("{}{path}", proxy.url())
            }
            None => endpoint.clone(),
        };
        Some(match self {
            Self::S3 => {
                let bucket = crate::place::make_bucket();
                let credential = json!({"ds_type": "s3", "auth_mode": "keys", "info": {
                    "directory": format!("s3://{bucket}/{prefix}"), "endpoint_url": through,
                    "region": self.setting("REGION")?, "access_key_id": self.setting("ACCESS_KEY")?,
                    "secret_access_key": self.setting("SECRET_KEY")?,
                }});
                (credential, json!({"endpoint": endpoint, "bucket": bucket, "prefix": prefix}))
            }
            Self::Azure => {
                let (account, container) = (self.setting("ACCOUNT")?, self.setting("CONTAINER")?);
                let directory =
                    format!("abfss://{container}@{account}.dfs.core.windows.net/{prefix}");
                let credential = json!({"ds_type": "azure", "auth_mode": "account_key", "info": {
                    "directory": directory, "account_key": self.setting("KEY")?,
                    "endpoint_url": through,
                }});
                let sas = self.setting("SAS")?;
                let lake = json!({"endpoint": endpoint, "container": container, "prefix": prefix,
                                  "sas": sas});
                (credential, lake)
            }
            Self::Gcs => {
                let bucket = self.setting("BUCKET")?;
                let credential = json!({"ds_type": "gcs", "auth_mode": "profile", "info": {
                    "directory": format!("gs://{bucket}/{prefix}"), "endpoint_url": through,
                    "service_account_file": self.setting("SERVICE_ACCOUNT")?,
                }});
                let lake = json!({"endpoint": endpoint, "bucket": bucket, "prefix": prefix,
                                  "token": self.setting("TOKEN")?});
                (credential, lake)
            }
        })
    }
}

/// A place with a large table besides the usual ones, its lake in a cloud.
pub(crate) struct Corner {
    pub(crate) place: Place,
    pub(crate) proxy: Proxy,
    pub(crate) reader: Reader,
}

impl Corner {
    /// `None` where a service is missing.
    pub(crate) fn make(cloud: Cloud) -> Option<Self> {
        let reader = Reader::start()?;
        let proxy = Proxy::before(&cloud.setting("ENDPOINT")?);
        let prefix = format!("corner-{}", ulid::Ulid::new().to_string().to_lowercase());
        let (credential, lake) = cloud.lake(&prefix, Some(&proxy))?;
        let desk = Desk::new();
        let source = desk.path("source.db");
        let shop = Shop::file(&source);
        shop.execute(PICTURES);
        shop.grow(5);
        desk.credentials(&json!({
            "source": file(&source), "state": file(&desk.path("state.db")), "lake": credential,
        }));
        let place = Place { desk, shop, lake, server: None, parts: Parts::default() };
        place.must(
            "config create --source-db-auth-id source --source-schema-name main --sync-id nightly \
             --target-storage-id lake --incremental-table main.orders:updated_at:timestamp \
             --incremental-table main.events:id:integer --n-jobs 1 --compression-type None",
        );
        Some(Self { place, proxy, reader })
    }

    /// A run, however it ends.
    pub(crate) fn run(&self) -> Output {
        self.place.command().output().unwrap()
    }

    /// A run that ends well in spite of all.
    pub(crate) fn sync(&self) -> Value {
        let output = self.run();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// A run that fails, what it said.
    pub(crate) fn fail(&self) -> String {
        let output = self.run();
        let code = output.status.code().unwrap();
        assert!([1, 3].contains(&code), "{}", said(&output));
        said(&output)
    }

    /// The lake holds the source, each row once, and nothing else is left.
    pub(crate) fn is_whole(&self, report: &Value, because: &str) {
        self.place.is_whole(&self.reader, report, because);
        let mut pictures: Cells = self
            .place
            .shop
            .select("SELECT CAST(id AS TEXT), '0x' || lower(hex(content)) FROM pictures");
        pictures.sort();
        same(&self.place.lake_rows(&self.reader, "pictures").rows, &pictures, because);
        self.has_no_uploads(because);
    }

    pub(crate) fn has_no_uploads(&self, because: &str) {
        let large = self.reader.folder(&self.place.lake, "main/pictures").unwrap().uploads;
        assert_eq!(large, [], "{because}");
        assert_eq!(self.place.uploads(&self.reader), [], "{because}");
    }

    /// Watermarks by table.
    pub(crate) fn watermarks(&self) -> Vec<(String, Value)> {
        let told = self.place.told("watermarks list");
        let pair =
            |record: &Value| (record["key"]["table"].to_string(), record["progress"].clone());
        told.as_array().unwrap().iter().map(pair).collect()
    }
}

/// How far each table got, of a list of watermarks.
pub(crate) fn watermarks(told: &Value) -> Vec<(String, Value)> {
    let pair = |record: &Value| {
        let table = record["key"]["table"]["table"].as_str().unwrap().to_owned();
        (table, record["progress"].clone())
    };
    told.as_array().unwrap().iter().map(pair).collect()
}
