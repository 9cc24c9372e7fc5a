//! What every [`Storage`] must do, as named cases over the trait object.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tidelake_model::{Error, ErrorKind, Result, RunId, StagedObject, UploadPart};

use super::{PartPlace, Storage, check_writable};
use crate::layout::data_key;

/// A storage that nothing else writes to, at the place that the case begins.
pub type Fresh = Arc<dyn Storage>;

type Run = fn(Fresh) -> Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// One thing that a storage must do.
pub struct Case {
    /// What it is.
    pub name: &'static str,
    run: Run,
}

impl Case {
    /// Runs it. What is wrong is told by an error.
    pub async fn run(&self, storage: Fresh) -> Result<()> {
        (self.run)(storage).await
    }
}

/// Every case.
pub fn cases() -> Vec<Case> {
    let case = |name, run| Case { name, run };
    vec![
        case("has_nothing_at_first", |storage| Box::pin(has_nothing_at_first(storage))),
        case("keeps_what_is_put", |storage| Box::pin(keeps_what_is_put(storage))),
        case("creates_only_once", |storage| Box::pin(creates_only_once(storage))),
        case("replaces_only_what_was_read", |storage| Box::pin(replaces_what_was_read(storage))),
        case("lets_one_of_two_writers_win", |storage| Box::pin(lets_one_writer_win(storage))),
        case("gives_ranges", |storage| Box::pin(gives_ranges(storage))),
        case("lists_a_folder_and_no_neighbour", |storage| Box::pin(lists_a_folder(storage))),
        case("takes_awkward_names", |storage| Box::pin(takes_awkward_names(storage))),
        case("hides_an_upload_until_complete", |storage| Box::pin(hides_uploads(storage))),
        case("completes_twice", |storage| Box::pin(completes_twice(storage))),
        case("refuses_to_complete_what_is_gone", |storage| Box::pin(refuses_gone(storage))),
        case("finds_uploads_under_way", |storage| Box::pin(finds_uploads(storage))),
        case("aborts_twice", |storage| Box::pin(aborts_twice(storage))),
        case("keeps_an_object_whose_upload_is_aborted", |storage| {
            Box::pin(keeps_completed(storage))
        }),
        case("joins_parts_in_order", |storage| Box::pin(joins_parts(storage))),
        case("aborts_earlier_attempts_alone", |storage| Box::pin(aborts_attempts(storage))),
        case("deletes_twice", |storage| Box::pin(deletes_twice(storage))),
        case("is_writable_and_left_clean", |storage| Box::pin(is_writable(storage))),
    ]
}

fn check(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::new(ErrorKind::Internal, what)) }
}

fn refused<T>(result: Result<T>, kind: ErrorKind, what: &str) -> Result<()> {
    match result {
        Err(error) if error.kind() == kind => Ok(()),
        Err(error) => {
            let message = format!("{what}: {:?} instead of {kind:?}", error.kind());
            Err(Error::new(ErrorKind::Internal, message).with_source(error))
        }
        Ok(_) => Err(Error::new(ErrorKind::Internal, format!("{what}: not refused"))),
    }
}

