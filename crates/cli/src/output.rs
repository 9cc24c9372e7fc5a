//! Results as text for people or JSON for programs.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;
use tidelake_model::{Error, ErrorKind, Notice, Result};
use tidelake_watermark::{Kind, Value};

use crate::settings::OutputForm;
use crate::terminal::Terminal;

/// How results are written.
#[derive(Clone)]
pub(crate) struct Output {
    pub(crate) form: OutputForm,
    pub(crate) terminal: Terminal,
}

impl Output {
    /// Writes a result: the value for programs, the text for people.
    pub(crate) fn emit<T: Serialize + ?Sized>(
        &self,
        value: &T,
        text: impl FnOnce(&Terminal) -> String,
    ) -> Result<()> {
        let text = match self.form {
            OutputForm::Table => harmless(&text(&self.terminal)),
            OutputForm::Json => {
                let mut json = serde_json::to_string_pretty(value).map_err(|error| {
                    Error::new(ErrorKind::Internal, "the result cannot be written as JSON")
                        .with_source(error)
                })?;
                json.push('\n');
                json
            }
        };
        self.terminal.result(&text);
        Ok(())
    }

    /// Tells what a user should know.
    pub(crate) fn notices(&self, notices: &[Notice]) {
        for notice in notices {
            self.terminal.talk(&format!("note: {}\n", one_line(&notice.message)));
        }
    }
}

/// Names come from a database, where anybody may have put what a terminal takes
/// for a command.
fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() && character != '\n' {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// A text on one line, whatever it holds: a line that a name begins could pass for
/// one of ours.
pub(crate) fn one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// A table without lines, legible everywhere. Columns whose header begins with
/// `>` are aligned to the right. Cells are never broken: a value that was cut in
/// two could not be copied.
pub(crate) fn table(headers: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headers.iter().map(|header| header.trim_start_matches('>')));
    let rows = rows.iter().map(|row| row.iter().map(|cell| one_line(cell)));
    table.add_rows(rows);
    for (column, header) in table.column_iter_mut().zip(headers) {
        column.set_padding((0, 2));
        if header.starts_with('>') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Names and values below one another, the values in one column that is as wide
/// as the terminal allows.
pub(crate) fn fields(indent: usize, fields: &[(&str, String)], width: Option<u16>) -> String {
    let longest = fields.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let room = width.map_or(usize::MAX, |width| {
        usize::from(width).saturating_sub(indent + longest + 2).max(20)
    });
    let mut text = String::new();
    for (name, value) in fields {
        let lines = value.lines().flat_map(|line| wrapped(line, room));
        for (number, line) in lines.enumerate() {
            let name = if number == 0 { name } else { "" };
            let line = format!("{:indent$}{name:longest$}  {line}", "");
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// A line as several of at most so many characters, broken at blanks. A word
/// that is longer stays whole, so that it can be copied.
fn wrapped(line: &str, room: usize) -> Vec<String> {
    let mut lines = vec![];
    let mut current = String::new();
    let mut length = 0;
    for word in line.split(' ') {
        let added = word.chars().count();
        if length > 0 && length + 1 + added > room {
            lines.push(std::mem::take(&mut current));
            length = 0;
        } else if length > 0 {
            current.push(' ');
            length += 1;
        }
        current.push_str(word);
        length += added;
    }
    lines.push(current);
    lines
}

/// `1234567` as `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 row`, `2 rows`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `1234567` bytes as `1.2 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // Tenths of the unit, so that no float is needed.
    let mut tenths = u128::from(bytes) * 10 / 1024;
    let mut unit = "KiB";
    for next in UNITS.iter().skip(1) {
        if tenths < 10_240 {
            break;
        }
        tenths /= 1024;
        unit = next;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// A stored time to the second, for people.
pub(crate) fn second(time: &str) -> String {
    match time.split_once('.') {
        Some((whole, fraction)) if fraction.ends_with('Z') => format!("{whole}Z"),
        _ => time.to_owned(),
    }
}

/// How long something took, from two stored times.
pub(crate) fn duration(start: &str, end: &str) -> Option<String> {
    let nanos = |text| match Value::parse(Kind::Timestamp, text) {
        Ok(Value::Timestamp(nanos)) => Some(nanos),
        _ => None,
    };
    let millis = (nanos(end)?.checked_sub(nanos(start)?)? / 1_000_000).max(0);
    Some(milliseconds(u64::try_from(millis).ok()?))
}

/// `1234` milliseconds as `1.2s`.
pub(crate) fn milliseconds(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..60 => format!("{seconds}.{}s", millis % 1000 / 100),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A value, or a dash.
pub(crate) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_command_for_the_terminal() {
        assert_eq!(harmless("a\u{1b}[31m\u{7}ü\tb\nc"), "a\\u{1b}[31m\\u{7}ü\\tb\nc");
    }

    #[test]
    fn a_name_keeps_to_its_line() {
        let rows = vec![vec!["a\n\u{1b}[0mb".into(), "1".into()], vec!["ü".into(), "2".into()]];
        let shown = table(&["NAME", ">ROWS"], rows);
        assert_eq!(shown, "NAME           ROWS\na\\n\\u{1b}[0mb     1\nü                 2\n");
    }

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "row"), "1 row");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1024), "1.0 KiB");
        assert_eq!(size(1_234_567), "1.1 MiB");
        assert_eq!(size(u64::MAX), "15.9 EiB");
        assert_eq!(milliseconds(1250), "1.2s");
        assert_eq!(milliseconds(3_725_000), "1h 02m");
    }

    #[test]
    fn times_are_cut_to_the_second() {
        assert_eq!(second("2026-11-30T09:15:00.123456Z"), "2026-11-30T09:15:00Z");
        let took = duration("2026-11-30T09:15:00Z", "2026-11-30T09:16:05.5Z");
        assert_eq!(took.as_deref(), Some("1m 05s"));
    }

    #[test]
    fn long_values_are_broken_at_blanks() {
        let fields =
            fields(2, &[("a", "1 2".into()), ("sql", "12345 12345 12345 1".into())], Some(28));
        assert_eq!(fields, "  a    1 2\n  sql  12345 12345 12345 1\n");
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrapped("aaaaaaaa b", 5), ["aaaaaaaa", "b"]);
    }

    #[test]
    fn tables_need_no_lines() {
        let rows = vec![vec!["a".into(), "1".into()], vec!["bcd".into(), "100".into()]];
        assert_eq!(table(&["NAME", ">ROWS"], rows), "NAME  ROWS\na        1\nbcd    100\n");
    }
}
