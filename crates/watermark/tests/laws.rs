//! The laws of the algebra, for all values and all histories.

// Helpers of tests may stop at the first surprise, as tests may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::cmp::Ordering;

use proptest::prelude::*;
use proptest::sample::Index;
use tidelake_watermark::*;

// ---- Values. ----

const NANOS_PER_DAY: i128 = 86_400_000_000_000;
/// A little less than ten million years, in days.
const DAYS: i64 = 3_652_000_000;

fn days() -> impl Strategy<Value = i64> {
    prop_oneof![-DAYS..DAYS, -800_000i64..3_000_000]
}

fn nanos() -> impl Strategy<Value = i128> {
    let in_day = prop_oneof![
        0..NANOS_PER_DAY,
        (0..NANOS_PER_DAY).prop_map(|nanos| nanos / 1_000_000_000 * 1_000_000_000),
    ];
    (days(), in_day).prop_map(|(day, rest)| i128::from(day) * NANOS_PER_DAY + rest)
}

fn decimal() -> impl Strategy<Value = Decimal> {
    let text = prop_oneof!["-?[0-9]{1,45}", "-?[0-9]{1,30}\\.[0-9]{1,30}", "-?0{1,3}\\.0{1,9}"];
    text.prop_map(|text| Decimal::parse(&text).unwrap())
}

fn text() -> impl Strategy<Value = String> {
    let awkward = prop::collection::vec(prop::sample::select(vec!['\\', ',', 'a', ' ', '|']), 0..8);
    prop_oneof![awkward.prop_map(String::from_iter), any::<String>()]
}

fn value_of(kind: Kind) -> BoxedStrategy<Value> {
    match kind {
        Kind::Date => days().prop_map(Value::Date).boxed(),
        Kind::Datetime => nanos().prop_map(Value::Datetime).boxed(),
        Kind::Timestamp => nanos().prop_map(Value::Timestamp).boxed(),
        Kind::Integer => any::<i128>().prop_map(Value::Integer).boxed(),
        Kind::Number => decimal().prop_map(Value::Number).boxed(),
        Kind::Text => text().prop_map(Value::Text).boxed(),
        Kind::Binary => any::<Vec<u8>>().prop_map(Value::Binary).boxed(),
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL.to_vec())
}

fn value() -> impl Strategy<Value = Value> {
    kind().prop_flat_map(value_of)
}

fn pair() -> impl Strategy<Value = (Value, Value)> {
    kind().prop_flat_map(|kind| (value_of(kind), value_of(kind)))
}

fn reparsed(value: &Value) -> Value {
    Value::parse(value.kind(), &value.to_string()).unwrap()
}

