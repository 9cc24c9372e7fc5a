//! Containers of Azure Blob Storage.
//!
//! An upload in parts has no id there: each part is a block of the blob with a
//! random name, which the part records, and completing it writes the list of
//! blocks. Blocks that are on no list are invisible, cannot be taken back, and are
//! thrown away by the service after a week.

use std::sync::Arc;

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use tidelake_model::{Error, ErrorKind, Result, Secret};
use url::{Host, Url};

use super::errors::Words;
use super::settings::{client_options, endpoint, prefix, retries, split_directory};
use super::{CloudStorage, Versions};

/// The form of a directory, for people.
const FORM: &str = "abfss://container@account.dfs.core.windows.net/path or abs://container/path";
const SCHEMES: [&str; 4] = ["abfss://", "abfs://", "abs://", "az://"];
const SUFFIX: &str = "core.windows.net";

/// Who asks.
#[derive(Clone)]
pub enum AzureLogin {
    /// A key of the whole account.
    AccountKey(Secret),
    /// A shared access signature: the parameters that follow the `?`.
    Sas(Secret),
    /// An application with a secret of its own.
    ServicePrincipal {
        /// Id of the application.
        client_id: String,
        /// Id of the directory that knows it.
        tenant_id: String,
        /// Its secret.
        client_secret: Secret,
        /// Address of the service that gives out tokens; Microsoft's when absent.
        authority: Option<String>,
    },
}

/// Where a container is, and who asks.
#[derive(Clone)]
pub struct AzureSettings {
    /// Name of the account.
    pub account: String,
    /// Name of the container.
    pub container: String,
    /// Path inside the container; may be empty.
    pub prefix: String,
    /// What follows `account.blob.` in addresses; that of the public cloud when
    /// absent.
    pub suffix: Option<String>,
    /// Address of the account, if it is not where Azure has it.
    pub endpoint: Option<String>,
    /// Who asks.
    pub login: AzureLogin,
}

/// What a directory says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AzureDirectory {
    /// Name of the account, where it is told.
    pub account: Option<String>,
    /// What follows the account and the service in addresses, where it is told.
    pub suffix: Option<String>,
    /// Name of the container.
    pub container: String,
    /// Path inside the container; may be empty.
    pub prefix: String,
}

impl AzureDirectory {
    /// Reads `abfss://container@account.dfs.core.windows.net/path`,
    /// `abs://container/path`, `abs://container@account/path` or
    /// `abs://account.blob.core.windows.net/container/path`.
    pub fn parse(directory: &str) -> Result<Self> {
        let (authority, path) = split_directory(directory, &SCHEMES, FORM)?;
        let (container, host, path) = match authority.split_once('@') {
            Some((container, host)) => (container, Some(host), path),
            None if authority.contains('.') => {
                let (container, path) = path.split_once('/').unwrap_or((path, ""));
                (container, Some(authority), path)
            }
            None => (authority, None, path),
        };
        let wrong = || {
            let message = format!("{directory:?} is not of the form {FORM}");
            Error::new(ErrorKind::Configuration, message)
        };
        let (mut account, mut suffix) = (host, None);
        if let Some((name, rest)) = host.and_then(|host| host.split_once('.')) {
            let (_, zone) = rest.split_once('.').ok_or_else(wrong)?;
            (account, suffix) = (Some(name), Some(zone));
        }
        let fits = |name: &str, more: &[char]| {
            let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
            !name.is_empty() && name.chars().all(|letter| fits(letter) || more.contains(&letter))
        };
        if !fits(container, &['-', '$']) || account.is_some_and(|account| !fits(account, &[])) {
            return Err(wrong());
        }
        Ok(Self {
            account: account.map(str::to_owned),
            suffix: suffix.map(str::to_owned),
            container: container.to_owned(),
            prefix: prefix(path)?,
        })
    }
}

/// What a connection string says.
#[derive(Clone)]
pub struct AzureConnection {
    /// Name of the account.
    pub account: String,
    /// Address of the account's blobs, where it is told.
    pub endpoint: Option<String>,
    /// What follows the account and the service in addresses, where it is told.
    pub suffix: Option<String>,
    /// Who asks.
    pub login: AzureLogin,
}

