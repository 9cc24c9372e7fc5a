//! Files that are not what their manifests say.

use tidelake_lake::Storage;
use tidelake_sync::verify::{Difference, TableVerification, Verified, VerifyRequest};

use crate::shop::{Opening, Shop};

async fn two_runs() -> Shop {
    let shop = Shop::open(Opening::default()).await;
    for tens in 0..2 {
        shop.sell(tens * 10 + 1..=tens * 10 + 10);
        shop.sync().await;
    }
    shop
}

fn faults(report: &TableVerification) -> Vec<(&str, &str)> {
    let faults = report.file_faults.iter();
    faults.map(|fault| (fault.fault, fault.file.rsplit('/').next().unwrap())).collect()
}

#[tokio::test]
async fn a_file_that_is_gone_is_named_and_so_are_its_rows() {
    let shop = two_runs().await;
    let file = shop.files().await.remove(1);
    shop.storage.delete(&shop.key(&file)).await.unwrap();
    let report = shop.verify().await;
    assert_eq!(faults(&report), [("missing", &*file.key)]);
    assert_eq!(report.counts.missing, 10);
    assert!(report.findings.iter().all(|found| found.class == Difference::Missing));
    let report = shop.repair().await;
    assert_eq!(report.outcome, Verified::Same, "{report:#?}");
    assert_eq!(shop.lake_rows().await.len(), 20);
}

#[tokio::test]
async fn a_file_that_was_cut_or_overwritten_is_named() {
    for (fault, change) in [
        ("length", (|bytes: &mut Vec<u8>| bytes.truncate(100)) as fn(&mut Vec<u8>)),
        ("unreadable", |bytes| bytes.fill(7)),
    ] {
        let shop = two_runs().await;
        let file = shop.files().await.remove(0);
        let key = shop.key(&file);
        let (bytes, _) = shop.storage.get(&key).await.unwrap().unwrap();
        let mut bytes = bytes.to_vec();
        change(&mut bytes);
        shop.storage.put(&key, bytes.into()).await.unwrap();
        let report = shop.verify().await;
        assert_eq!(faults(&report), [(fault, &*file.key)], "{report:#?}");
        assert_eq!(report.counts.missing, 10);
        let report = shop.repair().await;
        assert_eq!(report.outcome, Verified::Same, "{fault}: {report:#?}");
    }
}

#[tokio::test]
async fn a_file_of_other_bytes_and_the_same_rows_is_found_by_its_checksum() {
    let shop = two_runs().await;
    let file = shop.files().await.remove(0);
    let key = shop.key(&file);
    let (bytes, _) = shop.storage.get(&key).await.unwrap().unwrap();
    let mut bytes = bytes.to_vec();
    // The name of the program that wrote it stands near the end.
    let name = b"tidelake";
    let place = bytes.windows(name.len()).rposition(|part| part == name);
    let place = place.unwrap_or_else(|| panic!("the writer's name is in no file"));
    bytes[place] = b'T';
    shop.storage.put(&key, bytes.into()).await.unwrap();
    assert_eq!(shop.verify().await.outcome, Verified::Same);
    let request = VerifyRequest { checksums: true, ..shop.request() };
    let report = shop.verify_as(request.clone()).await;
    assert_eq!(faults(&report), [("checksum", &*file.key)]);
    assert_eq!((report.outcome, report.counts.errors()), (Verified::Differs, 0));
    let report = shop.verify_as(VerifyRequest { repair: true, ..request }).await;
    assert_eq!(report.outcome, Verified::Same, "{report:#?}");
}