proptest! {
    #[test]
    fn print_then_parse_is_the_identity(value in value()) {
        let read = reparsed(&value);
        prop_assert_eq!(&read, &value);
        // Equal decimals may differ in their zeros; their text does not.
        prop_assert_eq!(read.to_string(), value.to_string());
    }

    #[test]
    fn print_and_parse_keep_the_order((left, right) in pair()) {
        prop_assert_eq!(reparsed(&left).compare(&reparsed(&right)), left.compare(&right));
    }

    #[test]
    fn order_is_total_within_a_kind_and_absent_across((left, right) in pair(), other in value()) {
        match left.compare(&right) {
            Ok(order) => prop_assert_eq!(right.compare(&left), Ok(order.reverse())),
            Err(error) => prop_assert_eq!((error, left.kind()), (CompareError::Text, Kind::Text)),
        }
        prop_assert_eq!(left.compare(&left), Ok(Ordering::Equal));
        if other.kind() != left.kind() {
            let error = CompareError::Kinds(left.kind(), other.kind());
            prop_assert_eq!(left.compare(&other), Err(error));
        }
    }

    #[test]
    fn positions_print_and_parse(values in prop::collection::vec(value(), 1..4)) {
        let position = Position::tuple(values).unwrap();
        let read = Position::parse(&position.kinds(), &position.to_string()).unwrap();
        prop_assert_eq!(read, position);
    }

    #[test]
    fn positions_compare_as_tuples(
        left in prop::collection::vec(-2i128..3, 3),
        right in prop::collection::vec(-2i128..3, 3),
    ) {
        let tuple = |numbers: &[i128]| {
            Position::tuple(numbers.iter().copied().map(Value::Integer)).unwrap()
        };
        let order = tuple(&left).compare(&tuple(&right));
        prop_assert_eq!(order, Ok(left.cmp(&right)));
        let max = tuple(&left).max(&tuple(&right));
        prop_assert_eq!(max, Ok(tuple(&left.clone().max(right.clone()))));
        prop_assert_eq!(tuple(&left).compare(&tuple(&right[..2])), Err(CompareError::Length));
    }

    #[test]
    fn parsing_never_panics_and_what_it_accepts_prints_and_parses(
        kind in kind(),
        text in prop_oneof![
            any::<String>(),
            "[-+0-9TZ:. BCtz]{0,32}",
            "[-+]?[0-9]{3,8}-[0-9]{1,3}-[0-9]{1,3}[T ][0-9:.]{0,20}[-+Z0-9:]{0,7}( BC)?",
            "-?[0-9]{0,50}\\.?[0-9]{0,20}",
            "0[xX][0-9a-fA-F]{0,9}",
        ],
    ) {
        if let Ok(value) = Value::parse(kind, &text) {
            prop_assert_eq!(value.kind(), kind);
            prop_assert_eq!(reparsed(&value), value);
        }
        let _ = Position::parse(&[kind, Kind::Integer], &text);
        let _ = Cursor::parse(&text);
    }

    #[test]
    fn cursors_print_and_parse(
        names in prop::collection::vec(
            "[a-c,|\" é]{1,6}".prop_union(".{1,6}").prop_filter("empty", |name| !name.is_empty()),
            2..4,
        ),
    ) {
        for cursor in [
            Cursor::Single(names[0].clone()),
            Cursor::Composite(names.clone()),
            Cursor::Fallback(names.clone()),
        ] {
            prop_assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        }
    }

    #[test]
    fn nothing_panics_at_the_ends_of_the_numbers(
        count in prop_oneof![Just(i128::MIN), Just(i128::MAX), any::<i128>()],
        day in prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>()],
        lag: u64,
        digits: u32,
    ) {
        let values = [Value::Date(day), Value::Datetime(count), Value::Timestamp(count)];
        let gap = Decimal::parse("0.5").unwrap();
        for value in values.into_iter().chain([Value::Integer(count)]) {
            let _ = value.to_string();
            let _ = clock_high(&value, Tick::of_digits(digits));
            let _ = observed_high(&value.clone().into(), None, Some(&gap));
            let progress = Progress { max_seen: Some(value.clone().into()), ..Progress::default() };
            for lookback in [Lookback::Nanos(lag), Lookback::Amount(gap.clone())] {
                let _ = Window::plan(&progress, &value.clone().into(), Some(&lookback));
            }
        }
        let _ = reading(count, lag, Fence::Before(count));
    }
}

// ---- Decimals are exact. ----

fn small_decimal() -> impl Strategy<Value = (i128, Decimal)> {
    // A count of millionths, and the decimal written with it.
    (-10i128.pow(14)..10i128.pow(14), 0usize..7).prop_map(|(count, digits)| {
        let count = count / 10i128.pow(6 - u32::try_from(digits).unwrap())
            * 10i128.pow(6 - u32::try_from(digits).unwrap());
        let sign = if count < 0 { "-" } else { "" };
        let (whole, part) = (count.abs() / 1_000_000, count.abs() % 1_000_000);
        let fraction = &format!("{part:06}")[..digits];
        let point = if digits == 0 { "" } else { "." };
        (count, Decimal::parse(&format!("{sign}{whole}{point}{fraction}")).unwrap())
    })
}

proptest! {
    #[test]
    fn decimals_behave_as_counts_of_millionths(
        (left_count, left) in small_decimal(),
        (right_count, right) in small_decimal(),
    ) {
        prop_assert_eq!(left.cmp(&right), left_count.cmp(&right_count));
        prop_assert_eq!(left.floor(), Some(left_count.div_euclid(1_000_000)));
        let difference = left.minus(&right);
        let count = left_count - right_count;
        prop_assert_eq!(difference.floor(), Some(count.div_euclid(1_000_000)));
        prop_assert_eq!(difference.cmp(&left), count.cmp(&left_count));
        // What was taken off, taken off the other way round, is back.
        let zero = Decimal::parse("0").unwrap();
        prop_assert_eq!(difference.minus(&zero.minus(&right)), left);
    }

    #[test]
    fn decimals_of_any_length_subtract_to_nothing(number in decimal(), other in decimal()) {
        let zero = Decimal::parse("0").unwrap();
        prop_assert_eq!(number.minus(&number), zero.clone());
        prop_assert_eq!(number.minus(&other), zero.minus(&other.minus(&number)));
    }
}

