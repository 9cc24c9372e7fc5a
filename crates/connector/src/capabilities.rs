//! What a source can do, as data.

/// What a source can do. The application asks this record, never a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether rows can become visible after a row with a higher cursor value
    /// did. Where writers are serialised this is false, and no fence is needed.
    pub rows_commit_out_of_order: bool,
    /// Whether [`Source::clock`](crate::Source::clock) can see transactions in
    /// flight and so give a fence.
    pub has_fence: bool,
    /// Whether several slices can be read at once, all in one snapshot.
    pub parallel_slices: bool,
    /// Whether a composite cursor can be read.
    pub composite_cursor: bool,
    /// Whether a fallback cursor can be read.
    pub fallback_cursor: bool,
    /// Whether several schemas exist.
    pub schemas: bool,
    /// Whether any column of times may hold more digits after the second than
    /// microseconds, whatever it declares: a sync that asks for nanoseconds then
    /// means all of them.
    pub open_time_digits: bool,
    /// Whether a column of floats can be read as decimals, each exactly the one that
    /// it was made from, or an error.
    pub decimals_of_floats: bool,
    /// Whether the stored bytes of a text can be read, whatever they are: the way to
    /// carry texts that are none in their own character set.
    pub bytes_of_texts: bool,
}
