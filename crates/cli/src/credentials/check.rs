//! Whether a credential says what it should, level by level.

use serde_json::{Map, Value};
use tidelake_model::{Error, ErrorKind, Result};

/// A system that a credential may be for.
pub(crate) struct KnownSystem {
    /// Its `ds_type`.
    pub(crate) name: &'static str,
    /// Its `auth_mode`s.
    pub(crate) auth_modes: &'static [&'static str],
    /// JSON Schema of its `info`; `None` where it is known but not built. Below
    /// `modes` it may hold the keys that each `auth_mode` needs and no other takes.
    pub(crate) schema: Option<Value>,
}

/// All systems that are known.
pub(crate) struct Catalogue {
    pub(crate) systems: Vec<KnownSystem>,
    /// Keys of an `info` that only a state store reads.
    pub(crate) state_keys: Vec<&'static str>,
}

impl Catalogue {
    /// The type and the checked `info` of a credential.
    pub(super) fn check(&self, id: &str, entry: Value) -> Result<(String, Map<String, Value>)> {
        let Value::Object(mut entry) = entry else {
            return Err(wrong(format!("the credential {id:?} is no JSON object"), FORM));
        };
        known_keys(id, &entry, &["ds_type", "auth_mode", "info"])?;
        let text = |key: &str| match entry.get(key) {
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(wrong(format!("{id}.{key} is no text"), FORM)),
            None => Ok(None),
        };
        let ds_type = text("ds_type")?
            .ok_or_else(|| wrong(format!("{id}.ds_type is missing"), &self.available()))?;
        let auth_mode = text("auth_mode")?;
        let system = self.system(id, &ds_type)?;
        check_auth_mode(id, system, auth_mode.as_deref())?;
        let mut info = match entry.remove("info") {
            Some(Value::Object(info)) => info,
            Some(_) => return Err(wrong(format!("{id}.info is no JSON object"), FORM)),
            None => return Err(wrong(format!("{id}.info is missing"), FORM)),
        };
        if let Some(schema) = &system.schema {
            check_info(&format!("{id}.info"), &mut info, schema)?;
            if let Some(mode) = &auth_mode {
                check_mode(&format!("{id}.info"), &info, schema, mode)?;
            }
        }
        Ok((ds_type, info))
    }

    fn system(&self, id: &str, ds_type: &str) -> Result<&KnownSystem> {
        let found = self.systems.iter().find(|system| system.name == ds_type);
        match found {
            Some(system) if system.schema.is_some() => Ok(system),
            Some(_) => {
                let message = format!("{id}: the ds_type {ds_type:?} is not available yet");
                Err(Error::new(ErrorKind::Unsupported, message).with_hint(self.available()))
            }
            None => {
                let names = self.systems.iter().map(|system| system.name);
                let hint = match nearest(ds_type, names) {
                    Some(near) => format!("did you mean {near:?}? {}", self.available()),
                    None => self.available(),
                };
                Err(wrong(format!("{id}.ds_type {ds_type:?} is not known"), &hint))
            }
        }
    }

    fn available(&self) -> String {
        let built = self.systems.iter().filter(|system| system.schema.is_some());
        let names: Vec<_> = built.map(|system| system.name).collect();
        format!("available are: {}", names.join(", "))
    }
}

const FORM: &str = "a credential has the form {\"ds_type\": …, \"auth_mode\": …, \"info\": {…}}";

fn wrong(message: String, hint: &str) -> Error {
    Error::new(ErrorKind::Configuration, message).with_hint(hint)
}

fn check_auth_mode(id: &str, system: &KnownSystem, mode: Option<&str>) -> Result<()> {
    let modes = system.auth_modes;
    let hint = format!("{} takes: {}", system.name, modes.join(", "));
    match mode {
        Some(mode) if modes.contains(&mode) => Ok(()),
        Some(mode) => Err(wrong(format!("{id}.auth_mode {mode:?} is not known"), &hint)),
        // Where there is one way only, nothing needs to be said.
        None if modes.len() == 1 => Ok(()),
        None => Err(wrong(format!("{id}.auth_mode is missing"), &hint)),
    }
}

fn check_info(place: &str, info: &mut Map<String, Value>, schema: &Value) -> Result<()> {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let known: Vec<_> = properties.keys().map(String::as_str).collect();
    known_keys(place, info, &known)?;
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for key in required.filter_map(Value::as_str) {
        if info.get(key).is_none_or(Value::is_null) {
            return Err(wrong(
                format!("{place}.{key} is missing"),
                &format!("keys of this info: {}", known.join(", ")),
            ));
        }
    }
    for (key, value) in info {
        if let Some(property) = properties.get(key) {
            let types = types(property, schema);
            coerce(value, &types);
            check_type(&format!("{place}.{key}"), value, &types)?;
        }
    }
    Ok(())
}

