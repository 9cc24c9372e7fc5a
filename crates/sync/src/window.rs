//! Fixing the window: the source's clock, the fence, then what they allow.

use std::cmp::Ordering;
use std::str::FromStr;
use std::time::Duration;

use chrono::{Offset, TimeZone};
use tidelake_connector::{
    Capabilities, ClockReading, ClockRequest, Effort, FencePurpose, Highest, HighestRequest,
    LogPosition, Source,
};
use tidelake_model::{
    Error, ErrorKind, FenceMode, Notice, NoticeCode, NullCursor, Purpose, Result, SyncConfig,
    TableName, WindowRecord, instant_text,
};
use tidelake_watermark::{
    Bound, Ceiling, CompareError, Cursor, Decimal, FENCE_SETBACK_NANOS, Fence, Kind, Lookback,
    Position, Progress, Range, Value, Window, clock_high, observed_high, reading,
};

use crate::cursor::TableCursor;
use crate::primary::clock_of_copy;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// What became of fixing a window.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fixed {
    /// The window; `None` where nothing may or can be read now.
    pub(crate) window: Option<WindowRecord>,
    /// What the user should know.
    pub(crate) notices: Vec<Notice>,
    /// Counts that were cheap, by name.
    pub(crate) counters: Vec<(&'static str, u64)>,
    /// Whether the window was seen to hold no row, after its bounds were fixed.
    pub(crate) is_vacant: bool,
}

/// The window of a table that is read whole.
pub(crate) fn whole() -> WindowRecord {
    WindowRecord {
        range: None,
        gap: None,
        high: None,
        stays: false,
        replaces: true,
        null_cursors: true,
        ceiling: "none".into(),
        fence: None,
        safety_lag: 0,
        version: None,
        progress: Progress::default(),
        purpose: Purpose::Run,
    }
}

/// Fixes windows of one sync against one source.
pub(crate) struct Fixer<'a> {
    /// The settings.
    pub(crate) sync: &'a SyncConfig,
    /// The source.
    pub(crate) source: &'a dyn Source,
    /// The table.
    pub(crate) table: &'a TableName,
    /// Where what is in flight is seen, if not at the source itself.
    pub(crate) primary: Option<&'a dyn Source>,
    /// Its cursor.
    pub(crate) cursor: &'a TableCursor,
    /// Whether this may wait for writers in flight.
    pub(crate) may_wait: bool,
}