fn text(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

async fn content(storage: &Fresh, key: &str) -> Result<Option<Bytes>> {
    Ok(storage.get(key).await?.map(|(bytes, _)| bytes))
}

/// Uploads an object of one part and leaves it staged.
async fn stage(storage: &Fresh, key: &str, bytes: &'static str) -> Result<StagedObject> {
    let upload = storage.begin(key).await?;
    let place = PartPlace { index: 0, offset: 0 };
    let part = storage.put_part(&upload, place, text(bytes)).await?;
    storage.persist(&upload).await?;
    let bytes = bytes.len() as u64;
    Ok(StagedObject { upload, parts: vec![part], bytes, sha256: String::new() })
}

async fn has_nothing_at_first(storage: Fresh) -> Result<()> {
    check(storage.get("t/a").await?.is_none(), "get gives nothing")?;
    check(storage.head("t/a").await?.is_none(), "head gives nothing")?;
    check(storage.list("t").await?.is_empty(), "list gives nothing")?;
    check(storage.list("").await?.is_empty(), "list of the base gives nothing")?;
    refused(storage.range("t/a", 0..1).await, ErrorKind::NotFound, "a range of nothing")
}

async fn keeps_what_is_put(storage: Fresh) -> Result<()> {
    storage.put("t/a", text("one")).await?;
    storage.put("t/a", text("two!")).await?;
    check(content(&storage, "t/a").await? == Some(text("two!")), "the last put counts")?;
    check(storage.head("t/a").await? == Some(4), "head gives the size")
}

async fn creates_only_once(storage: Fresh) -> Result<()> {
    storage.put_new("t/a", text("first")).await?;
    let again = storage.put_new("t/a", text("second")).await;
    refused(again, ErrorKind::AlreadyExists, "a second put_new")?;
    let again = storage.put_if("t/a", text("third"), None).await;
    refused(again, ErrorKind::Conflict, "put_if where nothing may be")?;
    check(content(&storage, "t/a").await? == Some(text("first")), "the first stays")?;
    check(storage.list("").await? == ["t/a"], "nothing else is left behind")
}

async fn replaces_what_was_read(storage: Fresh) -> Result<()> {
    storage.put_if("t/a", text("one"), None).await?;
    let (_, first) = storage.get("t/a").await?.ok_or_else(|| unseen("t/a"))?;
    storage.put_if("t/a", text("two"), Some(&first)).await?;
    let stale = storage.put_if("t/a", text("three"), Some(&first)).await;
    refused(stale, ErrorKind::Conflict, "put_if with an old version")?;
    check(content(&storage, "t/a").await? == Some(text("two")), "the second stays")?;
    let missing = storage.put_if("t/b", text("one"), Some(&first)).await;
    refused(missing, ErrorKind::Conflict, "put_if of what is not there")?;
    check(storage.list("").await? == ["t/a"], "nothing else is left behind")
}

fn unseen(key: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("{key} was written and is not there"))
}

