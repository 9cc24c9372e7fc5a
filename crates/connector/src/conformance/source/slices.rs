//! Slices: that they tile, and that they see one snapshot.

use tidelake_model::{Error, ErrorKind, ReadMethod, TableName, TableRead};
use tidelake_watermark::Value;

use super::SourceCase;
use crate::conformance::harness::{Failure, ensure, ensure_same};
use crate::conformance::subject::{Subject, numbered, row, stamped, tick};
use crate::conformance::{Need, Outcome, Row, SourceFixture};
use crate::source::SplitRequest;

pub(super) fn cases() -> Vec<SourceCase> {
    let case = SourceCase::new;
    vec![
        case("slices_tile_at_every_degree", Need::Nothing, |fixture| Box::pin(tile(fixture))),
        case("slices_tile_however_they_are_cut", Need::Nothing, |fixture| {
            Box::pin(methods(fixture))
        }),
        case("an_empty_table_gives_no_rows_and_no_error", Need::Nothing, |fixture| {
            Box::pin(empty(fixture))
        }),
        case("slices_see_one_snapshot", Need::Nothing, |fixture| Box::pin(snapshot(fixture))),
        case("slices_are_read_at_the_same_time", Need::ParallelSlices, |fixture| {
            Box::pin(parallel(fixture))
        }),
        case("a_slice_without_its_snapshot_is_unavailable", Need::ExportedSnapshots, |fixture| {
            Box::pin(lost_snapshot(fixture))
        }),
        case("a_dropped_column_is_an_error_that_names_it", Need::Nothing, |fixture| {
            Box::pin(dropped_column(fixture))
        }),
        case("a_retyped_column_is_an_error_that_names_it", Need::Nothing, |fixture| {
            Box::pin(retyped_column(fixture))
        }),
        case("a_missing_table_is_an_error", Need::Nothing, |fixture| Box::pin(no_table(fixture))),
        case("reads_the_columns_asked_for_in_their_order", Need::Nothing, |fixture| {
            Box::pin(projection(fixture))
        }),
    ]
}

/// Rows on several pages, as systems call what they cut tables by.
fn many() -> (Vec<Row>, Vec<i128>) {
    let wide = |id: i128| -> Row {
        let note = Value::Text(format!("row {id} {}", "x".repeat(400)));
        // Every fifth cursor is NULL, and there are ties.
        let at = (id % 5 != 0).then(|| tick(id / 3));
        vec![Some(Value::Integer(id)), at, Some(note)]
    };
    let ids: Vec<i128> = (1..=200).collect();
    (ids.iter().copied().map(wide).collect(), ids)
}

async fn tile(fixture: &dyn SourceFixture) -> Outcome {
    let (rows, ids) = many();
    let subject = Subject::make(fixture, stamped(fixture, "tiles"), &rows).await?;
    let within = |id: &i128| id % 5 != 0 && (id / 3) > 10 && (id / 3) <= 40;
    let windowed: Vec<_> = ids.iter().copied().filter(within).collect();
    let with_nulls: Vec<_> = ids.iter().copied().filter(|id| within(id) || id % 5 == 0).collect();
    let window = subject.by("changed_at", subject.window(10, 40)?)?;
    let asked = TableRead { null_cursors: true, ..window.clone() };
    let wanted = subject.wanted(&rows)?;
    for degree in [1, 2, 7] {
        let found = subject.read(&subject.whole(), degree).await?;
        ensure(found == wanted, || format!("rows at degree {degree} are not those inserted"))?;
        subject.gives(&window, degree, &windowed).await?;
        subject.gives(&asked, degree, &with_nulls).await?;
    }
    Ok(())
}

async fn methods(fixture: &dyn SourceFixture) -> Outcome {
    let (rows, ids) = many();
    let subject = Subject::make(fixture, stamped(fixture, "methods"), &rows).await?;
    let ways = [
        (ReadMethod::None, None),
        (ReadMethod::Physical, None),
        (ReadMethod::Range, Some("id")),
        // Rows whose key is NULL belong to one of the slices as well.
        (ReadMethod::Range, Some("changed_at")),
    ];
    for (method, key) in ways {
        // Refused in clear words is fine; wrong rows are not.
        let request = SplitRequest {
            read: subject.whole(),
            degree: 3,
            method,
            key: key.map(ToOwned::to_owned),
        };
        let refused = subject.source.split(&request).await.err().map(|error| error.kind());
        if refused == Some(ErrorKind::Unsupported) && method != ReadMethod::None {
            continue;
        }
        let slices = subject.split_by(&request.read, 3, method, key).await?;
        let found = subject.collect(&slices).await?;
        let found: Vec<_> = found.iter().filter_map(crate::conformance::subject::first).collect();
        ensure_same(&format!("ids by {method:?} {key:?}"), &found, &ids)?;
    }
    Ok(())
}

async fn empty(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "empty", &[]).await?;
    for degree in [1, 4] {
        subject.gives(&subject.whole(), degree, &[]).await?;
        let read = subject.by("changed_at", subject.window(1, 3)?)?;
        subject.gives(&TableRead { null_cursors: true, ..read }, degree, &[]).await?;
    }
    Ok(())
}

