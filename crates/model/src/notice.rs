//! Things a user should know that are no errors.

use serde::{Deserialize, Serialize};

/// What a notice is about; stable, for programs.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NoticeCode {
    /// The in-flight fence lowered the window's upper bound.
    FenceLowered,
    /// The in-flight fence let nothing be read.
    FenceClosed,
    /// The fence could not be had; the safety lag alone protects late rows.
    FenceUnavailable,
    /// Rows above the upper bound wait for a later run.
    HeldBack,
    /// Rows whose cursor is NULL.
    NullCursor,
    /// The highest value of the source is below the watermark.
    SourceBehindWatermark,
    /// A type is carried as text.
    TypeAsText,
    /// Values that could not be represented followed a policy.
    ValueChanged,
    /// The cursor column has no index.
    CursorNotIndexed,
    /// An earlier, unfinished run of the table was finished first.
    Recovered,
    /// The run was taken from a holder that is gone.
    LeaseTaken,
    /// A column was added, dropped or changed.
    SchemaChanged,
    /// The connection was lost on the way, and reading went on.
    Retried,
    /// A setting may not do what it seems to.
    Setting,
}

/// A warning or a remark, with its place in the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Notice {
    /// What it is about.
    pub code: NoticeCode,
    /// The sentence to show.
    pub message: String,
}

impl Notice {
    /// A notice with a lowercase sentence without a full stop.
    pub fn new(code: NoticeCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
