//! `watermarks`: show and change how far tables were read.

use clap::{Args, Subcommand};

use super::whole;

/// What to do with watermarks.
#[derive(Debug, Subcommand)]
pub(crate) enum WatermarksCommand {
    /// List watermarks
    List(SelectArgs),
    /// Show one watermark
    Get(SelectArgs),
    /// Set a value; says what the next run will replace in the lake
    Set(SetArgs),
    /// Forget the value: the next run reads everything and replaces what is there
    Reset(EditArgs),
    /// Delete a watermark with its history
    Delete(SelectArgs),
    /// Show every change of a watermark, newest first
    History(SelectArgs),
    /// Put back the value before the last change
    Undo(EditArgs),
}

/// Which watermarks.
#[derive(Debug, Clone, Args)]
pub(crate) struct SelectArgs {
    /// Of this sync
    #[arg(long, value_name = "ID")]
    pub(crate) sync_id: Option<String>,

    /// Of this table, schema.table as the catalogue spells it
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,

    /// Of sources of this type
    #[arg(long, value_name = "TYPE")]
    pub(crate) connector_type: Option<String>,

    /// Of this source, the id of its credential
    #[arg(long, value_name = "KEY")]
    pub(crate) source_key: Option<String>,
}

/// A change.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,

    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// A new value.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The value: everything up to it counts as read
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    #[arg(required_unless_present = "value_option", conflicts_with = "value_option")]
    pub(crate) value: Option<String>,

    /// The value, as an option
    #[arg(long = "value", value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) value_option: Option<String>,

    /// Refuse unless this is still the stored version
    #[arg(long, value_name = "VERSION", value_parser = whole::<u64>)]
    pub(crate) expected_version: Option<u64>,

    #[command(flatten)]
    pub(crate) edit: EditArgs,
}
