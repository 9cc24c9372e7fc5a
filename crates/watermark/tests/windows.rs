//! The windows of the specification, one by one.

// Helpers of tests may stop at the first surprise, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use tidelake_watermark::*;

fn at(text: &str) -> Position {
    Value::parse(Kind::Timestamp, text).unwrap().into()
}

fn instant(text: &str) -> Value {
    at(text).first().clone()
}

fn number(number: i128) -> Position {
    Value::Integer(number).into()
}

/// `(1, 2]`, `[1, 2)`, `(…, 2]`.
fn shown(range: &Range) -> String {
    let low = range.low.as_ref().map_or_else(
        || "(…".to_owned(),
        |low| format!("{}{}", if low.inclusive { "[" } else { "(" }, low.at),
    );
    let high = range.high.as_ref().map_or_else(
        || "…)".to_owned(),
        |high| format!("{}{}", high.at, if high.inclusive { "]" } else { ")" }),
    );
    format!("{low}, {high}")
}

fn progress(watermark: Option<i128>, max_seen: Option<i128>) -> Progress {
    Progress {
        watermark: watermark.map(number),
        max_seen: max_seen.map(number),
        ..Progress::default()
    }
}

/// Range, gap and whether the watermark stays.
fn planned(progress: &Progress, high: i128) -> (String, Option<String>, bool) {
    let window = Window::plan(progress, &number(high), None).unwrap();
    (shown(&window.range), window.gap.as_ref().map(shown), window.stays)
}

#[test]
fn a_run_at_noon_does_not_take_todays_dates() {
    let today = Value::parse(Kind::Date, "2026-11-30").unwrap();
    let yesterday = Value::parse(Kind::Date, "2026-11-29").unwrap();
    for tick in [Tick::DAY, Tick::of_digits(6)] {
        assert_eq!(clock_high(&today, tick), Some(yesterday.clone()));
    }
}

#[test]
fn the_tick_is_the_columns_own() {
    for (digits, high) in [
        (0, "2026-11-30T11:59:59Z"),
        (3, "2026-11-30T12:00:00.122Z"),
        (6, "2026-11-30T12:00:00.123455Z"),
        (9, "2026-11-30T12:00:00.123456788Z"),
        (12, "2026-11-30T12:00:00.123456788Z"),
    ] {
        let now = instant("2026-11-30T12:00:00.123456789Z");
        assert_eq!(clock_high(&now, Tick::of_digits(digits)), Some(instant(high)), "{digits}");
    }
    // A time column that counts in days, and one before the epoch.
    let noon = instant("1969-12-30T12:00:00Z");
    assert_eq!(clock_high(&noon, Tick::DAY), Some(instant("1969-12-29T00:00:00Z")));
    assert_eq!(clock_high(&Value::Integer(5), Tick::DAY), None);
}

#[test]
fn minimum_first_tick_last() {
    let nanos = |text: &str| match instant(text) {
        Value::Timestamp(nanos) => nanos,
        other => panic!("{other}"),
    };
    let now = nanos("2026-11-30T12:00:00.2Z");
    let fence = Fence::Before(nanos("2026-11-30T11:59:58.7Z"));
    let high = |lag, fence| {
        let trusted = reading(now, lag, fence)?;
        clock_high(&Value::Timestamp(trusted), Tick::of_digits(0)).map(|high| high.to_string())
    };
    let second = 1_000_000_000;
    assert_eq!(high(0, Fence::Open).as_deref(), Some("2026-11-30T11:59:59Z"));
    assert_eq!(high(0, fence).as_deref(), Some("2026-11-30T11:59:57Z"));
    assert_eq!(high(second, fence).as_deref(), Some("2026-11-30T11:59:57Z"));
    assert_eq!(high(60 * second, fence).as_deref(), Some("2026-11-30T11:58:59Z"));
    assert_eq!(high(0, Fence::Closed), None);
}

#[test]
fn the_first_run_is_open_below_or_begins_at_the_first_bound() {
    assert_eq!(planned(&progress(None, None), 9), ("(…, 9]".to_owned(), None, false));
    let first = Progress { first: Some(number(3)), ..Progress::default() };
    assert_eq!(planned(&first, 9), ("(3, 9]".to_owned(), None, false));
    let other = Progress { direction: Direction::Exclusive, ..first };
    assert_eq!(planned(&other, 9), ("[3, 9)".to_owned(), None, false));
    assert_eq!(planned(&other, 2).0, "[3, 2)");
    assert!(Window::plan(&other, &number(2), None).unwrap().is_empty());
}

