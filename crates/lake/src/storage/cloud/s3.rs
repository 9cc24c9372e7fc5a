//! Buckets of S3, and of stores that speak its language.

use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AwsAuthorizer, AwsCredentialProvider, S3ConditionalPut};
use object_store::client::{HttpConnector, ReqwestConnector};
use tidelake_model::{Error, ErrorKind, Result, Secret};
use url::Url;

use super::errors::Words;
use super::settings::{client_options, endpoint, no_retries, prefix, retries, split_directory};
use super::uploads::Listing;
use super::{CloudStorage, Versions};

/// Where a bucket is, and who asks.
#[derive(Clone, Default)]
pub struct S3Settings {
    /// Name of the bucket.
    pub bucket: String,
    /// Path inside the bucket; may be empty.
    pub prefix: String,
    /// Region; `us-east-1` when absent.
    pub region: Option<String>,
    /// Address of a store that is not Amazon's; `http://` is allowed.
    pub endpoint: Option<String>,
    /// Key id; the machine's own role is used when absent.
    pub access_key_id: Option<String>,
    /// The key.
    pub secret_access_key: Option<Secret>,
    /// Token of temporary keys.
    pub session_token: Option<Secret>,
}

/// Bucket and prefix of `s3://bucket/prefix`.
pub fn s3_directory(directory: &str) -> Result<(String, String)> {
    let (bucket, prefix) = split_directory(directory, &["s3://"], "s3://bucket/prefix")?;
    Ok((bucket.to_owned(), prefix.to_owned()))
}

/// A storage in an S3 bucket. Nothing is sent yet.
pub fn s3(settings: S3Settings) -> Result<Arc<CloudStorage>> {
    let prefix = prefix(&settings.prefix)?;
    let endpoint = settings.endpoint.as_deref().map(endpoint).transpose()?;
    let region = settings.region.as_deref().unwrap_or("us-east-1");
    let options = client_options(endpoint.as_deref());
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&settings.bucket)
        .with_region(region)
        .with_virtual_hosted_style_request(false)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_client_options(options.clone());
    if let Some(endpoint) = &endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(key) = &settings.access_key_id {
        builder = builder.with_access_key_id(key);
    }
    if let Some(secret) = &settings.secret_access_key {
        builder = builder.with_secret_access_key(secret.expose());
    }
    if let Some(token) = &settings.session_token {
        builder = builder.with_token(token.expose());
    }
    let wrong = |error: &dyn std::fmt::Display| {
        // The builder's messages name settings, never their secret values.
        let message = format!("the settings of bucket {:?}: {error}", settings.bucket);
        Error::new(ErrorKind::Configuration, message)
    };
    let once = builder.clone().with_retry(no_retries()).build().map_err(|error| wrong(&error))?;
    let client = builder.with_retry(retries()).build().map_err(|error| wrong(&error))?;
    let http = ReqwestConnector::default().connect(&options).map_err(|error| wrong(&error))?;
    let base = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
    let url = Url::parse(&format!("{base}/{}", settings.bucket)).map_err(|error| wrong(&error))?;
    let listing =
        Listing { http, url, sign: sign(Arc::clone(client.credentials()), region.to_owned()) };
    Ok(Arc::new(CloudStorage {
        client: Box::new(client),
        once: Some(Box::new(once)),
        location: format!("s3://{}", settings.bucket),
        prefix,
        versions: Versions::ETag,
        listing: Some(listing),
        words: Words {
            container: ("bucket", settings.bucket),
            rights: "allow the credential's user to list the bucket and to get, put and delete \
                     its objects",
            login: "check the credential's access key and secret",
        },
    }))
}

fn sign(credentials: AwsCredentialProvider, region: String) -> super::uploads::Sign {
    Box::new(move |mut request| {
        let (credentials, region) = (Arc::clone(&credentials), region.clone());
        Box::pin(async move {
            let credential = credentials.get_credential().await?;
            AwsAuthorizer::new(&credential, "s3", &region).authorize(&mut request, None);
            Ok(request)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_bucket_and_prefix() {
        assert_eq!(s3_directory("s3://b/a/c/").unwrap(), ("b".to_owned(), "a/c".to_owned()));
        assert_eq!(s3_directory("s3://b").unwrap(), ("b".to_owned(), String::new()));
        for wrong in ["b/a", "s3://", "s3:///a", "gs://b"] {
            assert_eq!(s3_directory(wrong).unwrap_err().kind(), ErrorKind::Configuration);
        }
    }
}
