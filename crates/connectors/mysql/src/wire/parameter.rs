//! Values that are bound to a prepared statement.

use mysql_common::constants::ColumnType;

/// A value of a bound parameter, with its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Parameter {
    Null,
    Integer(i64),
    Unsigned(u64),
    Double(f64),
    /// Digits, as in `-12.50`.
    Decimal(String),
    Text(String),
    Binary(Vec<u8>),
    Date {
        year: u16,
        month: u8,
        day: u8,
    },
    Datetime {
        year: u16,
        month: u8,
        day: u8,
        hour: u8,
        minute: u8,
        second: u8,
        micros: u32,
    },
}

const EXECUTE: u8 = 0x17;
const UNSIGNED: u8 = 0x80;

impl Parameter {
    fn column_type(&self) -> ColumnType {
        match self {
            Self::Null => ColumnType::MYSQL_TYPE_NULL,
            Self::Integer(_) | Self::Unsigned(_) => ColumnType::MYSQL_TYPE_LONGLONG,
            Self::Double(_) => ColumnType::MYSQL_TYPE_DOUBLE,
            Self::Decimal(_) => ColumnType::MYSQL_TYPE_NEWDECIMAL,
            Self::Text(_) => ColumnType::MYSQL_TYPE_VAR_STRING,
            // Of no character set, so that bytes are compared.
            Self::Binary(_) => ColumnType::MYSQL_TYPE_BLOB,
            Self::Date { .. } => ColumnType::MYSQL_TYPE_DATE,
            Self::Datetime { .. } => ColumnType::MYSQL_TYPE_DATETIME,
        }
    }

    fn flags(&self) -> u8 {
        if matches!(self, Self::Unsigned(_)) { UNSIGNED } else { 0 }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Integer(value) => out.extend(value.to_le_bytes()),
            Self::Unsigned(value) => out.extend(value.to_le_bytes()),
            Self::Double(value) => out.extend(value.to_le_bytes()),
            Self::Decimal(text) | Self::Text(text) => write_cell(text.as_bytes(), out),
            Self::Binary(bytes) => write_cell(bytes, out),
            Self::Date { year, month, day } => {
                out.push(4);
                out.extend(year.to_le_bytes());
                out.extend([*month, *day]);
            }
            Self::Datetime { year, month, day, hour, minute, second, micros } => {
                out.push(11);
                out.extend(year.to_le_bytes());
                out.extend([*month, *day, *hour, *minute, *second]);
                out.extend(micros.to_le_bytes());
            }
        }
    }
}

/// The message that executes a prepared statement.
pub(super) fn execute(statement: u32, parameters: &[Parameter]) -> Vec<u8> {
    let mut message = vec![EXECUTE];
    message.extend(statement.to_le_bytes());
    // No cursor at the server; executed once.
    message.push(0);
    message.extend(1u32.to_le_bytes());
    if parameters.is_empty() {
        return message;
    }
    message.extend(parameters.chunks(8).map(|eight| {
        let bits = eight.iter().rev();
        bits.fold(0u8, |map, parameter| map << 1 | u8::from(*parameter == Parameter::Null))
    }));
    // Types are sent along.
    message.push(1);
    for parameter in parameters {
        message.extend([parameter.column_type().into(), parameter.flags()]);
    }
    parameters.iter().for_each(|parameter| parameter.write(&mut message));
    message
}

fn write_cell(bytes: &[u8], out: &mut Vec<u8>) {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    match u8::try_from(length) {
        Ok(short @ 0..=250) => out.push(short),
        _ => {
            out.push(0xFE);
            out.extend(length.to_le_bytes());
        }
    }
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_written_with_their_types() {
        let parameters = [
            Parameter::Integer(-2),
            Parameter::Null,
            Parameter::Unsigned(u64::MAX),
            Parameter::Text("é".into()),
        ];
        let message = execute(7, &parameters);
        let mut wanted = vec![0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0b0010, 1];
        wanted.extend([8, 0, 6, 0, 8, 0x80, 253, 0]);
        wanted.extend((-2i64).to_le_bytes());
        wanted.extend(u64::MAX.to_le_bytes());
        wanted.extend([2, 0xC3, 0xA9]);
        assert_eq!(message, wanted);
        assert_eq!(execute(7, &[]).len(), 10);
        let nulls = vec![Parameter::Null; 9];
        assert_eq!(execute(1, &nulls)[10..13], [0xFF, 1, 1]);
    }
}