// ---- Ranges. ----

fn at(number: i128) -> Position {
    Value::Integer(number).into()
}

fn bound() -> impl Strategy<Value = Option<Bound>> {
    let bound = (-12i128..12, any::<bool>())
        .prop_map(|(number, inclusive)| Bound { at: at(number), inclusive });
    prop::option::weighted(0.8, bound)
}

fn range() -> impl Strategy<Value = Range> {
    (bound(), bound()).prop_map(|(low, high)| Range { low, high })
}

fn holds(range: &Range, number: i128) -> bool {
    range.contains(&at(number)).unwrap()
}

/// Every value that the tests here look at, beyond all bounds on both sides.
const PROBES: std::ops::Range<i128> = -40..40;

proptest! {
    #[test]
    fn pieces_tile_the_range(
        range in range(),
        mut cuts in prop::collection::vec(-14i128..14, 0..6),
    ) {
        cuts.sort_unstable();
        let cuts: Vec<_> = cuts.into_iter().map(at).collect();
        let pieces = range.cut(&cuts).unwrap();
        for probe in PROBES {
            let count = pieces.iter().filter(|piece| holds(piece, probe)).count();
            prop_assert_eq!(count, usize::from(holds(&range, probe)), "{} in {:?}", probe, pieces);
        }
    }

    #[test]
    fn a_range_that_is_empty_holds_nothing(range in range()) {
        let any = PROBES.into_iter().any(|probe| holds(&range, probe));
        // Whole numbers lie apart: `(1, 2)` holds none and is not empty.
        prop_assert!(!(range.is_empty().unwrap() && any));
    }
}

// ---- Ceilings. ----

fn fence() -> impl Strategy<Value = Fence> {
    prop_oneof![Just(Fence::Open), nanos().prop_map(Fence::Before), Just(Fence::Closed)]
}

proptest! {
    #[test]
    fn a_lag_or_a_fence_only_lowers(now in nanos(), lag: u64, more: u64, fence in fence()) {
        if let Some(fenced) = reading(now, lag, fence) {
            prop_assert!(fenced <= now);
            prop_assert!(fenced <= reading(now, lag, Fence::Open).unwrap());
            prop_assert!(fenced <= reading(now, 0, fence).unwrap());
            let longer = reading(now, lag.saturating_add(more), fence).unwrap();
            prop_assert!(longer <= fenced);
        } else {
            prop_assert_eq!(fence, Fence::Closed);
        }
    }

    #[test]
    fn the_running_tick_is_never_taken(instant in nanos(), later in nanos(), digits in 0u32..10) {
        let tick = Tick::of_digits(digits);
        let high = |nanos| match clock_high(&Value::Timestamp(nanos), tick) {
            Some(Value::Timestamp(high)) => high,
            other => panic!("{other:?}"),
        };
        // A row that is stamped from now on gets at least the tick that runs.
        let stamp = instant.div_euclid(tick.nanos()) * tick.nanos();
        prop_assert!(high(instant) < stamp);
        prop_assert_eq!(stamp - high(instant), tick.nanos());
        prop_assert!(high(instant.min(later)) <= high(instant.max(later)));
        let naive = clock_high(&Value::Datetime(instant), tick);
        prop_assert_eq!(naive, Some(Value::Datetime(high(instant))));
    }

    #[test]
    fn an_observed_ceiling_is_never_above_what_was_observed(
        highest in -1_000i128..1_000,
        (count, gap) in small_decimal(),
        cap in nanos(),
        stamp in nanos(),
    ) {
        prop_assume!(count >= 0);
        let lowered = observed_high(&at(highest), None, Some(&gap)).unwrap();
        prop_assert!(lowered.compare(&at(highest)).unwrap() != Ordering::Greater);
        let Value::Integer(number) = lowered.first() else { panic!("{lowered}") };
        // At least the gap is kept, and less than one more.
        let kept = (highest - number) * 1_000_000;
        prop_assert!(kept >= count && kept < count + 1_000_000);

        let capped = observed_high(
            &Value::Timestamp(stamp).into(), Some(&Value::Timestamp(cap)), None,
        );
        prop_assert_eq!(capped.unwrap(), Value::Timestamp(stamp.min(cap)).into());
    }
}

// ---- Histories of windows. ----

