//! `--columns` and its like, and the policies for values.

use tidelake_model::{
    InfiniteTime, Policies, Result, SchemaDrift, SpecialNumber, TimestampUnit, ZeroDate,
};
use tidelake_sync::{CastRequest, ColumnRequests, TableColumns};

use crate::args::{
    ColumnArgs, DriftName, InfiniteTimeName, SpecialNumberName, TimestampUnitName, ZeroDateName,
};

/// What was said of single columns.
pub(super) fn requests(args: &ColumnArgs) -> Result<ColumnRequests> {
    let columns = |option: &str, texts: &[String]| -> Result<Vec<TableColumns>> {
        texts.iter().map(|text| TableColumns::parse(option, text)).collect()
    };
    let casts = args.type_cast.iter().map(|text| CastRequest::parse(text));
    let decimals = args.decimal.iter().map(|text| CastRequest::parse_decimal(text));
    Ok(ColumnRequests {
        include: columns("--columns", &args.columns)?,
        exclude: columns("--exclude-columns", &args.exclude_columns)?,
        keys: columns("--key", &args.key)?,
        casts: casts.chain(decimals).collect::<Result<_>>()?,
    })
}

/// What becomes of values that the lake's types cannot hold.
pub(super) fn policies(args: &ColumnArgs) -> Policies {
    Policies {
        special_number: match args.on_special_number {
            SpecialNumberName::Nan => SpecialNumber::Nan,
            SpecialNumberName::Null => SpecialNumber::Null,
            SpecialNumberName::Text => SpecialNumber::Text,
            SpecialNumberName::Fail => SpecialNumber::Fail,
        },
        infinite_time: match args.on_infinite_time {
            InfiniteTimeName::Null => InfiniteTime::Null,
            InfiniteTimeName::Clamp => InfiniteTime::Clamp,
            InfiniteTimeName::Text => InfiniteTime::Text,
            InfiniteTimeName::Fail => InfiniteTime::Fail,
        },
        zero_date: match args.on_zero_date {
            ZeroDateName::Null => ZeroDate::Null,
            ZeroDateName::Text => ZeroDate::Text,
            ZeroDateName::Fail => ZeroDate::Fail,
        },
        timestamp_unit: match args.timestamp_unit {
            TimestampUnitName::Us => TimestampUnit::Us,
            TimestampUnitName::Ns => TimestampUnit::Ns,
        },
    }
}

/// What a changed column means.
pub(super) fn schema_drift(args: &ColumnArgs) -> SchemaDrift {
    match args.on_schema_drift {
        DriftName::Evolve => SchemaDrift::Evolve,
        DriftName::Fail => SchemaDrift::Fail,
        DriftName::Ignore => SchemaDrift::Ignore,
    }
}
