//! When rows are loaded, and when they are not.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tidelake_model::{ErrorKind, Strategy};

use super::PublisherCase;
use super::target::{Run, Target};
use crate::conformance::harness::{Failure, ensure, ensure_same};
use crate::conformance::{Need, Outcome, PublisherFixture};

pub(super) fn cases() -> Vec<PublisherCase> {
    let case = PublisherCase::new;
    let append = Need::Internal(Strategy::Append);
    vec![
        case("appends_the_rows_of_each_run", append, |fixture| Box::pin(appends(fixture))),
        case("loads_a_run_once_however_often_it_is_asked", append, |fixture| {
            Box::pin(once(fixture))
        }),
        case("loads_a_run_once_when_asked_twice_at_the_same_time", append, |fixture| {
            Box::pin(at_once(fixture))
        }),
        case("a_run_is_known_by_target_and_run", append, |fixture| Box::pin(two_targets(fixture))),
        case("a_count_that_differs_loads_nothing", append, |fixture| Box::pin(mismatch(fixture))),
        case("rows_that_break_off_load_nothing", append, |fixture| Box::pin(breaks(fixture))),
        case("replaces_all_rows_when_asked", append, |fixture| Box::pin(replaces(fixture))),
        case("another_owner_is_refused_unless_it_takes_over", append, |fixture| {
            Box::pin(owners(fixture))
        }),
        case("a_run_without_rows_is_loaded", append, |fixture| Box::pin(no_rows(fixture))),
        case("takes_rows_in_any_number_of_batches", append, |fixture| {
            Box::pin(many_batches(fixture))
        }),
        case("odd_names_work", append, |fixture| Box::pin(odd_names(fixture))),
        case("declares_a_primary_key", append, |fixture| Box::pin(primary_key(fixture))),
        case("upserts_by_the_key", Need::Internal(Strategy::Upsert), |fixture| {
            Box::pin(upserts(fixture))
        }),
    ]
}

pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("note", DataType::Utf8, true),
    ]))
}

pub(super) fn rows(rows: &[(i64, Option<&str>)]) -> Outcome<RecordBatch> {
    let ids: Int64Array = rows.iter().map(|(id, _)| Some(*id)).collect();
    let notes: StringArray = rows.iter().map(|(_, note)| *note).collect();
    Ok(RecordBatch::try_new(schema(), vec![Arc::new(ids), Arc::new(notes)])?)
}

async fn owners(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "owners");
    let ours = rows(&[(1, Some("ours"))])?;
    let theirs = rows(&[(2, Some("theirs"))])?;
    target.loads(&Run::new(1, ours.clone()), 1).await?;
    let other = Run { owner: "another sync", ..Run::new(2, theirs.clone()) };
    match target.load(&other).await {
        Err(error) => ensure_same("kind", &error.kind(), &ErrorKind::Mismatch)?,
        Ok(rows) => return Err(Failure::new(format!("{rows} rows of another were loaded"))),
    }
    let replaces = Run { replaces: true, ..other.clone() };
    ensure(target.load(&replaces).await.is_err(), || "another replaced the rows".into())?;
    target.holds(&schema(), &[ours]).await?;
    target.loads(&Run { takes_over: true, ..replaces }, 1).await?;
    target.holds(&schema(), &[theirs]).await
}

async fn appends(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "appends");
    let first = rows(&[(1, Some("a")), (2, None), (3, Some(""))])?;
    let second = rows(&[(4, Some("it's \\ \"x\"\t\n")), (1, Some("a"))])?;
    let unknown = Run::new(1, first.clone()).id();
    let entry = target.publisher.ledger(&target.table, unknown).await?;
    ensure(entry.is_none(), || "the ledger names a run that was never loaded".to_owned())?;
    target.loads(&Run::new(1, first.clone()), 3).await?;
    target.holds(&schema(), std::slice::from_ref(&first)).await?;
    target.loads(&Run::new(2, second.clone()), 2).await?;
    target.holds(&schema(), &[first, second]).await
}

async fn once(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "once");
    let first = rows(&[(1, Some("a")), (2, None)])?;
    let run = Run::new(1, first.clone());
    target.loads(&run, 2).await?;
    target.loads(&run, 2).await?;
    let replaces = Run { replaces: true, ..run };
    target.loads(&replaces, 2).await?;
    target.holds(&schema(), &[first]).await
}

async fn at_once(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "at_once");
    let before = rows(&[(0, None)])?;
    target.loads(&Run::new(1, before.clone()), 1).await?;
    let batch = rows(&[(1, Some("a")), (2, None)])?;
    let run = Run::new(2, batch.clone());
    let (left, right) = tokio::join!(target.load(&run), target.load(&run));
    // Whoever comes second may be told so, as long as nothing is doubled.
    let loaded: Vec<_> = [left, right].into_iter().flatten().collect();
    ensure(!loaded.is_empty(), || "neither load succeeded".to_owned())?;
    ensure(loaded.iter().all(|rows| *rows == 2), || format!("rows loaded: {loaded:?}"))?;
    target.holds(&schema(), &[before, batch]).await
}

