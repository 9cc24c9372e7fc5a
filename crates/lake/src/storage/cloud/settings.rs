//! What the settings of all providers have in common.

use std::time::Duration;

use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use tidelake_model::{Error, ErrorKind, Result};
use url::Url;

/// The address of a store, checked: a client takes what it is given and panics at
/// its first request. A message does not repeat the text, which may hold a
/// password.
pub(super) fn endpoint(text: &str) -> Result<String> {
    let wrong = |why: &str| {
        Error::new(ErrorKind::Configuration, format!("the endpoint_url {why}"))
            .with_hint("write it as https://host or http://host:port")
    };
    let url = Url::parse(text.trim()).map_err(|error| wrong(&format!("is no URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("begins with neither https:// nor http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("holds a user or a password; give the keys in their own fields"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("goes on behind the path"));
    }
    Ok(String::from(url).trim_end_matches('/').to_owned())
}

/// How a store is talked to. `http://` is allowed where the endpoint says so.
pub(super) fn client_options(endpoint: Option<&str>) -> ClientOptions {
    let insecure = endpoint.is_some_and(|url| url.starts_with("http://"));
    ClientOptions::new()
        .with_allow_http(insecure)
        .with_connect_timeout(Duration::from_secs(10))
        // A part of a large object on a slow line.
        .with_timeout(Duration::from_secs(180))
}

/// A request that a store answers with 5xx or 429, or that the line loses, is sent
/// again five times, within about fifteen seconds if it answers at once.
pub(super) fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            base: 2.0,
        },
        max_retries: 5,
        retry_timeout: Duration::from_secs(120),
    }
}

/// For a client that sends each request once.
pub(super) fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..retries() }
}

/// Waits before a request of such a client, or of our own, is sent once more.
pub(super) fn pauses() -> [Duration; 5] {
    [100, 300, 800, 1800, 3000].map(Duration::from_millis)
}

/// The path in a bucket, without slashes at its ends.
pub(super) fn prefix(text: &str) -> Result<String> {
    let prefix = text.trim_matches('/');
    Path::parse(prefix).map_err(|_| {
        let message = format!("{prefix:?} is no path inside a bucket or container");
        Error::new(ErrorKind::Configuration, message)
            .with_hint("write a path without //, . and .. behind the name")
    })?;
    Ok(prefix.to_owned())
}

/// The name and the path behind a scheme such as `s3://`.
pub(super) fn split_directory<'a>(
    directory: &'a str,
    schemes: &[&str],
    form: &str,
) -> Result<(&'a str, &'a str)> {
    let rest = schemes.iter().find_map(|scheme| directory.strip_prefix(scheme));
    let (name, path) = rest.map_or(("", ""), |rest| rest.split_once('/').unwrap_or((rest, "")));
    if name.is_empty() {
        let message = format!("{directory:?} is not of the form {form}");
        return Err(Error::new(ErrorKind::Configuration, message));
    }
    Ok((name, path.trim_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_is_no_address_is_refused_before_it_is_used() {
        for (right, address) in [
            ("http://127.0.0.1:9000/", "http://127.0.0.1:9000"),
            ("HTTPS://Store.example", "https://store.example"),
            ("http://[::1]:1/a b", "http://[::1]:1/a%20b"),
        ] {
            assert_eq!(endpoint(right).unwrap(), address);
        }
        for wrong in [
            "",
            "localhost",
            "localhost:9000",
            "127.0.0.1:9000",
            "ftp://store",
            "http://",
            "http://a b/",
            "http://store:99999",
            "http://user:secret@store",
            "http://store/?x=1",
        ] {
            let error = endpoint(wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{wrong}");
            assert!(!error.message().contains("secret") && error.hint().is_some());
        }
    }

    #[test]
    fn a_prefix_stays_in_its_bucket() {
        assert_eq!(prefix("/a/b c/").unwrap(), "a/b c");
        for wrong in ["a//b", "a/../b", "."] {
            assert_eq!(prefix(wrong).unwrap_err().kind(), ErrorKind::Configuration, "{wrong}");
        }
    }
}