async fn lets_one_writer_win(storage: Fresh) -> Result<()> {
    storage.put("t/latest", text("0")).await?;
    let mut value = 0;
    for _ in 0..5 {
        let (_, version) = storage.get("t/latest").await?.ok_or_else(|| unseen("t/latest"))?;
        let write = |number: u32| {
            let (storage, version) = (Arc::clone(&storage), version.clone());
            async move {
                let bytes = Bytes::from(number.to_string());
                storage.put_if("t/latest", bytes, Some(&version)).await
            }
        };
        let (left, right) = futures::join!(write(value + 1), write(value + 2));
        value = match (left, right) {
            (Ok(()), Err(error)) if error.kind() == ErrorKind::Conflict => value + 1,
            (Err(error), Ok(())) if error.kind() == ErrorKind::Conflict => value + 2,
            (Ok(()), Ok(())) => {
                return Err(Error::new(ErrorKind::Internal, "both writers were told they won"));
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        let stored = content(&storage, "t/latest").await?;
        check(stored == Some(Bytes::from(value.to_string())), "the winner's value is stored")?;
    }
    let create = |number: u32| {
        let storage = Arc::clone(&storage);
        async move { storage.put_new("t/new", Bytes::from(number.to_string())).await.is_ok() }
    };
    let (left, right) = futures::join!(create(1), create(2));
    check(left != right, "one of two creators wins")
}

async fn gives_ranges(storage: Fresh) -> Result<()> {
    storage.put("t/a", text("0123456789")).await?;
    check(storage.range("t/a", 2..5).await? == text("234"), "a range in the middle")?;
    check(storage.range("t/a", 0..10).await? == text("0123456789"), "the whole")?;
    let beyond = storage.range("t/a", 5..12).await;
    check(beyond.is_err(), "a range beyond the end is an error")
}

async fn lists_a_folder(storage: Fresh) -> Result<()> {
    for key in ["t/b", "t/a", "t/deep/c", "t2/a", "x"] {
        storage.put(key, text("x")).await?;
    }
    check(storage.list("t").await? == ["t/a", "t/b", "t/deep/c"], "what is below the folder")?;
    check(storage.list("").await?.len() == 5, "everything")
}

async fn takes_awkward_names(storage: Fresh) -> Result<()> {
    for key in ["a%2Fb/x y/ü+&,;'$@!()", "a%25/%2E%2E/z~", "sch ema/Größe/_tidelake/latest.json"]
    {
        storage.put_new(key, text("x")).await?;
        check(content(&storage, key).await? == Some(text("x")), key)?;
        check(storage.list("").await?.contains(&key.to_owned()), "listed under its own name")?;
        let object = stage(&storage, &format!("{key}.parquet"), "y").await?;
        storage.complete(&object).await?;
        storage.delete(key).await?;
    }
    check(storage.list("").await?.len() == 3, "three objects are left")
}

async fn hides_uploads(storage: Fresh) -> Result<()> {
    let object = stage(&storage, "t/a.parquet", "content").await?;
    check(storage.head("t/a.parquet").await?.is_none(), "staged: head")?;
    check(storage.get("t/a.parquet").await?.is_none(), "staged: get")?;
    check(storage.list("").await?.is_empty(), "staged: list")?;
    storage.complete(&object).await?;
    check(content(&storage, "t/a.parquet").await? == Some(text("content")), "completed: get")?;
    check(storage.list("").await? == ["t/a.parquet"], "completed: list")
}

async fn completes_twice(storage: Fresh) -> Result<()> {
    let object = stage(&storage, "t/a.parquet", "content").await?;
    storage.complete(&object).await?;
    storage.complete(&object).await?;
    check(content(&storage, "t/a.parquet").await? == Some(text("content")), "still there")?;
    let other = StagedObject { bytes: 3, ..object };
    refused(storage.complete(&other).await, ErrorKind::Mismatch, "another size")
}

/// A store may answer that it is broken rather than that the upload is gone; a
/// later attempt ends the same way.
async fn refuses_complete(storage: &Fresh, object: &StagedObject) -> Result<()> {
    match storage.complete(object).await {
        Err(error) if error.kind() == ErrorKind::Unavailable => {}
        completed => refused(completed, ErrorKind::Mismatch, "completing what is gone")?,
    }
    check(storage.head(&object.upload.key).await?.is_none(), "nothing became visible")
}

async fn refuses_gone(storage: Fresh) -> Result<()> {
    let object = stage(&storage, "t/a.parquet", "content").await?;
    if storage.uploads("t").await?.is_none() {
        // Nothing is ever gone by an abort.
        storage.abort(&object.upload).await?;
        let parts = vec![UploadPart { content_id: "0".repeat(32) }];
        return refuses_complete(&storage, &StagedObject { parts, ..object }).await;
    }
    storage.abort(&object.upload).await?;
    refuses_complete(&storage, &object).await?;
    let place = PartPlace { index: 1, offset: 7 };
    let part = storage.put_part(&object.upload, place, text("more")).await;
    check(part.is_err(), "a part of an aborted upload is refused")
}

async fn finds_uploads(storage: Fresh) -> Result<()> {
    let first = stage(&storage, "t/a b&c.parquet", "first").await?;
    let deep = stage(&storage, "t/deep/b.parquet", "second").await?;
    let neighbour = stage(&storage, "t2/a.parquet", "neighbour").await?;
    let done = stage(&storage, "t/done.parquet", "done").await?;
    storage.complete(&done).await?;
    storage.put("t/document.json", text("{}")).await?;
    let Some(mut found) = storage.uploads("t").await? else {
        // It forgets them by itself; to give one up is fine, and does nothing.
        return storage.abort(&first.upload).await;
    };
    found.sort_by(|one, other| one.upload.key.cmp(&other.upload.key));
    let uploads: Vec<_> = found.iter().map(|found| &found.upload).collect();
    check(uploads == [&first.upload, &deep.upload], "those below the folder, and no other")?;
    let now = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    check(found.iter().all(|found| found.initiated.is_none_or(|at| at < now)), "begun earlier")?;
    for found in &found {
        storage.abort(&found.upload).await?;
    }
    check(storage.uploads("t").await? == Some(vec![]), "they are given up")?;
    let all = storage.uploads("").await?.unwrap_or_default();
    let all: Vec<_> = all.iter().map(|found| &found.upload).collect();
    check(all == [&neighbour.upload], "the neighbour is under way")?;
    check(storage.uploads("nowhere").await? == Some(vec![]), "nothing where nothing is")
}

async fn aborts_twice(storage: Fresh) -> Result<()> {
    let object = stage(&storage, "t/a.parquet", "content").await?;
    storage.abort(&object.upload).await?;
    storage.abort(&object.upload).await?;
    check(storage.list("").await?.is_empty(), "nothing is there")?;
    let again = stage(&storage, "t/a.parquet", "second").await?;
    storage.complete(&again).await?;
    check(content(&storage, "t/a.parquet").await? == Some(text("second")), "begun anew")
}

async fn keeps_completed(storage: Fresh) -> Result<()> {
    let object = stage(&storage, "t/a.parquet", "content").await?;
    storage.complete(&object).await?;
    storage.abort(&object.upload).await?;
    check(content(&storage, "t/a.parquet").await? == Some(text("content")), "still there")
}

async fn joins_parts(storage: Fresh) -> Result<()> {
    let upload = storage.begin("t/a.parquet").await?;
    let first = Bytes::from(vec![1; 8 << 20]);
    let second = Bytes::from(vec![2; 100]);
    let place = PartPlace { index: 0, offset: 0 };
    // Once more, as after an answer that was lost.
    storage.put_part(&upload, place, first.clone()).await?;
    let one = storage.put_part(&upload, place, first.clone()).await?;
    let place = PartPlace { index: 1, offset: first.len() as u64 };
    let two = storage.put_part(&upload, place, second.clone()).await?;
    storage.persist(&upload).await?;
    let bytes = (first.len() + second.len()) as u64;
    let object = StagedObject { upload, parts: vec![one, two], bytes, sha256: String::new() };
    storage.complete(&object).await?;
    check(storage.head("t/a.parquet").await? == Some(bytes), "the size")?;
    let end = bytes - 101..bytes;
    let expected = [&[1][..], &second].concat();
    check(storage.range("t/a.parquet", end).await? == expected, "the parts in order")
}

async fn aborts_attempts(storage: Fresh) -> Result<()> {
    let run = RunId::from_number(1);
    let key = |run, attempt| format!("t/{}", data_key(run, attempt, 0, 0));
    let old = stage(&storage, &key(run, 1), "old").await?;
    let current = stage(&storage, &key(run, 2), "current").await?;
    let other = stage(&storage, &key(RunId::from_number(2), 1), "other").await?;
    let aborted = storage.abort_attempts("t", run, 2).await?;
    if aborted == 0 {
        // This storage cannot list uploads; recorded ones are aborted one by one.
        storage.abort(&old.upload).await?;
    } else {
        check(aborted == 1, "one upload was aborted")?;
    }
    if storage.uploads("t").await?.is_some() {
        refuses_complete(&storage, &old).await?;
    }
    storage.complete(&current).await?;
    storage.complete(&other).await?;
    check(storage.abort_attempts("nowhere", run, 2).await? == 0, "no folder, no uploads")
}

async fn deletes_twice(storage: Fresh) -> Result<()> {
    storage.put("t/a", text("x")).await?;
    storage.put("t/ab", text("x")).await?;
    storage.delete("t/a").await?;
    storage.delete("t/a").await?;
    check(storage.list("").await? == ["t/ab"], "only what was named is deleted")
}

async fn is_writable(storage: Fresh) -> Result<()> {
    check_writable(storage.as_ref()).await?;
    check(storage.list("").await?.is_empty(), "nothing is left behind")
}