impl Fixer<'_> {
    /// Fixes the window above `progress`. `version` is that of the stored
    /// watermark, `replaces` whether the rows replace all that the lake holds.
    pub(crate) async fn fix(
        &self,
        progress: &Progress,
        version: Option<u64>,
        replaces: bool,
    ) -> Result<Fixed> {
        let mut fixed = Fixed { window: None, notices: vec![], counters: vec![], is_vacant: false };
        let purpose = self.purpose(&mut fixed.notices)?;
        let is_time = self.cursor.kind().is_time();
        // For ids the highest committed one is read before the wait, so that a
        // lower id which commits during the wait is seen by the read.
        let mut highest = Highest::default();
        if self.cursor.ceiling == Ceiling::Observed && !is_time {
            highest = self.highest(Effort::Scan, self.cursor.nullable).await?;
            if highest.value == Some(None) {
                return self.nothing(fixed, &highest);
            }
        }
        let clock = self.clock(&purpose).await?;
        fixed.notices.extend(clock.notices.iter().cloned());
        let setback = if purpose == FencePurpose::Time { FENCE_SETBACK_NANOS } else { 0 };
        let lag = self.lag_nanos();
        let Some(instant) = reading(clock.now.saturating_sub(setback), lag, clock.fence) else {
            tracing::debug!(table = %self.table, "the fence is closed, nothing is read");
            return Ok(fixed);
        };
        let high = match self.cursor.ceiling {
            Ceiling::Clock => {
                self.clock_behind(progress, &clock, &mut fixed.notices)?;
                Position::from(self.clock_high(instant, &clock)?)
            }
            Ceiling::Observed => {
                let cap = if is_time { Some(self.clock_high(instant, &clock)?) } else { None };
                if is_time {
                    highest = self.highest(Effort::Scan, self.cursor.nullable).await?;
                }
                let Some(Some(top)) = &highest.value else {
                    return self.nothing(fixed, &highest);
                };
                if let Some(cap) = &cap {
                    self.held_back(top, cap, &mut fixed).await?;
                }
                let gap = self.safety_gap()?;
                observed_high(top, cap.as_ref(), gap.as_ref()).map_err(mixed)?
            }
        };
        let window = Window::plan(progress, &high, self.lookback()?.as_ref()).map_err(mixed)?;
        let is_first = progress.watermark.is_none() && progress.max_seen.is_none();
        let null_cursors = self.cursor.nullable
            && match self.sync.null_cursor {
                NullCursor::First => is_first,
                NullCursor::Include | NullCursor::Fail => true,
                NullCursor::Exclude => false,
            };
        let counts_nulls = self.cursor.nullable && !null_cursors;
        if self.cursor.ceiling == Ceiling::Clock && (self.cursor.indexed || counts_nulls) {
            // Asked after clock and fence, it sees what a snapshot taken now sees.
            highest = self.highest(Effort::Cheap, counts_nulls).await?;
            fixed.is_vacant = !null_cursors && self.is_vacant(&window.range, &highest);
        }
        if counts_nulls {
            self.tell_nulls(highest.nulls, &mut fixed);
        }
        self.tell_unreachable(highest.unreachable, &mut fixed);
        fixed.notices.extend(behind(progress, &highest));
        let fence = match clock.fence {
            Fence::Before(at) => Some(format!("{} ({})", instant_text(at), note(&clock))),
            Fence::Open | Fence::Closed => clock.fence_note.clone(),
        };
        let record = WindowRecord {
            range: Some(window.range),
            gap: window.gap,
            high: Some(window.high),
            stays: window.stays,
            replaces,
            null_cursors,
            ceiling: match self.cursor.ceiling {
                Ceiling::Clock => "clock".into(),
                Ceiling::Observed => "observed".into(),
            },
            fence,
            safety_lag: self.sync.safety_lag,
            version,
            progress: progress.clone(),
            purpose: Purpose::Run,
        };
        tracing::debug!(
            table = %self.table,
            window = describe(&record),
            ceiling = record.ceiling,
            fence = record.fence.as_deref().unwrap_or("none"),
            source_clock = instant_text(clock.now),
            safety_lag = self.sync.safety_lag,
            "window fixed"
        );
        fixed.window = Some(record);
        Ok(fixed)
    }

    /// What the fence is wanted for, given what the source can do.
    fn purpose(&self, notices: &mut Vec<Notice>) -> Result<FencePurpose> {
        let Capabilities { rows_commit_out_of_order, has_fence, .. } = self.source.capabilities();
        if !rows_commit_out_of_order || self.sync.fence.mode == FenceMode::Off {
            return Ok(FencePurpose::None);
        }
        let purpose = match self.cursor.kind() {
            kind if kind.is_time() => FencePurpose::Time,
            Kind::Integer | Kind::Number => FencePurpose::Identifier,
            _ => FencePurpose::None,
        };
        if has_fence && purpose != FencePurpose::None {
            return Ok(purpose);
        }
        let message = format!("no in-flight fence for a cursor of kind {}", self.cursor.kind());
        if self.sync.fence.mode == FenceMode::Require {
            return Err(Error::new(ErrorKind::Unsupported, message)
                .with_hint("set --inflight-fence to auto or off, and choose a safety lag")
                .in_table(self.table));
        }
        notices.push(Notice::new(NoticeCode::FenceUnavailable, message));
        Ok(FencePurpose::None)
    }

    async fn clock(&self, purpose: &FencePurpose) -> Result<ClockReading> {
        let wait = if self.may_wait { self.sync.fence.wait } else { 0 };
        let request = ClockRequest {
            table: self.table.clone(),
            purpose: purpose.clone(),
            mode: self.sync.fence.mode,
            wait: Duration::from_secs(wait),
            ignore_users: self.sync.fence.ignore_users.clone(),
            log: LogPosition::Unasked,
        };
        let reading = match self.primary.filter(|_| *purpose != FencePurpose::None) {
            Some(primary) => clock_of_copy(primary, self.source, request).await,
            None => self.source.clock(&request).await,
        };
        reading.map_err(|error| error.in_table(self.table))
    }

    async fn highest(&self, effort: Effort, count_nulls: bool) -> Result<Highest> {
        let request = HighestRequest {
            table: self.table.clone(),
            cursor: self.cursor.read.clone(),
            effort,
            count: None,
            count_nulls,
        };
        self.source.highest(&request).await.map_err(|error| error.in_table(self.table))
    }

    /// The lag counts for times only, and not under an observed ceiling, whose
    /// cap is the clock without it.
    fn lag_nanos(&self) -> u64 {
        match self.cursor.ceiling {
            Ceiling::Clock => self.sync.safety_lag.saturating_mul(1_000_000_000),
            Ceiling::Observed => 0,
        }
    }

    /// The clock ceiling in the cursor's own kind.
    fn clock_high(&self, instant: i128, clock: &ClockReading) -> Result<Value> {
        let zone = self.sync.cursor_zone.as_deref().unwrap_or(&clock.zone);
        let local = match self.cursor.kind() {
            Kind::Timestamp => Value::Timestamp(instant),
            Kind::Datetime => Value::Datetime(local_nanos(instant, zone)?),
            _ => {
                let days = local_nanos(instant, zone)?.div_euclid(86_400 * NANOS_PER_SECOND);
                Value::Date(i64::try_from(days).unwrap_or(i64::MAX))
            }
        };
        clock_high(&local, self.cursor.tick)
            .ok_or_else(|| Error::new(ErrorKind::Internal, "a clock ceiling for no time"))
    }

    fn lookback(&self) -> Result<Option<Lookback>> {
        let Some(text) = &self.sync.lookback else { return Ok(None) };
        parse_lookback(text, self.cursor.kind()).map(Some)
    }

    fn safety_gap(&self) -> Result<Option<Decimal>> {
        let Some(text) = &self.sync.safety_gap else { return Ok(None) };
        parse_amount(text, "safety gap").map(Some)
    }

    /// No row has a value: nothing is read, and rows without one wait with it.
    fn nothing(&self, mut fixed: Fixed, highest: &Highest) -> Result<Fixed> {
        let some = highest.nulls.is_some_and(|nulls| nulls > 0);
        if some && self.sync.null_cursor == NullCursor::Fail {
            return Err(no_cursor_value());
        }
        if self.cursor.nullable {
            self.tell_nulls(highest.nulls, &mut fixed);
        }
        self.tell_unreachable(highest.unreachable, &mut fixed);
        Ok(fixed)
    }

    /// Tells of a clock that shows less than the watermark, below which new rows
    /// are not read: it was set back, its zone changed or has just left the
    /// summer, or a user set the watermark ahead.
    fn clock_behind(
        &self,
        progress: &Progress,
        clock: &ClockReading,
        notices: &mut Vec<Notice>,
    ) -> Result<()> {
        let Some(watermark) = &progress.watermark else { return Ok(()) };
        let now = self.clock_high(clock.now, clock)?;
        if matches!(now.compare(watermark.first()), Ok(Ordering::Less)) {
            let message = format!(
                "the source's clock shows {now}, which is below the watermark {watermark}: new \
                 rows with lower stamps may not be read; was the clock or its time zone changed?"
            );
            notices.push(Notice::new(NoticeCode::SourceBehindWatermark, message));
        }
        Ok(())
    }

    /// Tells of rows above the source's clock, which wait.
    async fn held_back(&self, top: &Position, cap: &Value, fixed: &mut Fixed) -> Result<()> {
        if !matches!(top.first().compare(cap), Ok(Ordering::Greater)) {
            return Ok(());
        }
        // Of a composite cursor the first column alone says what is above.
        let mut cursor = self.cursor.read.clone();
        if let Cursor::Composite(names) = &cursor.cursor
            && let Some(first) = names.first()
        {
            cursor.cursor = Cursor::Single(first.clone());
            cursor.kinds.truncate(1);
        }
        let low = Some(Bound { at: cap.clone().into(), inclusive: false });
        let request = HighestRequest {
            table: self.table.clone(),
            cursor,
            effort: Effort::Cheap,
            count: Some(Range { low, high: None }),
            count_nulls: false,
        };
        let found = self.source.highest(&request).await;
        let rows = match found.map_err(|error| error.in_table(self.table))?.rows {
            Some(rows) => {
                fixed.counters.push(("held_back", rows));
                format!("{rows} rows")
            }
            None => "rows (not counted)".to_owned(),
        };
        let message =
            format!("{rows} are above the source's clock, up to {top}, and are held back");
        fixed.notices.push(Notice::new(NoticeCode::HeldBack, message));
        Ok(())
    }

    /// Whether the highest value says that no row lies in the range. Text is
    /// compared by the source alone, and where times have more digits than we keep,
    /// a row may lie between two of our values.
    fn is_vacant(&self, range: &Range, highest: &Highest) -> bool {
        let is_exact = !self.source.capabilities().open_time_digits;
        let is_single = matches!(self.cursor.read.cursor, Cursor::Single(_));
        let (Some(low), Some(top)) = (&range.low, &highest.value) else { return false };
        if !is_exact || !is_single || self.cursor.kind() == Kind::Text {
            return false;
        }
        let Some(top) = top else { return true };
        match top.compare(&low.at) {
            Ok(Ordering::Less) => true,
            Ok(Ordering::Equal) => !low.inclusive,
            Ok(Ordering::Greater) | Err(_) => false,
        }
    }

    fn tell_unreachable(&self, rows: Option<u64>, fixed: &mut Fixed) {
        let Some(rows) = rows.filter(|rows| *rows > 0) else { return };
        fixed.counters.push(("unreachable_cursors", rows));
        let message = format!(
            "{rows} row(s) have NaN or infinity in {}, which no window reaches: they are not \
             read until they have another value",
            self.cursor.settings.cursor
        );
        fixed.notices.push(Notice::new(NoticeCode::NullCursor, message));
    }

    fn tell_nulls(&self, nulls: Option<u64>, fixed: &mut Fixed) {
        let cursor = &self.cursor.settings.cursor;
        let message = match nulls {
            Some(0) => return,
            Some(nulls) => {
                fixed.counters.push(("null_cursors", nulls));
                format!("{nulls} rows have no value in {cursor}")
            }
            None => format!(
                "rows without a value in {cursor} were not counted, since no index gives them"
            ),
        };
        fixed.notices.push(Notice::new(NoticeCode::NullCursor, message));
    }
}

