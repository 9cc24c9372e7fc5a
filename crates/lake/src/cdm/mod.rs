//! Common Data Model metadata.