/// Reads a connection string, as the portal shows it.
pub fn azure_connection_string(text: &Secret) -> Result<AzureConnection> {
    let wrong = |why: &str| {
        Error::new(ErrorKind::Configuration, format!("the connection_string {why}")).with_hint(
            "copy it from the storage account's page, below Access keys: it has the form \
             DefaultEndpointsProtocol=https;AccountName=…;AccountKey=…;EndpointSuffix=…",
        )
    };
    let mut fields = std::collections::BTreeMap::new();
    for part in text.expose().split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').ok_or_else(|| wrong("has a part without ="))?;
        fields.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut take = |key: &str| fields.remove(key).filter(|value| !value.is_empty());
    let endpoint = take("blobendpoint");
    let account = take("accountname").or_else(|| account_of(endpoint.as_deref()?));
    let account = account.ok_or_else(|| wrong("names no account"))?;
    let login = match (take("accountkey"), take("sharedaccesssignature")) {
        (Some(key), None) => AzureLogin::AccountKey(Secret::new(key)),
        (None, Some(sas)) => AzureLogin::Sas(Secret::new(sas)),
        (Some(_), Some(_)) => {
            return Err(wrong("holds both an AccountKey and a SharedAccessSignature"));
        }
        (None, None) => {
            return Err(wrong("holds neither an AccountKey nor a SharedAccessSignature"));
        }
    };
    Ok(AzureConnection { account, endpoint, suffix: take("endpointsuffix"), login })
}

/// The account that an address begins with, or whose path does where the host is
/// no name.
fn account_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    match url.host()? {
        Host::Domain(name) if name.contains('.') => name.split('.').next().map(str::to_owned),
        _ => url.path_segments()?.next().filter(|name| !name.is_empty()).map(str::to_owned),
    }
}

/// The address of an account. A host that is no name of Azure's has the account in
/// its path.
fn account_url(settings: &AzureSettings) -> Result<String> {
    let account = &settings.account;
    let Some(text) = &settings.endpoint else {
        let suffix = settings.suffix.as_deref().unwrap_or(SUFFIX);
        return Ok(format!("https://{account}.blob.{suffix}"));
    };
    let text = endpoint(text)?;
    let url = Url::parse(&text).ok();
    let is_bare = url.is_some_and(|url| {
        let is_place = match url.host() {
            Some(Host::Domain(name)) => !name.contains('.'),
            _ => true,
        };
        is_place && url.path().trim_matches('/').is_empty()
    });
    Ok(if is_bare { format!("{text}/{account}") } else { text })
}

