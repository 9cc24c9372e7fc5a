//! The credentials file: `{"<id>": {"ds_type": …, "auth_mode": …, "info": {…}}}`.
//!
//! Only the credential that is asked for is checked, so that a file may hold
//! credentials of systems that this build cannot reach. No value of an `info`
//! is ever part of a message.

mod check;
mod file;
mod profile;
mod strict;
mod variables;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use tidelake_model::{CredentialInfo, Error, ErrorKind, Result};
use tidelake_sync::{Credential, Credentials};

pub(crate) use check::{Catalogue, KnownSystem};
pub(crate) use profile::Profile;

/// Credentials from a file, or none.
pub(crate) struct CredentialsFile {
    path: Option<PathBuf>,
    entries: Map<String, Value>,
    catalogue: Arc<Catalogue>,
}

impl CredentialsFile {
    /// Reads the file that was named, if any was.
    pub(crate) fn load(path: Option<PathBuf>, catalogue: Arc<Catalogue>) -> Result<Self> {
        match path {
            Some(path) => Self::parse(&file::read(&path)?, path, catalogue),
            None => Ok(Self { path, entries: Map::new(), catalogue }),
        }
    }

    /// The credentials of a file's text.
    pub(crate) fn parse(text: &str, path: PathBuf, catalogue: Arc<Catalogue>) -> Result<Self> {
        let entries = file::parse(text, &path)?;
        Ok(Self { path: Some(path), entries, catalogue })
    }

    fn entry(&self, id: &str) -> Result<&Value> {
        let Some(path) = &self.path else {
            let message =
                format!("the credential {id:?} is needed, but no credentials file is named");
            return Err(Error::new(ErrorKind::Configuration, message)
                .with_hint("name it with -a FILE (--auth-file)"));
        };
        self.entries.get(id).ok_or_else(|| {
            let ids: Vec<_> = self.entries.keys().map(String::as_str).collect();
            let hint = match (check::nearest(id, ids.iter().copied()), ids.as_slice()) {
                (_, []) => "the file holds no credentials".to_owned(),
                (Some(near), _) => format!("did you mean {near:?}? there are: {}", ids.join(", ")),
                (None, _) => format!("there are: {}", ids.join(", ")),
            };
            let message = format!("there is no credential {id:?} in {}", path.display());
            Error::new(ErrorKind::NotFound, message).with_hint(hint)
        })
    }

    /// The type and `info` of a credential, checked and with variables filled in.
    fn checked(&self, id: &str) -> Result<(String, Map<String, Value>)> {
        let mut entry = self.entry(id)?.clone();
        variables::fill_in(&mut entry, id, &|name| std::env::var(name).ok())?;
        self.catalogue.check(id, entry)
    }

    /// The credential of a state store.
    pub(crate) fn state_credential(&self, id: &str) -> Result<Credential> {
        let (kind, info) = self.checked(id)?;
        Ok(Credential { kind, info: CredentialInfo::new(info.into()) })
    }
}

impl Credentials for CredentialsFile {
    fn credential(&self, id: &str) -> Result<Credential> {
        let (kind, mut info) = self.checked(id)?;
        for key in &self.catalogue.state_keys {
            info.remove(*key);
        }
        Ok(Credential { kind, info: CredentialInfo::new(info.into()) })
    }
}

#[cfg(test)]
mod tests;