/// The error of `--null-cursor fail`.
pub(crate) fn no_cursor_value() -> Error {
    Error::new(ErrorKind::Data, "a row has no value in the cursor column")
        .with_hint("set --null-cursor to first, include or exclude, or fill the column")
}

fn note(clock: &ClockReading) -> &str {
    clock.fence_note.as_deref().unwrap_or("in flight")
}

/// Tells of a source whose highest value is below what was exported.
fn behind(progress: &Progress, highest: &Highest) -> Option<Notice> {
    let (Some(seen), Some(Some(top))) = (&progress.max_seen, &highest.value) else { return None };
    if !matches!(top.compare(seen), Ok(Ordering::Less)) {
        return None;
    }
    let message = format!(
        "the source's highest value {top} is below {seen}, which was exported before; was it \
         restored or truncated?"
    );
    Some(Notice::new(NoticeCode::SourceBehindWatermark, message))
}

/// The error for a watermark that cannot be compared with the cursor's values.
pub(crate) fn mixed(error: CompareError) -> Error {
    Error::new(ErrorKind::Data, "the stored watermark does not fit the cursor")
        .with_source(error)
        .with_hint("reset the watermark, or make the sync anew")
}

/// An instant as naive nanoseconds of a zone's wall clock.
fn local_nanos(instant: i128, zone: &str) -> Result<i128> {
    let unknown = || {
        let hint = match nearest_zone(zone) {
            Some(near) => format!("did you mean --cursor-zone {near}?"),
            None => "name the zone of the cursor with --cursor-zone, for example Europe/Berlin"
                .to_owned(),
        };
        Error::new(ErrorKind::Configuration, format!("the time zone {zone:?} is not known"))
            .with_hint(hint)
    };
    if let Some(ahead) = distance_from_utc(zone) {
        return Ok(instant + i128::from(ahead) * NANOS_PER_SECOND);
    }
    let zone = chrono_tz::Tz::from_str(zone).map_err(|_| unknown())?;
    let seconds = i64::try_from(instant.div_euclid(NANOS_PER_SECOND)).map_err(|_| unknown())?;
    let utc = chrono::DateTime::from_timestamp(seconds, 0).ok_or_else(unknown)?;
    let offset = zone.offset_from_utc_datetime(&utc.naive_utc()).fix().local_minus_utc();
    Ok(instant + i128::from(offset) * NANOS_PER_SECOND)
}