/// Whether an `info` holds what its `auth_mode` needs, and nothing of another.
fn check_mode(place: &str, info: &Map<String, Value>, schema: &Value, mode: &str) -> Result<()> {
    let Some(modes) = schema.get("modes").and_then(Value::as_object) else {
        return Ok(());
    };
    let keys = |mode: &str| -> Vec<&str> {
        let keys = modes.get(mode).and_then(Value::as_array).into_iter().flatten();
        keys.filter_map(Value::as_str).collect()
    };
    let needed = keys(mode);
    let hint = format!("auth_mode {mode} takes: {}", needed.join(", "));
    let is_there = |key: &str| info.get(key).is_some_and(|value| !value.is_null());
    if let Some(missing) = needed.iter().find(|key| !is_there(key)) {
        return Err(wrong(format!("{place}.{missing} is missing"), &hint));
    }
    let others =
        modes.keys().flat_map(|other| keys(other).into_iter().map(move |key| (other, key)));
    let mut others = others.filter(|(_, key)| !needed.contains(key) && is_there(key));
    match others.next() {
        Some((other, key)) => {
            let message = format!("{place}.{key} belongs to auth_mode {other:?}, not {mode:?}");
            Err(wrong(message, &hint))
        }
        None => Ok(()),
    }
}

/// A number or a truth value that was written as text, as it must be when it
/// comes from a variable.
fn coerce(value: &mut Value, types: &[&str]) {
    let Value::String(text) = value else { return };
    let text = text.trim();
    if types.contains(&"integer") {
        if let Ok(number) = text.parse::<i64>() {
            *value = number.into();
        }
    } else if types.contains(&"boolean") {
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => *value = true.into(),
            "false" | "no" | "0" => *value = false.into(),
            _ => {}
        }
    }
}

/// Refuses a value of another type than the property's, where that is plain.
fn check_type(place: &str, value: &Value, types: &[&str]) -> Result<()> {
    let (name, is) = match value {
        // As good as absent.
        Value::Null => return Ok(()),
        Value::String(_) => ("string", "a text"),
        Value::Bool(_) => ("boolean", "true or false"),
        Value::Number(number) if number.is_f64() => ("number", "a fraction"),
        Value::Number(_) => ("integer", "a whole number"),
        Value::Array(_) => ("array", "a list"),
        Value::Object(_) => ("object", "an object"),
    };
    let (wanted, hint) = if types.contains(&name) {
        return Ok(());
    } else if types.contains(&"string") {
        ("a text", "write it in double quotes")
    } else if types.contains(&"integer") {
        ("a whole number", "write digits alone, such as 5432")
    } else if types.contains(&"boolean") {
        ("true or false", "write true or false, without quotes")
    } else {
        return Ok(());
    };
    Err(wrong(format!("{place} is {is}, where {wanted} is needed"), hint))
}

/// The types that a property may have: its own, those of the definition that it
/// refers to, and those of its alternatives.
fn types<'a>(property: &'a Value, schema: &'a Value) -> Vec<&'a str> {
    let mut found = vec![];
    let mut open = vec![property];
    while let Some(part) = open.pop() {
        match part.get("type") {
            Some(Value::String(name)) => found.push(name.as_str()),
            Some(Value::Array(names)) => found.extend(names.iter().filter_map(Value::as_str)),
            _ => {}
        }
        for key in ["anyOf", "oneOf"] {
            open.extend(part.get(key).and_then(Value::as_array).into_iter().flatten());
        }
        let place = part.get("$ref").and_then(Value::as_str);
        let place = place.and_then(|place| place.strip_prefix('#'));
        // A definition that leads back to itself would have no end.
        if found.len() < 100 {
            open.extend(place.and_then(|place| schema.pointer(place)));
        }
    }
    found
}

fn known_keys(place: &str, object: &Map<String, Value>, known: &[&str]) -> Result<()> {
    let Some(stranger) = object.keys().find(|key| !known.contains(&key.as_str())) else {
        return Ok(());
    };
    let list = known.join(", ");
    let hint = match nearest(stranger, known.iter().copied()) {
        Some(near) => format!("did you mean {near:?}? known keys: {list}"),
        None => format!("known keys: {list}"),
    };
    Err(wrong(format!("{place} has an unknown key {stranger:?}"), &hint))
}

/// The name that was most likely meant.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let allowed = (name.chars().count() / 3).max(1);
    known
        .map(|known| (strsim::damerau_levenshtein(&name, &known.to_ascii_lowercase()), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}