async fn two_targets(fixture: &dyn PublisherFixture) -> Outcome {
    let batch = rows(&[(1, Some("a"))])?;
    for name in ["first_target", "second_target"] {
        let target = Target::new(fixture, name);
        target.loads(&Run::new(1, batch.clone()), 1).await?;
        target.holds(&schema(), std::slice::from_ref(&batch)).await?;
    }
    Ok(())
}

async fn refused(target: &Target<'_>, run: &Run, before: &[RecordBatch]) -> Outcome {
    if let Ok(rows) = target.load(run).await {
        return Err(Failure::new(format!("a load of {rows} rows succeeded that should not")));
    }
    let entry = target.publisher.ledger(&target.table, run.id()).await?;
    ensure(entry.is_none(), || "the ledger names a load that failed".to_owned())?;
    target.holds(&schema(), before).await
}

async fn mismatch(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "mismatch");
    let batch = rows(&[(1, Some("a")), (2, None)])?;
    for claimed in [1, 3] {
        let run = Run { rows: claimed, ..Run::new(1, batch.clone()) };
        refused(&target, &run, &[]).await?;
    }
    target.loads(&Run::new(1, batch.clone()), 2).await?;
    for replaces in [false, true] {
        let run = Run { rows: 1, replaces, ..Run::new(2, batch.clone()) };
        refused(&target, &run, std::slice::from_ref(&batch)).await?;
    }
    Ok(())
}

async fn breaks(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "breaks");
    let batch = rows(&[(1, Some("a")), (2, None)])?;
    let run = Run::new(1, batch.clone());
    refused(&target, &Run { breaks: true, ..run.clone() }, &[]).await?;
    target.loads(&run, 2).await?;
    let next = Run { breaks: true, replaces: true, ..Run::new(2, batch.clone()) };
    refused(&target, &next, &[batch]).await
}

async fn replaces(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "replaces");
    target.loads(&Run::new(1, rows(&[(1, Some("a")), (2, None)])?), 2).await?;
    let batch = rows(&[(7, Some("b"))])?;
    target.loads(&Run { replaces: true, ..Run::new(2, batch.clone()) }, 1).await?;
    target.holds(&schema(), std::slice::from_ref(&batch)).await?;
    let empty = rows(&[])?;
    target.loads(&Run { replaces: true, ..Run::new(3, empty) }, 0).await?;
    target.holds(&schema(), &[]).await
}

async fn no_rows(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "no_rows");
    let run = Run { batches: vec![], ..Run::new(1, rows(&[])?) };
    target.loads(&run, 0).await?;
    target.holds(&schema(), &[]).await?;
    let batch = rows(&[(1, None)])?;
    target.loads(&Run::new(2, batch.clone()), 1).await?;
    target.holds(&schema(), &[batch]).await
}

async fn many_batches(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "many_batches");
    let mut batches = vec![rows(&[])?];
    for id in 0..200 {
        batches.push(rows(&[(id, Some("a")), (id, None)])?);
    }
    let run = Run { batches: batches.clone(), rows: 400, ..Run::new(1, rows(&[])?) };
    target.loads(&run, 400).await?;
    target.holds(&schema(), &batches).await
}

async fn odd_names(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "We\"ird 'Täble'.名:;%_$1--[x]`\\");
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("Sel\"ect.Id:1", DataType::Int64, false),
        Field::new("user", DataType::Utf8, true),
        Field::new("User", DataType::Utf8, true),
        Field::new("\"", DataType::Utf8, true),
    ]));
    let text = |text: &'static str| Arc::new(StringArray::from(vec![text]));
    let id = Arc::new(Int64Array::from(vec![1]));
    let batch = RecordBatch::try_new(schema.clone(), vec![id, text("a"), text("b"), text("c")])?;
    let key = vec!["Sel\"ect.Id:1".to_owned()];
    let run = Run { key, primary_key: true, ..Run::new(1, batch.clone()) };
    target.loads(&run, 1).await?;
    target.holds(&schema, &[batch]).await
}

async fn primary_key(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "primary_key");
    let keyed =
        |run, batch| Run { key: vec!["id".to_owned()], primary_key: true, ..Run::new(run, batch) };
    let first = rows(&[(1, Some("a")), (2, None)])?;
    let second = rows(&[(3, None)])?;
    target.loads(&keyed(1, first.clone()), 2).await?;
    target.loads(&keyed(2, second.clone()), 1).await?;
    target.holds(&schema(), &[first, second]).await
}

async fn upserts(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "upserts");
    let upsert = |run, batch| Run {
        key: vec!["id".to_owned()],
        strategy: Strategy::Upsert,
        ..Run::new(run, batch)
    };
    let first = rows(&[(1, Some("a")), (2, Some("b")), (3, None)])?;
    target.loads(&upsert(1, first.clone()), 3).await?;
    target.holds(&schema(), &[first]).await?;
    let second = upsert(2, rows(&[(2, None), (4, Some("d"))])?);
    target.loads(&second, 2).await?;
    target.loads(&second, 2).await?;
    let wanted = rows(&[(1, Some("a")), (2, None), (3, None), (4, Some("d"))])?;
    target.holds(&schema(), &[wanted]).await?;
    let bad = Run { rows: 5, ..upsert(3, rows(&[(1, None)])?) };
    let failed = target.load(&bad).await.is_err();
    ensure_same("load with a wrong count fails", &failed, &true)
}