#[test]
fn a_run_reads_the_gap_in_which_nothing_was_exported() {
    let gap = Some("(5, 8]".to_owned());
    assert_eq!(planned(&progress(Some(8), Some(5)), 12), ("(5, 12]".to_owned(), gap, false));
    // Without a gap there is none.
    assert_eq!(planned(&progress(Some(8), Some(8)), 12), ("(8, 12]".to_owned(), None, false));
    // While nothing was ever exported, low stays the first bound.
    let gap = Some("(…, 8]".to_owned());
    assert_eq!(planned(&progress(Some(8), None), 12), ("(…, 12]".to_owned(), gap, false));
    let first = Progress { first: Some(number(3)), ..progress(Some(8), None) };
    let gap = Some("(3, 8]".to_owned());
    assert_eq!(planned(&first, 12), ("(3, 12]".to_owned(), gap, false));
}

#[test]
fn a_high_below_the_watermark_reads_only_the_gap_and_the_watermark_stays() {
    let stored = progress(Some(8), Some(5));
    let gap = Some("(5, 7]".to_owned());
    assert_eq!(planned(&stored, 7), ("(5, 7]".to_owned(), gap, true));
    let window = Window::plan(&stored, &number(7), None).unwrap();
    let found = Outcome { rows: 1, highest: Some(number(6)) };
    for ceiling in [Ceiling::Clock, Ceiling::Observed] {
        let after = stored.after(&window, &found, ceiling).unwrap();
        assert_eq!(after, progress(Some(8), Some(6)));
    }
    // Below everything that was exported, nothing is read.
    assert!(Window::plan(&stored, &number(4), None).unwrap().is_empty());
}

#[test]
fn the_watermark_moves_by_its_ceiling_and_direction() {
    let found = Outcome { rows: 2, highest: Some(number(6)) };
    let nothing = Outcome::default();
    let inclusive = progress(Some(3), Some(3));
    let exclusive = Progress { direction: Direction::Exclusive, ..inclusive.clone() };
    for (stored, ceiling, outcome, watermark, max_seen) in [
        (&inclusive, Ceiling::Clock, &found, 9, 6),
        (&inclusive, Ceiling::Clock, &nothing, 9, 3),
        (&inclusive, Ceiling::Observed, &found, 6, 6),
        (&inclusive, Ceiling::Observed, &nothing, 3, 3),
        (&exclusive, Ceiling::Clock, &found, 9, 6),
        (&exclusive, Ceiling::Observed, &found, 9, 6),
        (&exclusive, Ceiling::Observed, &nothing, 9, 3),
    ] {
        let window = Window::plan(stored, &number(9), None).unwrap();
        let after = stored.after(&window, outcome, ceiling).unwrap();
        let wanted = Progress {
            watermark: Some(number(watermark)),
            max_seen: Some(number(max_seen)),
            ..stored.clone()
        };
        assert_eq!(after, wanted, "{ceiling:?} {outcome:?}");
    }
}

#[test]
fn the_other_direction_reads_its_own_high_next_time() {
    let stored = Progress { direction: Direction::Exclusive, ..progress(Some(8), Some(5)) };
    let gap = Some("(5, 8)".to_owned());
    assert_eq!(planned(&stored, 12), ("(5, 12)".to_owned(), gap, false));
    // After an edit both values are the same, and that value is still to come.
    let edited = Versioned { version: 1, progress: stored }.edit(1, number(4)).unwrap();
    assert_eq!(planned(&edited.progress, 12), ("[4, 12)".to_owned(), None, false));
    assert_eq!(planned(&edited.progress, 4).0, "[4, 4)");
}

#[test]
fn an_edit_sets_both_values_and_undo_and_reset_treat_both() {
    let stored = Versioned { version: 7, progress: progress(Some(8), Some(5)) };
    let edited = stored.edit(7, number(6)).unwrap();
    assert_eq!(edited.progress, progress(Some(6), Some(6)));
    assert_eq!(planned(&edited.progress, 12), ("(6, 12]".to_owned(), None, false));
    let undone = edited.undo(8, stored.progress.clone()).unwrap();
    assert_eq!(undone.progress, stored.progress);
    assert_eq!(undone.reset(9).unwrap().progress, progress(None, None));
    assert_eq!(stored.reset(6), Err(Refused::Version { expected: 6, stored: 7 }));
}

#[test]
fn a_lookback_lowers_the_read_alone() {
    let stored = Progress {
        watermark: Some(at("2026-11-30T12:00:00Z")),
        max_seen: Some(at("2026-11-30T11:58:00Z")),
        ..Progress::default()
    };
    let hour = Lookback::Nanos(3_600_000_000_000);
    let high = at("2026-11-30T12:10:00Z");
    let window = Window::plan(&stored, &high, Some(&hour)).unwrap();
    assert_eq!(shown(&window.range), "(2026-11-30T10:58:00Z, 2026-11-30T12:10:00Z]");
    let gap = window.gap.as_ref().map(shown);
    assert_eq!(gap.as_deref(), Some("(2026-11-30T11:58:00Z, 2026-11-30T12:00:00Z]"));
    // Only old rows came again: what is stored stays true.
    let again = Outcome { rows: 3, highest: Some(at("2026-11-30T11:00:00Z")) };
    let after = stored.after(&window, &again, Ceiling::Observed).unwrap();
    assert_eq!(after, stored);
}