/// What happens to one watermark.
#[derive(Debug, Clone)]
enum Event {
    /// A run up to `high` that finds its highest row somewhere in its window.
    Run { high: i128, row: Option<Index> },
    /// Somebody sets the watermark.
    Edit(i128),
    /// Everything is forgotten.
    Reset,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (-15i128..15, prop::option::of(any::<Index>()))
            .prop_map(|(high, row)| Event::Run { high, row }),
        1 => (-15i128..15).prop_map(Event::Edit),
        1 => Just(Event::Reset),
    ]
}

fn directions() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Inclusive), Just(Direction::Exclusive)]
}

fn ceilings() -> impl Strategy<Value = Ceiling> {
    prop_oneof![Just(Ceiling::Clock), Just(Ceiling::Observed)]
}

fn number(position: &Position) -> i128 {
    match position.first() {
        Value::Integer(number) => *number,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, ..ProptestConfig::default() })]

    /// No value is left out and none is exported twice, whatever the highs, as
    /// long as nobody edits or resets.
    #[test]
    fn consecutive_windows_tile(
        events in prop::collection::vec(event(), 1..12),
        direction in directions(),
        ceiling in ceilings(),
        first in prop::option::of(-15i128..15),
    ) {
        let progress = Progress { first: first.map(at), direction, ..Progress::default() };
        let mut stored = Versioned { version: 1, progress };
        // Which values some window held, and the highest one that was exported,
        // since the last edit or reset.
        let mut read: Vec<i128> = vec![];
        let mut exported: Option<i128> = None;
        let mut start = first;
        for event in events {
            let before = stored.clone();
            match event {
                Event::Edit(to) => {
                    stored = stored.edit(stored.version, at(to)).unwrap();
                    (read, exported, start) = (vec![], None, Some(to));
                }
                Event::Reset => {
                    stored = stored.reset(stored.version).unwrap();
                    (read, exported, start) = (vec![], None, first);
                }
                Event::Run { high, row } => {
                    let window = Window::plan(&stored.progress, &at(high), None).unwrap();
                    let inside: Vec<_> =
                        PROBES.filter(|probe| holds(&window.range, *probe)).collect();
                    prop_assert!(!window.is_empty() || inside.is_empty());

                    // Nothing that was exported is read again.
                    let again = inside.iter().find(|probe| Some(**probe) <= exported);
                    prop_assert_eq!(again, None, "{:?} after {:?}", window, before);

                    // What is read again lies in the gap, which held no row.
                    let watermark = before.progress.watermark.as_ref().map(number);
                    for probe in inside.iter().filter(|probe| read.contains(probe)) {
                        let below = watermark.is_some_and(|watermark| match direction {
                            Direction::Inclusive => *probe <= watermark,
                            Direction::Exclusive => *probe < watermark,
                        });
                        if below {
                            let gap = window.gap.as_ref().expect("a gap that is read again");
                            prop_assert!(holds(gap, *probe));
                        } else {
                            prop_assert!(ceiling == Ceiling::Observed);
                        }
                    }
                    // A high below the watermark reads nothing above itself.
                    prop_assert_eq!(window.stays, watermark.is_some_and(|mark| high < mark));
                    prop_assert!(inside.iter().all(|probe| *probe <= high));

                    let found = row.filter(|_| !inside.is_empty()).map(|row| *row.get(&inside));
                    let outcome = Outcome {
                        rows: u64::from(found.is_some()),
                        highest: found.map(at),
                    };
                    let next = stored.progress.after(&window, &outcome, ceiling).unwrap();
                    prop_assert_eq!(next.direction, direction);
                    if window.stays {
                        prop_assert_eq!(&next.watermark, &before.progress.watermark);
                    }
                    // Never lower, and never above what the window reached.
                    stored = stored.advance(stored.version, next).unwrap();
                    let after = stored.progress.watermark.as_ref().map(number);
                    prop_assert!(after >= watermark);
                    prop_assert!(after <= watermark.max(Some(high)));
                    let seen = stored.progress.max_seen.as_ref().map(number);
                    prop_assert!(seen <= after, "{:?}", stored);
                    read.extend(inside);
                    exported = exported.max(found);
                }
            }
            prop_assert_eq!(stored.version, before.version + 1);

            // Everything up to the watermark was in some window.
            let Some(watermark) = stored.progress.watermark.as_ref().map(number) else { continue };
            for probe in PROBES {
                let due = match direction {
                    Direction::Inclusive => {
                        start.is_none_or(|start| probe > start) && probe <= watermark
                    }
                    Direction::Exclusive => {
                        start.is_none_or(|start| probe >= start) && probe < watermark
                    }
                };
                prop_assert!(!due || read.contains(&probe), "{} was left out", probe);
            }
        }
    }
}