async fn snapshot(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "snapshot", &[Some(1), Some(2), None]).await?;
    let read = TableRead { null_cursors: true, ..subject.by("changed_at", None)? };
    let slices = subject.split(&read, 3).await?;
    fixture.insert(&subject.spec, &[row(4, 1), row(5, 3), row(6, None)]).await?;
    let found = subject.collect(&slices).await?;
    let ids: Vec<_> = found.iter().filter_map(crate::conformance::subject::first).collect();
    ensure_same("ids of the snapshot", &ids, &vec![1, 2, 3])?;
    // A slice can be read again, and sees the same.
    let found = subject.collect(&slices).await?;
    ensure_same("rows when read again", &found.len(), &3)?;
    drop(slices);
    subject.gives(&read, 3, &[1, 2, 3, 4, 5, 6]).await
}

async fn parallel(fixture: &dyn SourceFixture) -> Outcome {
    let (rows, ids) = many();
    let subject = Subject::make(fixture, stamped(fixture, "parallel"), &rows).await?;
    let slices = subject.split(&subject.whole(), 3).await?;
    let reads = slices.slices.iter().map(|slice| subject.batches(slice));
    let batches = futures::future::try_join_all(reads).await?;
    let count: usize = batches.iter().flatten().map(|batch| batch.num_rows()).sum();
    ensure_same("rows", &count, &ids.len())
}

async fn lost_snapshot(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "lost", &[Some(1), Some(2)]).await?;
    let slices = subject.split(&subject.whole(), 2).await?;
    let kept = slices.slices.clone();
    drop(slices);
    for slice in &kept {
        // The end of a snapshot may take a moment to reach the server.
        let mut tries = 0;
        loop {
            let error = match subject.source.read(slice).await {
                Ok(reading) => {
                    futures::TryStreamExt::try_collect::<Vec<_>>(reading.batches).await.err()
                }
                Err(error) => Some(error),
            };
            match error {
                Some(error) => {
                    ensure_same("kind of error", &error.kind(), &ErrorKind::Unavailable)?;
                    break;
                }
                None if tries < 50 => {
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await
                }
                None => return Err(Failure::new("a slice of a lost snapshot was read")),
            }
            tries += 1;
        }
    }
    Ok(())
}

/// Splits a read whose table changed, or reads it where a split looks at
/// nothing, and returns the error.
async fn failed(subject: &Subject, read: &TableRead) -> Outcome<Error> {
    let request =
        SplitRequest { read: read.clone(), degree: 2, method: ReadMethod::Auto, key: None };
    match subject.source.split(&request).await {
        Err(error) => Ok(error),
        Ok(_) => Err(Failure::new("the split of a changed table succeeded")),
    }
}

fn names(error: &Error, column: &str) -> Outcome {
    ensure_same("kind of error", &error.kind(), &ErrorKind::Data)?;
    let text = error.to_string();
    ensure(text.contains(column), || format!("{text:?} does not name {column:?}"))
}

async fn dropped_column(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "dropped_column", &[Some(1)]).await?;
    let read = subject.by("changed_at", None)?;
    fixture.drop_column(&subject.spec, "note").await?;
    names(&failed(&subject, &read).await?, "note")
}

async fn retyped_column(fixture: &dyn SourceFixture) -> Outcome {
    let mut spec = stamped(fixture, "retyped_column");
    let amount = crate::conformance::ColumnType::Integer;
    spec.columns.push(crate::conformance::ColumnSpec::new("amount", amount));
    let subject = Subject::make(fixture, spec, &[]).await?;
    let read = subject.by("changed_at", None)?;
    fixture.make_text(&subject.spec, "amount").await?;
    names(&failed(&subject, &read).await?, "amount")
}

async fn no_table(fixture: &dyn SourceFixture) -> Outcome {
    let subject = Subject::stamped(fixture, "some_table", &[]).await?;
    let table = TableName::new(fixture.schema(), "no such table");
    let read = TableRead { table, ..subject.whole() };
    let kind = failed(&subject, &read).await?.kind();
    let fits = matches!(kind, ErrorKind::NotFound | ErrorKind::Data);
    ensure(fits, || format!("a missing table is an error of kind {kind:?}"))
}

async fn projection(fixture: &dyn SourceFixture) -> Outcome {
    let rows = numbered(&[Some(2), Some(1)]);
    let subject = Subject::make(fixture, stamped(fixture, "projection"), &rows).await?;
    let column = |name: &str| subject.table.column(name).cloned().into_iter();
    let columns = column("note").chain(column("id")).collect();
    let read = TableRead { columns, ..subject.whole() };
    let slices = subject.split(&read, 1).await?;
    let mut found = subject.collect(&slices).await?;
    found.sort_by_key(|row| format!("{row:?}"));
    let wanted: Vec<Row> = (1..=2)
        .map(|id| vec![Some(Value::Text(format!("row {id}"))), Some(Value::Integer(id))])
        .collect();
    ensure_same("rows", &found, &wanted)
}
