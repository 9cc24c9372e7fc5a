//! The lake's documents, and the configuration of a sync as it is stored.

use tidelake_lake::fuzzing;
use tidelake_model::SyncConfig;

pub(crate) fn target(bytes: &[u8]) {
    let found = fuzzing::documents(bytes).expect("what was read is printed");
    for (printed, same) in found {
        assert!(same, "another document: {}", String::from_utf8_lossy(&printed));
    }
    let Ok(config) = serde_json::from_slice::<SyncConfig>(bytes) else { return };
    let printed = serde_json::to_vec(&config).expect("what was read is printed");
    assert_eq!(serde_json::from_slice::<SyncConfig>(&printed).ok(), Some(config));
}
