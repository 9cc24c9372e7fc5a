//! How a target's table follows the lake's schema.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tidelake_model::Strategy;

use super::PublisherCase;
use super::loading::{rows, schema};
use super::target::{Run, Target};
use crate::conformance::{Need, Outcome, PublisherFixture};

pub(super) fn cases() -> Vec<PublisherCase> {
    let case = PublisherCase::new;
    let append = Need::Internal(Strategy::Append);
    vec![
        case("takes_a_column_that_comes_later", append, |fixture| Box::pin(new_column(fixture))),
        case("takes_rows_that_lack_a_column", append, |fixture| Box::pin(lost_column(fixture))),
        case("takes_columns_in_another_order", append, |fixture| Box::pin(reordered(fixture))),
        case("widens_the_type_of_a_column", append, |fixture| Box::pin(wider_type(fixture))),
        case("takes_narrower_rows_into_a_wider_column", append, |fixture| {
            Box::pin(narrower_rows(fixture))
        }),
        case("a_replacement_may_have_other_types", append, |fixture| {
            Box::pin(other_types(fixture))
        }),
    ]
}

fn with_more() -> Outcome<(SchemaRef, RecordBatch)> {
    let fields = schema().fields().iter().cloned().collect::<Vec<_>>();
    let more = Arc::new(Field::new("more", DataType::Utf8, true));
    let wider: SchemaRef = Arc::new(Schema::new([fields, vec![more]].concat()));
    let narrow = rows(&[(5, Some("b"))])?;
    let more = Arc::new(StringArray::from(vec!["more"]));
    let columns = narrow.columns().iter().cloned().chain([more as _]).collect();
    let batch = RecordBatch::try_new(wider.clone(), columns)?;
    Ok((wider, batch))
}

async fn new_column(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "new_column");
    let first = rows(&[(1, Some("a"))])?;
    let (wider, second) = with_more()?;
    target.loads(&Run::new(1, first.clone()), 1).await?;
    target.loads(&Run::new(2, second.clone()), 1).await?;
    target.holds(&wider, &[first, second]).await
}

async fn lost_column(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "lost_column");
    let (wider, first) = with_more()?;
    let second = rows(&[(1, Some("a"))])?;
    target.loads(&Run::new(1, first.clone()), 1).await?;
    target.loads(&Run::new(2, second.clone()), 1).await?;
    target.holds(&wider, &[first, second]).await
}

async fn reordered(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "reordered");
    let (wider, first) = with_more()?;
    let second = first.project(&[2, 0, 1])?;
    target.loads(&Run::new(1, first.clone()), 1).await?;
    target.loads(&Run::new(2, second.clone()), 1).await?;
    target.holds(&wider, &[first, second]).await
}

/// One row of numbers in types that can be widened.
fn narrow() -> Outcome<RecordBatch> {
    let price = Decimal128Array::from(vec![12_345]).with_precision_and_scale(10, 2)?;
    numbers([
        Arc::new(Int32Array::from(vec![i32::MAX])),
        Arc::new(Float32Array::from(vec![0.1])),
        Arc::new(price),
        Arc::new(Int64Array::from(vec![1])),
    ])
}

/// One row of the wider types, with values that the others cannot hold.
fn wide() -> Outcome<RecordBatch> {
    let price = |value, precision, scale| {
        Decimal128Array::from(vec![value]).with_precision_and_scale(precision, scale)
    };
    numbers([
        Arc::new(Int64Array::from(vec![i64::MIN])),
        Arc::new(Float64Array::from(vec![0.1])),
        Arc::new(price(-123_456_789_012_345_678, 18, 4)?),
        Arc::new(Int64Array::from(vec![i64::MAX])),
    ])
}

fn numbers(columns: [ArrayRef; 4]) -> Outcome<RecordBatch> {
    let names = ["count", "rate", "price", "id"];
    let fields = names.into_iter().zip(&columns);
    let fields: Vec<_> =
        fields.map(|(name, column)| Field::new(name, column.data_type().clone(), true)).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.to_vec())?)
}

async fn wider_type(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "wider_type");
    let (first, second) = (narrow()?, wide()?);
    target.loads(&Run::new(1, first.clone()), 1).await?;
    target.loads(&Run::new(2, second.clone()), 1).await?;
    target.holds(&second.schema(), &[first, second]).await
}

async fn narrower_rows(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "narrower_rows");
    let (first, second) = (wide()?, narrow()?);
    target.loads(&Run::new(1, first.clone()), 1).await?;
    target.loads(&Run::new(2, second.clone()), 1).await?;
    target.holds(&first.schema(), &[first, second]).await
}

async fn other_types(fixture: &dyn PublisherFixture) -> Outcome {
    let target = Target::new(fixture, "other_types");
    target.loads(&Run::new(1, rows(&[(1, Some("a"))])?), 1).await?;
    let swapped: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Utf8, true),
        Field::new("note", DataType::Int64, true),
    ]));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(StringArray::from(vec!["one"])), Arc::new(Int64Array::from(vec![1]))];
    let batch = RecordBatch::try_new(swapped.clone(), columns)?;
    let run = Run { replaces: true, ..Run::new(2, batch.clone()) };
    target.loads(&run, 1).await?;
    target.holds(&swapped, &[batch]).await
}
