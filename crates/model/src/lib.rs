//! The nouns of tidelake as plain, serialisable data.
//!
//! Nothing here has behaviour beyond being made, printed and read back: a slice
//! is data and never a live handle, so that any engine can carry it.

mod credential;
mod error;
mod lease;
mod manifest;
mod notice;
mod read;
mod run;
mod sync;
mod table;
mod text;
mod watermark;

pub use credential::{CredentialInfo, Secret};
pub use error::{Again, Error, ErrorKind, Result};
pub use lease::{Head, HeldLease, Holder, TableKey};
pub use manifest::{
    DataFile, Latest, LiveManifest, MANIFEST_FORMAT, Manifest, ManifestWindow, Owner,
    PendingCommit, ReplacedGeneration, StagedObject, TakenOut, UploadPart, UploadRef,
};
pub use notice::{Notice, NoticeCode};
pub use read::{
    CursorRead, InfiniteTime, Policies, Slice, SpecialNumber, TableRead, TimestampUnit, ZeroDate,
};
pub use run::{
    BackfillPiece, Purpose, RunId, RunRecord, RunStatus, Step, TableRun, TableRunStatus,
    WindowRecord,
};
pub use sync::{
    ColumnCast, ColumnSelection, Compression, DeclaredKey, ErrorAction, FenceMode, FenceSettings,
    IncrementalTable, MetadataSettings, NullCursor, PublishMethod, PublishSettings, ReadMethod,
    SchemaDrift, SourceSettings, Strategy, SyncConfig, TableReadSettings, TargetLocation,
    TargetSettings,
};
pub use table::{Column, CursorType, Table, TableKind, TableName};
pub use text::{cursor_text, instant_text, position_text, progress_text, range_text};
pub use watermark::{Actor, Change, HistoryRow, WatermarkFilter, WatermarkRecord};
