//! A folder, looked at from beside the storage.

use super::*;

#[tokio::test]
async fn a_folder_without_rights_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), b"").unwrap();
    let storage = local(folder.path().join("file/inside")).unwrap();
    let error = storage.put_new("a", Bytes::from_static(b"x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.hint().unwrap().contains("file/inside"), "{error:?}");
}

#[test]
fn what_the_disk_says_becomes_what_the_user_can_do() {
    let path = Path::new("/lake/t/a.parquet");
    for (kind, expected) in [
        (io::ErrorKind::PermissionDenied, ErrorKind::Denied),
        (io::ErrorKind::ReadOnlyFilesystem, ErrorKind::Denied),
        (io::ErrorKind::StorageFull, ErrorKind::Unavailable),
        (io::ErrorKind::NotADirectory, ErrorKind::Configuration),
    ] {
        let error = failed("write", path)(kind.into());
        assert_eq!(error.kind(), expected);
        assert!(error.hint().unwrap().contains("/lake/t"));
        assert_eq!(error.again(), Again::Never);
    }
}

#[tokio::test]
async fn a_crash_between_link_and_unlink_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let storage = local(folder.path()).unwrap();
    let upload = storage.begin("t/a.parquet").await.unwrap();
    let place = PartPlace { index: 0, offset: 0 };
    let part = storage.put_part(&upload, place, Bytes::from_static(b"abc")).await.unwrap();
    let staged = storage.staged_path(&upload).unwrap();
    fs::hard_link(&staged, folder.path().join("t/a.parquet")).unwrap();
    let object = StagedObject { upload, parts: vec![part], bytes: 3, sha256: String::new() };
    storage.complete(&object).await.unwrap();
    assert!(!staged.exists());
    assert_eq!(storage.list("").await.unwrap(), ["t/a.parquet"]);
}

#[tokio::test]
async fn what_a_crash_left_is_tidied_up_by_the_next_writer() {
    let folder = tempfile::tempdir().unwrap();
    let storage = local(folder.path()).unwrap();
    fs::create_dir(folder.path().join("t")).unwrap();
    for left in ["t/.a.json.tmp", "t/.a.json.lock"] {
        fs::write(folder.path().join(left), b"half").unwrap();
    }
    storage.put_new("t/a.json", Bytes::from_static(b"whole")).await.unwrap();
    let (_, version) = storage.get("t/a.json").await.unwrap().unwrap();
    storage.put_if("t/a.json", Bytes::from_static(b"more"), Some(&version)).await.unwrap();
    assert_eq!(names(&folder.path().join("t")).unwrap(), ["a.json"]);
}

#[tokio::test]
async fn readers_that_list_the_folder_see_no_half_file() {
    let folder = tempfile::tempdir().unwrap();
    let storage = local(folder.path()).unwrap();
    let upload = storage.begin("t/a.parquet").await.unwrap();
    let place = PartPlace { index: 0, offset: 0 };
    let part = storage.put_part(&upload, place, Bytes::from_static(b"abc")).await.unwrap();
    let name = names(&folder.path().join("t")).unwrap().remove(0);
    assert!(name.starts_with('.') && !name.ends_with(".parquet"), "{name}");
    let object = StagedObject { upload, parts: vec![part], bytes: 3, sha256: String::new() };
    storage.complete(&object).await.unwrap();
    assert_eq!(names(&folder.path().join("t")).unwrap(), ["a.parquet"]);
}

#[tokio::test]
async fn a_key_cannot_lead_out() {
    let folder = tempfile::tempdir().unwrap();
    let storage = local(folder.path()).unwrap();
    for key in ["../x", "a/../../x", "a//b", "/etc/x"] {
        assert!(storage.put(key, Bytes::new()).await.is_err(), "{key}");
    }
    assert!(local("relative").is_err());
}