#[test]
fn a_lookback_of_part_of_a_day_or_number_reads_more_rather_than_less() {
    let day = |text| Position::from(Value::parse(Kind::Date, text).unwrap());
    let stored = Progress { max_seen: Some(day("2026-11-30")), ..Progress::default() };
    let window = |lookback| Window::plan(&stored, &day("2026-12-02"), Some(&lookback)).unwrap();
    assert_eq!(shown(&window(Lookback::Nanos(1)).range), "(2026-11-29, 2026-12-02]");
    let stored = progress(Some(10), Some(10));
    let half = Lookback::Amount(Decimal::parse("0.5").unwrap());
    let window = Window::plan(&stored, &number(12), Some(&half)).unwrap();
    assert_eq!(shown(&window.range), "(9, 12]");
}

#[test]
fn a_lookback_does_not_reach_below_the_first_bound() {
    let back = Lookback::Amount(Decimal::parse("5").unwrap());
    let plan = |progress: &Progress| {
        shown(&Window::plan(progress, &number(20), Some(&back)).unwrap().range)
    };
    let first = Progress { first: Some(number(10)), ..Progress::default() };
    // Nothing was read yet: there is nothing to read again.
    assert_eq!(plan(&first), "(10, 20]");
    let soon = Progress { first: Some(number(10)), ..progress(Some(12), Some(12)) };
    assert_eq!(plan(&soon), "(10, 20]");
    let later = Progress { first: Some(number(10)), ..progress(Some(16), Some(16)) };
    assert_eq!(plan(&later), "(11, 20]");
    let other = Progress { direction: Direction::Exclusive, ..soon };
    assert_eq!(plan(&other), "[10, 20)");
    // An edit below the first bound was meant; the lookback adds nothing to it.
    let below = Progress { first: Some(number(10)), ..progress(Some(4), Some(4)) };
    assert_eq!(plan(&below), "(4, 20]");
}

#[test]
fn a_value_in_the_future_is_held_back() {
    let typo = at("2099-01-01T00:00:00Z");
    let cap = instant("2026-11-30T11:59:59Z");
    let high = observed_high(&typo, Some(&cap), None).unwrap();
    assert_eq!(high, Position::from(cap.clone()));
    let honest = at("2026-11-30T09:00:00Z");
    assert_eq!(observed_high(&honest, Some(&cap), None).unwrap(), honest);
    // A cap of another kind is an error, not a guess.
    assert!(observed_high(&number(1), Some(&cap), None).is_err());
}

#[test]
fn a_safety_gap_holds_numbers_back() {
    let gap = Decimal::parse("10").unwrap();
    assert_eq!(observed_high(&number(100), None, Some(&gap)).unwrap(), number(90));
    let half = Decimal::parse("0.5").unwrap();
    assert_eq!(observed_high(&number(100), None, Some(&half)).unwrap(), number(99));
    let decimal = |text| Position::from(Value::parse(Kind::Number, text).unwrap());
    assert_eq!(observed_high(&decimal("3.14"), None, Some(&half)).unwrap(), decimal("2.64"));
}

#[test]
fn text_is_left_to_the_source() {
    let text = |text: &str| Position::from(Value::Text(text.to_owned()));
    let stored =
        Progress { watermark: Some(text("b")), max_seen: Some(text("b")), ..Progress::default() };
    // "A" may well be above "b" in the source's collation.
    let window = Window::plan(&stored, &text("A"), None).unwrap();
    assert_eq!(shown(&window.range), "(b, A]");
    assert!(!window.stays && !window.is_empty());
    let rows = Outcome { rows: 2, highest: None };
    let after = stored.after(&window, &rows, Ceiling::Observed).unwrap();
    assert_eq!(after.watermark, Some(text("A")));
    assert_eq!(after.max_seen, Some(text("A")));
    let none = stored.after(&window, &Outcome::default(), Ceiling::Observed).unwrap();
    assert_eq!(none, stored);
    // Nothing new: the highest is where the watermark stands.
    assert!(Window::plan(&stored, &text("b"), None).unwrap().is_empty());
}

#[test]
fn kinds_are_not_mixed() {
    let stored = progress(Some(8), Some(8));
    let error = Window::plan(&stored, &at("2026-11-30"), None).unwrap_err();
    assert_eq!(error, CompareError::Kinds(Kind::Integer, Kind::Timestamp));
    let versioned = Versioned { version: 1, progress: stored };
    let to = Progress { watermark: Some(at("2026-11-30")), ..Progress::default() };
    assert!(matches!(versioned.advance(1, to), Err(Refused::Compare(_))));
}