/// Seconds by which a zone without a name, such as `+05:30`, is ahead of UTC.
fn distance_from_utc(zone: &str) -> Option<i64> {
    let ahead = zone.starts_with('+');
    let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
    let number = |digits: &str, below: i64| {
        let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 = digits.parse().ok()?;
        (is_number && number < below).then_some(number)
    };
    let seconds = number(hours, 15)? * 3_600 + number(minutes, 60)? * 60;
    Some(if ahead { seconds } else { -seconds })
}

/// The zone that was most likely meant: the same name in other letters, the same
/// city, or nearly the same name.
fn nearest_zone(typed: &str) -> Option<&'static str> {
    let typed = typed.trim().to_ascii_lowercase().replace(' ', "_");
    let names = || chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
    let same = names().find(|name| name.eq_ignore_ascii_case(&typed));
    let city = || {
        names().find(|name| {
            name.rsplit_once('/').is_some_and(|(_, city)| city.eq_ignore_ascii_case(&typed))
        })
    };
    let near = || {
        names()
            .map(|name| (strsim::damerau_levenshtein(&name.to_ascii_lowercase(), &typed), name))
            .filter(|(distance, _)| *distance <= 2)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, name)| name)
    };
    same.or_else(city).or_else(near)
}

/// Whether a zone's name is known.
pub(crate) fn check_zone(zone: &str) -> Result<()> {
    local_nanos(0, zone).map(|_| ())
}

