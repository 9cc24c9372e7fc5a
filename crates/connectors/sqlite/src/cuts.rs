//! Where a table is cut into slices: by the numbers of its rows.
//!
//! SQLite does not tell how many rows lie between two numbers without a look at
//! each of their pages. A few short looks tell how dense the numbers are, by which
//! the slices become about equal however sparse the numbers; that the slices tile
//! does not depend on it.

use rusqlite::Connection;
use tidelake_connector::sql::qualified;
use tidelake_model::TableName;

use crate::dialect::Plain;

/// Rows of one look.
const LOOK: u32 = 64;
/// Most looks at a table.
const LOOKS: u32 = 160;
/// A piece is looked into until it is at most this part of a slice.
const FINE: i128 = 16;

/// Row numbers without a known gap.
struct Piece {
    /// A row's number.
    low: i128,
    /// No row of the piece has a higher one.
    high: i128,
    /// That many rows ...
    rows: i128,
    /// ... had numbers so far apart.
    span: i128,
}

impl Piece {
    fn width(&self) -> i128 {
        self.high - self.low + 1
    }

    /// About how many rows it holds.
    fn weight(&self) -> i128 {
        // At most 2^65 times what one look can count.
        (self.width() * self.rows / self.span.max(1)).clamp(1, self.width().max(1))
    }
}

/// What a look from one number upwards finds.
struct Look {
    low: i64,
    high: i64,
    rows: i64,
}

/// The numbers after which the table is cut, at most one less than the parts that
/// are wanted; none where the table is too small.
pub(crate) fn cuts(
    connection: &Connection,
    table: &TableName,
    row_number: &str,
    parts: u32,
) -> rusqlite::Result<Vec<i64>> {
    let from = qualified(&Plain, table);
    // Asked for both at once, SQLite would look at every row.
    let end = |function: &str| -> rusqlite::Result<Option<i64>> {
        let end = format!("SELECT {function}({row_number}) FROM {from} NOT INDEXED");
        connection.query_row(&end, [], |row| row.get(0))
    };
    let (Some(lowest), Some(highest)) = (end("min")?, end("max")?) else { return Ok(vec![]) };
    let mut look = connection.prepare(&format!(
        "SELECT min(number), max(number), count(*) FROM (SELECT {row_number} AS number \
         FROM {from} NOT INDEXED WHERE {row_number} >= ?1 ORDER BY {row_number} LIMIT {LOOK})"
    ))?;
    let mut look = |number: i64| {
        look.query_row([number], |row| {
            let (low, high): (Option<i64>, Option<i64>) = (row.get(0)?, row.get(1)?);
            let rows = row.get(2)?;
            Ok(low.zip(high).map(|(low, high)| Look { low, high, rows }))
        })
    };
    let pieces = pieces(lowest, highest, parts.into(), &mut look)?;
    Ok(shares(&pieces, parts.into()))
}

/// Halves the heaviest piece until all of them are light.
fn pieces<E>(
    lowest: i64,
    highest: i64,
    parts: i128,
    look: &mut impl FnMut(i64) -> Result<Option<Look>, E>,
) -> Result<Vec<Piece>, E> {
    let piece = |found: &Look, high: i128| Piece {
        low: found.low.into(),
        high,
        rows: found.rows.into(),
        span: i128::from(found.high) - i128::from(found.low) + 1,
    };
    let mut pieces: Vec<Piece> =
        look(lowest)?.iter().map(|found| piece(found, highest.into())).collect();
    for _ in 0..LOOKS {
        let total: i128 = pieces.iter().map(Piece::weight).sum();
        let heaviest = pieces.iter_mut().max_by_key(|piece| piece.weight());
        let Some(heaviest) = heaviest else { break };
        if heaviest.width() <= 1 || heaviest.weight() * parts * FINE <= total {
            break;
        }
        let middle = heaviest.low + heaviest.width() / 2;
        let Ok(number) = i64::try_from(middle) else { break };
        let high = std::mem::replace(&mut heaviest.high, middle - 1);
        // Between the middle and the first row above it there is nothing.
        if let Some(found) = look(number)?
            && i128::from(found.low) <= high
        {
            pieces.push(piece(&found, high));
        }
    }
    pieces.sort_by_key(|piece| piece.low);
    Ok(pieces)
}

