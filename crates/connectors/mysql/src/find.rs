//! Rows by their keys.

use std::sync::Arc;

use arrow::datatypes::DataType;
use tidelake_connector::sql::{Dialect, qualified, select_from};
use tidelake_connector::{Counters, FindRequest, Reading};
use tidelake_model::{Error, ErrorKind, Result, TableRead};
use tidelake_watermark::{Kind, Value};

use crate::catalogue::{CatalogueColumn, columns, missing};
use crate::decode::DecodePlan;
use crate::dialect::{MysqlDialect, quoted, text_literal};
use crate::pool::Pool;
use crate::snapshot::one;
use crate::split::sent;
use crate::types::{Form, selected};

/// Reads the rows that have these keys, in a snapshot of its own.
pub(crate) async fn find(pool: &Arc<Pool>, request: &FindRequest) -> Result<Reading> {
    // The range and the cursor of the read do not count.
    let read = TableRead { cursor: None, range: None, null_cursors: false, ..request.read.clone() };
    let mut catalogue = pool.get().await?;
    let columns = columns(&mut catalogue, &read.table).await?;
    pool.put(catalogue);
    if columns.is_empty() {
        return Err(missing());
    }
    let finder = Finder { key: &request.key, columns: &columns };
    let condition = finder.condition(&request.values)?;
    let sent = sent(&read, &columns)?;
    let column = |column: &tidelake_model::Column| {
        let place = read.columns.iter().position(|other| other.name() == column.name());
        let form = place.and_then(|place| sent.get(place)).map_or(&Form::Plain, |sent| &sent.form);
        selected(column.name(), form)
    };
    let table = qualified(&MysqlDialect, &read.table);
    let statement = select_from(&MysqlDialect, &table, &read, column, Some(&condition));
    let schema = read.schema();
    let counters = Counters::default();
    let plan = DecodePlan {
        schema: Arc::clone(&schema),
        wires: sent.iter().map(|sent| sent.wire).collect(),
        policies: read.policies,
        batch_bytes: read.batch_bytes,
        cursor: vec![],
        counters: counters.clone(),
    };
    let session = one(pool, &read.table).await?;
    tracing::debug!(table = %read.table, %statement, "looking rows up");
    let back = Arc::clone(pool);
    let batches = session.read(&statement, plan, move |session| back.end(session)).await?;
    Ok(Reading { schema, batches, counters })
}

/// Writes conditions on the key's columns.
struct Finder<'a> {
    key: &'a [String],
    columns: &'a [CatalogueColumn],
}

impl Finder<'_> {
    /// True for the rows that are looked for.
    fn condition(&self, values: &[Vec<Option<String>>]) -> Result<String> {
        let columns: Vec<_> =
            self.key.iter().map(|name| self.column(name)).collect::<Result<_>>()?;
        let mut rows = vec![];
        for values in values.iter().filter(|values| values.len() == columns.len()) {
            let cells = columns.iter().zip(values);
            let cells: Vec<_> = cells
                .map(|(column, value)| cell(column, value.as_deref()))
                .collect::<Result<_>>()?;
            rows.push(format!("({})", cells.join(" AND ")));
        }
        Ok(if rows.is_empty() || columns.is_empty() {
            "false".to_owned()
        } else {
            rows.join(" OR ")
        })
    }

    fn column(&self, name: &str) -> Result<&CatalogueColumn> {
        self.columns.iter().find(|found| found.column.name() == name).ok_or_else(|| {
            let names: Vec<_> = self.columns.iter().map(|found| found.column.name()).collect();
            Error::new(ErrorKind::Configuration, format!("there is no column {name:?}"))
                .with_hint(format!("the columns are: {}", names.join(", ")))
        })
    }
}

/// The server would take `'twelve'` for the number 0, so that what is no value of its
/// column is found here.
fn cell(column: &CatalogueColumn, value: Option<&str>) -> Result<String> {
    let name = column.column.name();
    let quoted = quoted(name);
    let Some(text) = value else { return Ok(format!("{quoted} IS NULL")) };
    let misfit = || {
        Error::new(ErrorKind::Configuration, format!("{text:?} is no value of column {name:?}"))
            .with_hint("give the value as the database itself prints it")
    };
    let literal = match (column.column.cursor.map(|cursor| cursor.kind), &column.carried.data_type)
    {
        (Some(Kind::Text), _) => text_literal(text),
        (Some(Kind::Binary), _) => match Value::parse(Kind::Binary, text) {
            Ok(value) => MysqlDialect.literal(&value),
            Err(_) => MysqlDialect.literal(&Value::Binary(text.as_bytes().to_vec())),
        },
        // A lake that calls the column an instant prints it as one.
        (Some(kind), _) => {
            let bare = text.strip_suffix('Z').filter(|_| kind == Kind::Datetime).unwrap_or(text);
            MysqlDialect.literal(&Value::parse(kind, bare).map_err(|_| misfit())?)
        }
        (None, DataType::Float32 | DataType::Float64) => {
            let number: f64 = text.trim().parse().map_err(|_| misfit())?;
            if !number.is_finite() {
                return Ok("false".to_owned());
            }
            format!("{number:E}")
        }
        (None, DataType::Boolean) => match text {
            "true" | "1" => "1".to_owned(),
            "false" | "0" => "0".to_owned(),
            _ => return Err(misfit()),
        },
        (None, data_type) if data_type.is_integer() => {
            text.trim().parse::<i128>().map_err(|_| misfit())?.to_string()
        }
        (None, _) => text_literal(text),
    };
    Ok(format!("{quoted} = {literal}"))
}