proptest! {
    #[test]
    fn a_lookback_reads_more_and_changes_nothing_else(
        seen in -10i128..10,
        above in 0i128..5,
        high in -15i128..15,
        first in prop::option::of(-15i128..15),
        back in 0u32..10,
        direction in directions(),
    ) {
        let progress = Progress {
            watermark: Some(at(seen + above)),
            max_seen: Some(at(seen)),
            first: first.map(at),
            direction,
        };
        let amount = Lookback::Amount(Decimal::parse(&back.to_string()).unwrap());
        let plain = Window::plan(&progress, &at(high), None).unwrap();
        let wider = Window::plan(&progress, &at(high), Some(&amount)).unwrap();
        prop_assert_eq!(&wider.gap, &plain.gap);
        prop_assert_eq!((&wider.high, wider.stays), (&plain.high, plain.stays));
        for probe in PROBES {
            prop_assert!(!holds(&plain.range, probe) || holds(&wider.range, probe));
            if holds(&wider.range, probe) && !holds(&plain.range, probe) {
                prop_assert!(probe <= seen && probe >= seen - i128::from(back));
                // Rows below the first bound were never wanted.
                prop_assert!(first.is_none_or(|first| probe >= first));
            }
        }
    }

    #[test]
    fn advancing_never_lowers_and_needs_the_stored_version(
        watermark in prop::option::of(-5i128..5),
        seen in prop::option::of(-5i128..5),
        to_watermark in prop::option::of(-5i128..5),
        to_seen in prop::option::of(-5i128..5),
        version in 1u64..4,
        expected in 1u64..4,
    ) {
        let progress = |watermark: Option<i128>, seen: Option<i128>| Progress {
            watermark: watermark.map(at),
            max_seen: seen.map(at),
            ..Progress::default()
        };
        let stored = Versioned { version, progress: progress(watermark, seen) };
        let to = progress(to_watermark, to_seen);
        let lowers = to_watermark < watermark || to_seen < seen;
        match stored.advance(expected, to.clone()) {
            Ok(next) => {
                prop_assert!(version == expected && !lowers);
                prop_assert_eq!(next, Versioned { version: version + 1, progress: to });
            }
            Err(Refused::Version { expected: told, stored: at }) => {
                prop_assert!(version != expected);
                prop_assert_eq!((told, at), (expected, version));
            }
            Err(Refused::Backwards { .. }) => prop_assert!(version == expected && lowers),
            Err(other) => prop_assert!(false, "{other}"),
        }
        // Only these may lower, and they need the version as well.
        let edited = stored.edit(expected, at(-9));
        prop_assert_eq!(edited.is_ok(), version == expected);
        if let Ok(edited) = edited {
            prop_assert_eq!(&edited.progress, &progress(Some(-9), Some(-9)));
            let undone = edited.undo(edited.version, stored.progress.clone()).unwrap();
            prop_assert_eq!(&undone.progress, &stored.progress);
            prop_assert_eq!(undone.version, version + 2);
        }
        prop_assert_eq!(stored.reset(expected).is_ok(), version == expected);
    }

    #[test]
    fn joining_is_the_maximum_in_any_order(
        slices in prop::collection::vec((0u64..100, prop::option::of(-9i128..9)), 0..6),
        turn: Index,
    ) {
        let outcomes: Vec<_> = slices
            .iter()
            .map(|(rows, highest)| Outcome { rows: *rows, highest: highest.map(at) })
            .collect();
        let join = |outcomes: &[Outcome]| {
            outcomes.iter().try_fold(Outcome::default(), |all, one| all.join(one)).unwrap()
        };
        let all = join(&outcomes);
        prop_assert_eq!(all.rows, slices.iter().map(|(rows, _)| rows).sum::<u64>());
        let highest = slices.iter().filter_map(|(_, highest)| *highest).max();
        prop_assert_eq!(&all.highest, &highest.map(at));
        let mut turned = outcomes.clone();
        turned.rotate_left(if outcomes.is_empty() { 0 } else { turn.index(outcomes.len()) });
        turned.reverse();
        prop_assert_eq!(&join(&turned), &all);
        let (left, right) = outcomes.split_at(outcomes.len() / 2);
        prop_assert_eq!(&join(left).join(&join(right)).unwrap(), &all);
        prop_assert_eq!(all.join(&all).unwrap().highest, all.highest);
    }
}