/// A storage in a container. Nothing is sent yet.
pub fn azure(settings: AzureSettings) -> Result<Arc<CloudStorage>> {
    let prefix = prefix(&settings.prefix)?;
    let url = account_url(&settings)?;
    let AzureSettings { account, container, suffix, login, .. } = settings;
    let builder = MicrosoftAzureBuilder::new()
        .with_account(&account)
        .with_container_name(&container)
        .with_endpoint(url.clone())
        .with_client_options(client_options(Some(&url)))
        .with_retry(retries());
    let (builder, login_hint) = match &login {
        AzureLogin::AccountKey(key) => (
            builder.with_access_key(key.expose()),
            "check the credential's account and account_key",
        ),
        AzureLogin::Sas(sas) => (
            builder.with_config(AzureConfigKey::SasKey, sas.expose()),
            "make a new shared access signature that is valid now and covers the container",
        ),
        AzureLogin::ServicePrincipal { client_id, tenant_id, client_secret, authority } => {
            let builder = builder.with_client_secret_authorization(
                client_id,
                client_secret.expose(),
                tenant_id,
            );
            let builder = match authority.as_deref().map(endpoint).transpose()? {
                Some(authority) => builder.with_authority_host(authority),
                None => builder,
            };
            (builder, "check azure_client_id, azure_tenant_id and azure_client_secret")
        }
    };
    let client = builder.build().map_err(|_| {
        // Its own words may hold a part of the key.
        let what = match login {
            AzureLogin::AccountKey(_) => "the account_key is not base64",
            AzureLogin::Sas(_) => "the sas is not of the form sv=…&sp=…&sig=…",
            AzureLogin::ServicePrincipal { .. } => "the login is not complete",
        };
        let message = format!("the settings of container {container:?}: {what}");
        Error::new(ErrorKind::Configuration, message).with_hint(login_hint)
    })?;
    let rights = match login {
        AzureLogin::AccountKey(_) => {
            "allow this machine in the account's firewall, and keys in its configuration"
        }
        AzureLogin::Sas(_) => {
            "make a signature with the permissions read, add, create, write, delete and list"
        }
        AzureLogin::ServicePrincipal { .. } => {
            "give the application the role Storage Blob Data Contributor on the container"
        }
    };
    let suffix = suffix.as_deref().unwrap_or(SUFFIX);
    Ok(Arc::new(CloudStorage {
        client: Box::new(client),
        once: None,
        location: format!("abfss://{container}@{account}.dfs.{suffix}"),
        prefix,
        versions: Versions::ETag,
        listing: None,
        words: Words { container: ("container", container), rights, login: login_hint },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(directory: &str) -> (Option<String>, Option<String>, String, String) {
        let AzureDirectory { account, suffix, container, prefix } =
            AzureDirectory::parse(directory).unwrap();
        (account, suffix, container, prefix)
    }

    #[test]
    fn a_directory_is_account_container_and_prefix() {
        let some = |text: &str| Some(text.to_owned());
        let whole = (some("acc"), some("core.windows.net"), "lake".to_owned(), "a/b c".to_owned());
        assert_eq!(parsed("abfss://lake@acc.dfs.core.windows.net/a/b c/"), whole);
        assert_eq!(parsed("abs://acc.blob.core.windows.net/lake/a/b c"), whole);
        let short = (None, None, "lake".to_owned(), String::new());
        assert_eq!(parsed("abs://lake"), short);
        assert_eq!(parsed("az://lake/").2, "lake");
        assert_eq!(parsed("abs://lake@acc/x").0, some("acc"));
        assert_eq!(
            parsed("abfss://lake@acc.dfs.core.chinacloudapi.cn/x").1,
            some("core.chinacloudapi.cn")
        );
        for wrong in [
            "lake/a",
            "abs://",
            "abs:///a",
            "s3://b",
            "abfss://@acc.dfs.core.windows.net/x",
            "abfss://lake@/x",
            "abfss://lake@acc.net/x",
            "abs://acc.blob.core.windows.net",
            "abs://La ke/x",
            "abs://lake/a/../b",
        ] {
            let error = AzureDirectory::parse(wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{wrong}");
        }
    }

    #[test]
    fn a_connection_string_is_read() {
        let read = |text: &str| azure_connection_string(&Secret::new(text));
        let AzureConnection { account, endpoint, suffix, login } = read(
            "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5==;\
             EndpointSuffix=core.windows.net",
        )
        .unwrap();
        assert_eq!((account.as_str(), endpoint), ("acc", None));
        assert_eq!(suffix.as_deref(), Some("core.windows.net"));
        let AzureLogin::AccountKey(key) = login else { panic!("another login") };
        assert_eq!(key.expose(), "a2V5==");
        let AzureConnection { account, endpoint, login, .. } = read(
            "BlobEndpoint=https://acc.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=a%3D",
        )
        .unwrap();
        assert_eq!(account, "acc");
        assert!(endpoint.is_some());
        let AzureLogin::Sas(sas) = login else { panic!("another login") };
        assert_eq!(sas.expose(), "sv=1&sig=a%3D");
        let AzureConnection { account, .. } =
            read("BlobEndpoint=http://127.0.0.1:10000/devacc;AccountKey=a2V5").unwrap();
        assert_eq!(account, "devacc");
        for wrong in
            ["", "hunter2", "AccountName=a", "AccountKey=aGk=", "AccountName=;AccountKey=x"]
        {
            let error = read(wrong).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{wrong}");
            assert!(!error.chain().contains("hunter2") && error.hint().is_some());
        }
    }

    #[test]
    fn the_address_of_an_account_holds_its_name() {
        let url = |endpoint: Option<&str>| {
            account_url(&AzureSettings {
                account: "acc".to_owned(),
                container: "lake".to_owned(),
                prefix: String::new(),
                suffix: None,
                endpoint: endpoint.map(str::to_owned),
                login: AzureLogin::Sas(Secret::new("")),
            })
            .unwrap()
        };
        assert_eq!(url(None), "https://acc.blob.core.windows.net");
        assert_eq!(url(Some("http://127.0.0.1:1")), "http://127.0.0.1:1/acc");
        assert_eq!(url(Some("http://localhost:1/")), "http://localhost:1/acc");
        assert_eq!(url(Some("http://127.0.0.1:1/acc")), "http://127.0.0.1:1/acc");
        assert_eq!(url(Some("https://acc.private.net")), "https://acc.private.net");
    }

    #[test]
    fn a_wrong_key_is_refused_without_being_told() {
        let settings = AzureSettings {
            account: "acc".to_owned(),
            container: "lake".to_owned(),
            prefix: String::new(),
            suffix: None,
            endpoint: None,
            login: AzureLogin::AccountKey(Secret::new("not base64!")),
        };
        let error = azure(settings).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.message().contains("the account_key is not base64"), "{error:?}");
        assert!(!format!("{error:?}").contains("not base64!"));
    }
}
