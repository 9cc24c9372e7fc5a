//! Profiles of the files that cloud tools share.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tidelake_model::{Error, ErrorKind, Result};

/// Settings of one profile, by key.
pub(crate) struct Profile(BTreeMap<String, String>);

impl Profile {
    /// Reads a profile from `~/.aws/credentials` and `~/.aws/config`, or the files
    /// that the usual variables name.
    pub(crate) fn load(name: &str) -> Result<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let file = |variable: &str, name: &str| {
            std::env::var_os(variable)
                .map(PathBuf::from)
                .or_else(|| Some(home.as_ref()?.join(".aws").join(name)))
        };
        let sources = [
            (file("AWS_CONFIG_FILE", "config"), format!("profile {name}")),
            (file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), name.to_owned()),
        ];
        let mut settings = BTreeMap::new();
        for (path, section) in sources {
            let text = path.and_then(|path| std::fs::read_to_string(path).ok());
            let text = text.unwrap_or_default();
            settings.extend(parse(&text, &section));
            if name == "default" {
                settings.extend(parse(&text, "default"));
            }
        }
        if settings.is_empty() {
            let message = format!("there is no profile {name:?}");
            return Err(Error::new(ErrorKind::NotFound, message).with_hint(
                "profiles are sections of ~/.aws/credentials and ~/.aws/config, or of the files \
                 that AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name",
            ));
        }
        Ok(Self(settings))
    }

    /// One setting.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}

/// The settings of one section.
fn parse(text: &str, section: &str) -> BTreeMap<String, String> {
    let mut inside = false;
    let mut settings = BTreeMap::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(header) = trimmed.strip_prefix('[') {
            inside = header.split(']').next().is_some_and(|name| name.trim() == section);
        } else if inside
            && !trimmed.starts_with(['#', ';'])
            // Indented lines belong to a nested setting.
            && !line.starts_with([' ', '\t'])
            && let Some((key, value)) = trimmed.split_once('=')
        {
            settings.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_section_that_was_asked_for_is_read() {
        let text = "[default]\nregion = a\n# x = y\n[profile lake ]\nregion=eu-1\ns3 =\n  region = z\n\
                    aws_access_key_id = AK=1\n[other]\nregion = c\n";
        let settings = parse(text, "profile lake");
        assert_eq!(settings.get("region").map(String::as_str), Some("eu-1"));
        assert_eq!(settings.get("aws_access_key_id").map(String::as_str), Some("AK=1"));
        assert!(parse(text, "lake").is_empty());
    }
}
