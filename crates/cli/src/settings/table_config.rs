//! `--fastbcp-table-config`: how single tables are cut into slices.
//!
//! `[schema.]table:method:key:degree`, joined by semicolons. Names may stand in
//! double quotes, with `""` for a quote.

use tidelake_model::{Error, ReadMethod, Result, TableReadSettings};

use super::{configuration, not_available};

/// Parses the whole option.
pub(super) fn parse(text: &str) -> Result<Vec<TableReadSettings>> {
    let entries = split(text, ';');
    entries.into_iter().map(str::trim).filter(|entry| !entry.is_empty()).map(entry).collect()
}

fn entry(text: &str) -> Result<TableReadSettings> {
    let wrong = |what: &str| {
        configuration(format!("table configuration {text:?}: {what}")).with_hint(
            "write [schema.]table:method:key:degree, joined by semicolons, for example \
             sales.orders:RangeId:id:4;sales.events:Ctid::2",
        )
    };
    let fields = split(text, ':');
    let mut fields = fields.into_iter().map(str::trim);
    let table = fields.next().unwrap_or_default();
    let method_name = fields.next().ok_or_else(|| wrong("the method is missing"))?;
    let key = fields.next().unwrap_or_default();
    let degree = fields.next().unwrap_or_default();
    if fields.next().is_some() {
        return Err(wrong("there are more than four parts"));
    }
    let names: Option<Vec<_>> = split(table, '.').into_iter().map(name).collect();
    let (schema, table) = match names.as_deref() {
        Some([table]) => (None, table.clone()),
        Some([schema, table]) => (Some(schema.clone()), table.clone()),
        _ => return Err(wrong("the table's name is not valid")),
    };
    let method = method(method_name, wrong)?;
    let key = match key {
        "" => None,
        key => Some(name(key).ok_or_else(|| wrong("the key is not a name"))?),
    };
    if method == ReadMethod::Range && key.is_none() {
        return Err(wrong(&format!("the method {method_name} needs a key")));
    }
    let degree = match degree {
        "" => None,
        degree => match degree.parse() {
            Ok(0) => None,
            Ok(degree) => Some(degree),
            Err(_) => return Err(wrong("the degree is not a whole number from 0")),
        },
    };
    Ok(TableReadSettings { schema, table, method, key, degree })
}

fn method(name: &str, wrong: impl Fn(&str) -> Error) -> Result<ReadMethod> {
    const NAMES: &str = "None, Ctid, Physloc, Rowid, RangeId, Ntile";
    match name.to_ascii_lowercase().as_str() {
        "" | "auto" => Ok(ReadMethod::Auto),
        "none" => Ok(ReadMethod::None),
        "ctid" | "physloc" | "rowid" => Ok(ReadMethod::Physical),
        "rangeid" | "ntile" => Ok(ReadMethod::Range),
        "random" | "datadriven" | "timepartition" | "nzdataslice" => {
            Err(not_available(&format!("the method {name}"))
                .with_hint(format!("available methods: {NAMES}; or leave it empty")))
        }
        _ => Err(wrong(&format!("there is no method {name:?}, only {NAMES}"))),
    }
}

/// Splits at separators outside double quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut quoted = false;
    text.split(|character| {
        quoted ^= character == '"';
        !quoted && character == separator
    })
    .collect()
}

/// A plain name, or one in double quotes.
fn name(text: &str) -> Option<String> {
    let name = match text.strip_prefix('"') {
        None => text.to_owned(),
        Some(rest) => rest.strip_suffix('"')?.replace("\"\"", "\""),
    };
    let plain = text.starts_with('"') || !text.contains('"');
    (plain && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_read() {
        let parsed = parse("sales.orders:RangeId:id:4; events:Ctid::2;tiny:None").unwrap();
        let [orders, events, tiny] = parsed.as_slice() else { panic!("{parsed:?}") };
        assert_eq!(orders.schema.as_deref(), Some("sales"));
        assert_eq!(orders.table, "orders");
        assert_eq!(orders.method, ReadMethod::Range);
        assert_eq!(orders.key.as_deref(), Some("id"));
        assert_eq!(orders.degree, Some(4));
        assert_eq!((events.method, events.degree), (ReadMethod::Physical, Some(2)));
        assert_eq!((tiny.method, tiny.degree), (ReadMethod::None, None));
    }

    #[test]
    fn quoted_names_hold_separators() {
        let parsed = parse(r#""a;b"."c.d:""e""":ntile:"k;1":"#).unwrap();
        assert_eq!(parsed[0].schema.as_deref(), Some("a;b"));
        assert_eq!(parsed[0].table, "c.d:\"e\"");
        assert_eq!(parsed[0].key.as_deref(), Some("k;1"));
        assert_eq!(parsed[0].degree, None);
    }

    #[test]
    fn mistakes_name_themselves() {
        for (text, part) in [
            ("orders", "method is missing"),
            ("orders:Fast", "no method"),
            ("orders:Random:id:2", "not available yet"),
            ("orders:RangeId::2", "needs a key"),
            ("orders:Ctid::many", "degree"),
            ("orders:Ctid::-2", "degree"),
            ("a.b.c:Ctid", "name"),
            (":Ctid", "name"),
            ("orders:Ctid:a:1:x", "more than four"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message().contains(part), "{text}: {error}");
            assert!(error.hint().is_some(), "{text}");
        }
    }
}
