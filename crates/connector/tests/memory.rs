//! The memory system passes the suites that every system passes.

// Helpers of tests may stop at the first surprise, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use support::Fixture;
use tidelake_connector::Connector;
use tidelake_connector::conformance::{Outcome, run_publisher_suite, run_source_suite};
use tidelake_connector::memory::MemoryConnector;
use tidelake_model::CredentialInfo;

#[tokio::test]
async fn source_suite() -> Outcome {
    let report = run_source_suite("memory", &Fixture::new()).await;
    assert_eq!(report.passed_over, Vec::<String>::new(), "memory can do everything");
    report.verdict()
}

#[tokio::test]
async fn publisher_suite() -> Outcome {
    run_publisher_suite("memory", &Fixture::new()).await.verdict()
}

#[tokio::test]
async fn the_connector_takes_no_settings() {
    let connector = MemoryConnector::default();
    assert_eq!(connector.name(), "memory");
    let info = |json| CredentialInfo::new(json);
    assert!(connector.source(&info(serde_json::json!({}))).await.is_ok());
    assert!(connector.publisher(&info(serde_json::json!({}))).await.unwrap().is_some());
    assert!(connector.source(&info(serde_json::json!({ "host": "h" }))).await.is_err());
}