/// Cuts pieces into parts of about the same weight.
fn shares(pieces: &[Piece], parts: i128) -> Vec<i64> {
    let total: i128 = pieces.iter().map(Piece::weight).sum();
    let last = pieces.last().map_or(i128::MIN, |piece| piece.high);
    let mut cuts: Vec<i64> = vec![];
    let (mut before, mut part) = (0, 1);
    for piece in pieces {
        let weight = piece.weight();
        while part < parts && before + weight >= total * part / parts {
            let rows = total * part / parts - before;
            let cut = piece.low + piece.width() * rows / weight - 1;
            part += 1;
            let Ok(number) = i64::try_from(cut) else { continue };
            if cut < last && cuts.last().is_none_or(|last| *last < number) {
                cuts.push(number);
            }
        }
        before += weight;
    }
    // One below the first row would leave a slice without any.
    let first = pieces.first().map_or(i128::MAX, |piece| piece.low);
    cuts.retain(|cut| i128::from(*cut) >= first);
    cuts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How many of the rows are in each part.
    fn counts(numbers: &[i64], parts: u32) -> (Vec<usize>, u32) {
        let mut looks = 0;
        let mut look = |number: i64| {
            looks += 1;
            let from = numbers.partition_point(|other| *other < number);
            let found: Vec<_> = numbers[from..].iter().take(64).copied().collect();
            Ok::<_, ()>(found.first().map(|low| Look {
                low: *low,
                high: *found.last().unwrap(),
                rows: i64::try_from(found.len()).unwrap(),
            }))
        };
        let (lowest, highest) = (numbers[0], *numbers.last().unwrap());
        let pieces = pieces(lowest, highest, parts.into(), &mut look).unwrap();
        let cuts = shares(&pieces, parts.into());
        assert!(cuts.len() < usize::try_from(parts).unwrap());
        assert!(cuts.is_sorted_by(|left, right| left < right));
        let mut counts = vec![];
        let mut from = 0;
        for cut in cuts {
            let to = numbers.partition_point(|number| *number <= cut);
            counts.push(to - from);
            from = to;
        }
        counts.push(numbers.len() - from);
        (counts, looks)
    }

    fn even(numbers: &[i64], parts: u32) {
        let (counts, looks) = counts(numbers, parts);
        let share = numbers.len() / usize::try_from(parts).unwrap();
        assert_eq!(counts.len(), usize::try_from(parts).unwrap(), "{counts:?}");
        for count in &counts {
            assert!(count.abs_diff(share) <= share / 4, "{counts:?} by {looks} looks");
        }
        assert!(looks <= LOOKS + 1);
    }

    #[test]
    fn parts_are_even_however_sparse_the_numbers() {
        for parts in [2, 3, 8] {
            even(&(1..=100_000).collect::<Vec<_>>(), parts);
            even(&(-50_000..50_000).map(|number| number * 1_000_003).collect::<Vec<_>>(), parts);
            // One number far above all others, and one far below.
            even(&(1..=100_000).chain([i64::MAX]).collect::<Vec<_>>(), parts);
            even(&[i64::MIN].into_iter().chain(1..=100_000).collect::<Vec<_>>(), parts);
            // Two blocks of different density.
            let sparse = (0..50_000).map(|number| 1_000_000_000 + number * 100_000);
            even(&(0..50_000).chain(sparse).collect::<Vec<_>>(), parts);
            // Squares lie further and further apart.
            even(&(1..100_000i64).map(|number| number * number).collect::<Vec<_>>(), parts);
        }
    }

    proptest! {
        #[test]
        fn any_numbers_are_cut(
            numbers in proptest::collection::btree_set(any::<i64>(), 1..200), parts in 1u32..9,
        ) {
            let numbers: Vec<_> = numbers.into_iter().collect();
            let (counts, _) = counts(&numbers, parts);
            prop_assert_eq!(counts.iter().sum::<usize>(), numbers.len());
        }
    }
}
