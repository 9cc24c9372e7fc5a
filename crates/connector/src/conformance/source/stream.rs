//! Batches on their way.

use arrow::array::{Array, RecordBatch};
use futures::StreamExt;
use tidelake_model::TableRead;
use tidelake_watermark::Value;

use super::SourceCase;
use crate::conformance::harness::{ensure, ensure_same};
use crate::conformance::subject::{Subject, stamped, tick};
use crate::conformance::{Need, Outcome, Row, SourceFixture};

pub(super) fn cases() -> Vec<SourceCase> {
    let case = SourceCase::new;
    vec![
        case("batches_stay_within_their_bytes", Need::Nothing, |fixture| Box::pin(bytes(fixture))),
        case("a_row_larger_than_a_batch_is_read", Need::Nothing, |fixture| {
            Box::pin(large_row(fixture))
        }),
        case("a_dropped_stream_frees_its_connection", Need::Nothing, |fixture| {
            Box::pin(dropped(fixture))
        }),
    ]
}

fn wide(id: i128, width: usize) -> Row {
    vec![Some(Value::Integer(id)), Some(tick(id)), Some(Value::Text("x".repeat(width)))]
}

/// The bytes of the values themselves, whatever was allocated for them.
fn size(batch: &RecordBatch) -> Outcome<usize> {
    let mut bytes = 0;
    for column in batch.columns() {
        bytes += column.to_data().get_slice_memory_size()?;
    }
    Ok(bytes)
}

async fn bytes(fixture: &dyn SourceFixture) -> Outcome {
    let rows: Vec<_> = (1..=300).map(|id| wide(id, 1_000)).collect();
    let subject = Subject::make(fixture, stamped(fixture, "batches"), &rows).await?;
    let limit = 16 * 1024;
    let read = TableRead { batch_bytes: 16 * 1024, ..subject.whole() };
    let slices = subject.split(&read, 1).await?;
    let (mut count, mut total) = (0, 0);
    for slice in &slices.slices {
        for batch in subject.batches(slice).await? {
            // The row that goes over the limit may be in the batch.
            let before_last = size(&batch.slice(0, batch.num_rows().saturating_sub(1)))?;
            ensure(before_last <= limit, || {
                format!("a batch of {before_last} bytes and a row where {limit} are allowed")
            })?;
            count += 1;
            total += batch.num_rows();
        }
    }
    ensure_same("rows", &total, &300)?;
    ensure(count >= 300 * 1_000 / limit, || format!("only {count} batches"))
}

async fn large_row(fixture: &dyn SourceFixture) -> Outcome {
    let rows = [wide(1, 10), wide(2, 200_000), wide(3, 10)];
    let subject = Subject::make(fixture, stamped(fixture, "large_row"), &rows).await?;
    let read = TableRead { batch_bytes: 1, ..subject.whole() };
    let found = subject.read(&read, 1).await?;
    ensure(found == subject.wanted(&rows)?, || "rows are not those inserted".to_owned())
}

async fn dropped(fixture: &dyn SourceFixture) -> Outcome {
    let rows: Vec<_> = (1..=300).map(|id| wide(id, 1_000)).collect();
    let subject = Subject::make(fixture, stamped(fixture, "dropped_streams"), &rows).await?;
    let read = TableRead { batch_bytes: 4 * 1024, ..subject.whole() };
    for _ in 0..50 {
        let slices = subject.split(&read, 2).await?;
        for slice in &slices.slices {
            let mut reading = subject.source.read(slice).await?;
            // Some of it, then no more.
            if let Some(batch) = reading.batches.next().await {
                batch?;
            }
        }
    }
    let ids: Vec<i128> = (1..=300).collect();
    subject.gives(&read, 2, &ids).await
}
