//! Uploads that were begun and neither completed nor given up, as the XML protocol
//! of S3 lists them; Google's store speaks it too.

use std::time::SystemTime;

use futures::future::BoxFuture;
use object_store::client::{HttpClient, HttpRequest, HttpRequestBody};
use serde::Deserialize;
use url::Url;

/// Path, upload id and beginning of an upload.
pub(super) type Listed = (String, String, Option<SystemTime>);

/// Signs a request.
pub(super) type Sign =
    Box<dyn Fn(HttpRequest) -> BoxFuture<'static, object_store::Result<HttpRequest>> + Send + Sync>;

/// Lists the uploads of a bucket.
pub(super) struct Listing {
    pub(super) http: HttpClient,
    /// Address of the bucket.
    pub(super) url: Url,
    pub(super) sign: Sign,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    is_truncated: bool,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
    #[serde(default, rename = "Upload")]
    uploads: Vec<Upload>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Upload {
    key: String,
    upload_id: String,
    initiated: Option<String>,
}

impl Listing {
    /// Every upload whose path begins with the prefix.
    pub(super) async fn all(&self, prefix: &str) -> object_store::Result<Vec<Listed>> {
        let (mut found, mut markers) = (vec![], None);
        loop {
            let page = self.page(prefix, markers.as_ref()).await?;
            let more = page.uploads.into_iter().filter(|upload| upload.key.starts_with(prefix));
            found.extend(more.map(|Upload { key, upload_id, initiated }| {
                (key, upload_id, initiated.as_deref().and_then(time))
            }));
            let next = (page.next_key_marker, page.next_upload_id_marker);
            // A store that says that there is more, and not where, would be asked
            // the same for ever.
            if !page.is_truncated || next.0.is_none() || markers.as_ref() == Some(&next) {
                return Ok(found);
            }
            markers = Some(next);
        }
    }

    async fn page(
        &self,
        prefix: &str,
        markers: Option<&(Option<String>, Option<String>)>,
    ) -> object_store::Result<Page> {
        let mut url = self.url.clone();
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("uploads", "");
            if !prefix.is_empty() {
                query.append_pair("prefix", prefix);
            }
            if let Some((key, upload)) = markers {
                query.append_pair("key-marker", key.as_deref().unwrap_or_default());
                if let Some(upload) = upload {
                    query.append_pair("upload-id-marker", upload);
                }
            }
        }
        // A blank is %20 to every store, and a plus only to some.
        if let Some(query) = url.query().map(|query| query.replace('+', "%20")) {
            url.set_query(Some(&query));
        }
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = url.as_str().parse().map_err(failed)?;
        let request = (self.sign)(request).await?;
        let response = self.http.execute(request).await.map_err(failed)?;
        let status = response.status();
        let bytes = response.into_body().bytes().await.map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes);
        if status.is_success() {
            return quick_xml::de::from_str(&text).map_err(failed);
        }
        // The form of the client's own errors.
        let error = format!("status code: {status}: {text}");
        Err(match status.as_u16() {
            403 => object_store::Error::PermissionDenied {
                path: prefix.to_owned(),
                source: error.into(),
            },
            404 => object_store::Error::NotFound { path: prefix.to_owned(), source: error.into() },
            _ => failed_with(error),
        })
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> object_store::Error {
    failed_with(error)
}

fn failed_with(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> object_store::Error {
    object_store::Error::Generic { store: "uploads", source: source.into() }
}

fn time(text: &str) -> Option<SystemTime> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_uploads_is_read() {
        let page = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
            <ListMultipartUploadsResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">
              <Bucket>b</Bucket><KeyMarker/><UploadIdMarker/>
              <NextKeyMarker>t/b &amp; c</NextKeyMarker>
              <NextUploadIdMarker>2</NextUploadIdMarker>
              <MaxUploads>1000</MaxUploads><IsTruncated>true</IsTruncated>
              <Upload><Key>t/a</Key><UploadId>1</UploadId><StorageClass>STANDARD</StorageClass>
                <Initiated>2026-11-30T09:15:00.000Z</Initiated></Upload>
              <Upload><Key>t/b &amp; c</Key><UploadId>2</UploadId></Upload>
            </ListMultipartUploadsResult>";
        let page: Page = quick_xml::de::from_str(page).unwrap();
        assert!(page.is_truncated);
        assert_eq!(page.next_key_marker.as_deref(), Some("t/b & c"));
        let keys: Vec<_> = page.uploads.iter().map(|upload| upload.key.as_str()).collect();
        assert_eq!(keys, ["t/a", "t/b & c"]);
        let initiated = page.uploads[0].initiated.as_deref().and_then(time).unwrap();
        let seconds = initiated.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        assert_eq!(seconds, 1_796_030_100);
        let none = "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>\
                    </ListMultipartUploadsResult>";
        assert!(quick_xml::de::from_str::<Page>(none).unwrap().uploads.is_empty());
    }
}