/// A lookback: whole seconds for times, an amount for numbers.
pub(crate) fn parse_lookback(text: &str, kind: Kind) -> Result<Lookback> {
    if kind.is_time() {
        let seconds: u64 = text.parse().map_err(|_| {
            Error::new(
                ErrorKind::Configuration,
                format!("the lookback {text:?} is no number of seconds"),
            )
            .with_hint("give whole seconds, for example --lookback 3600")
        })?;
        return Ok(Lookback::Nanos(seconds.saturating_mul(1_000_000_000)));
    }
    if !matches!(kind, Kind::Integer | Kind::Number) {
        return Err(Error::new(
            ErrorKind::Configuration,
            format!("a cursor of kind {kind} cannot look back"),
        )
        .with_hint("leave --lookback out"));
    }
    parse_amount(text, "lookback").map(Lookback::Amount)
}

/// An amount that is not negative.
pub(crate) fn parse_amount(text: &str, what: &str) -> Result<Decimal> {
    Decimal::parse(text).filter(|_| !text.starts_with('-')).ok_or_else(|| {
        Error::new(ErrorKind::Configuration, format!("the {what} {text:?} is no number"))
            .with_hint("give a number of 0 or more")
    })
}

/// A window in words: `(low, high]`, and its gap.
pub(crate) fn describe(window: &WindowRecord) -> String {
    let Some(range) = &window.range else { return "every row".to_owned() };
    let mut text = describe_range(range);
    if let Some(gap) = &window.gap {
        text.push_str(&format!(" of which {} is a gap read again", describe_range(gap)));
    }
    if window.null_cursors {
        text.push_str(" and rows without a value");
    }
    text
}

pub(crate) fn describe_range(range: &Range) -> String {
    let low = match &range.low {
        None => "(…".to_owned(),
        Some(Bound { at, inclusive: true }) => format!("[{at}"),
        Some(Bound { at, inclusive: false }) => format!("({at}"),
    };
    match &range.high {
        None => format!("{low}, …)"),
        Some(Bound { at, inclusive: true }) => format!("{low}, {at}]"),
        Some(Bound { at, inclusive: false }) => format!("{low}, {at})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_may_be_a_distance_from_utc() {
        let hours = |zone: &str| local_nanos(0, zone).unwrap() / NANOS_PER_SECOND;
        assert_eq!(hours("+05:30"), 19_800);
        assert_eq!(hours("-03:30"), -12_600);
        assert_eq!(hours("Asia/Kolkata"), 19_800);
        for zone in ["+5:30", "05:30", "+05:60", "+15:00", "+05:3a", "+-5:30", "+05", ""] {
            assert!(local_nanos(0, zone).is_err(), "{zone}");
        }
    }
}
