//! What the server answers, apart from rows.

use std::collections::HashMap;

use crate::decode::{Sent, cell, length};

/// First bytes of an answer.
pub(super) const OK: u8 = 0x00;
pub(super) const MORE: u8 = 0x01;
pub(super) const END: u8 = 0xFE;
pub(super) const FAILED: u8 = 0xFF;

/// An EOF packet is shorter than that; a row that begins like one is longer.
const LONGEST_END: usize = 9;

/// What the server says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) version: String,
    /// The lower half of the connection's number.
    pub(crate) id: u32,
    pub(crate) capabilities: u32,
    /// Random bytes against which the password is proven.
    pub(crate) nonce: Vec<u8>,
    pub(crate) plugin: Vec<u8>,
}

impl Greeting {
    /// `None` where it is none of protocol 10.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let (10, rest) = body.split_first()? else { return None };
        let (version, rest) = until_nul(rest)?;
        let (id, rest) = rest.split_first_chunk()?;
        let (first, rest) = rest.split_first_chunk::<8>()?;
        let (_filler, rest) = rest.split_first()?;
        let (low, rest) = rest.split_first_chunk::<2>()?;
        // Collation and status.
        let (_, rest) = rest.split_at_checked(3)?;
        let (high, rest) = rest.split_first_chunk::<2>()?;
        let (nonce_length, rest) = rest.split_first()?;
        let (_reserved, rest) = rest.split_at_checked(10)?;
        // Never fewer than 13, whatever the length says.
        let second = usize::from(*nonce_length).saturating_sub(8).max(13).min(rest.len());
        let (second, plugin) = rest.split_at_checked(second)?;
        let mut nonce = first.to_vec();
        // The last one is a NUL.
        nonce.extend(second.iter().take(12));
        Some(Self {
            version: String::from_utf8_lossy(version).into_owned(),
            id: u32::from_le_bytes(*id),
            capabilities: u32::from(u16::from_le_bytes(*low))
                | u32::from(u16::from_le_bytes(*high)) << 16,
            nonce,
            plugin: until_nul(plugin).map_or(plugin, |(name, _)| name).to_vec(),
        })
    }
}

/// The server wants another proof than the one it got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) plugin: Vec<u8>,
    pub(crate) nonce: Vec<u8>,
}

impl Switch {
    /// `None` where it asks for the proof of servers before 4.1.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let (_, rest) = body.split_first()?;
        let (plugin, nonce) = until_nul(rest)?;
        let nonce = nonce.strip_suffix(b"\0").unwrap_or(nonce);
        Some(Self { plugin: plugin.to_vec(), nonce: nonce.to_vec() })
    }
}

/// A prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) id: u32,
    pub(crate) columns: u16,
    pub(crate) parameters: u16,
}

impl Prepared {
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let (&OK, rest) = body.split_first()? else { return None };
        let (id, rest) = rest.split_first_chunk()?;
        let (columns, rest) = rest.split_first_chunk()?;
        let (parameters, _) = rest.split_first_chunk()?;
        Some(Self {
            id: u32::from_le_bytes(*id),
            columns: u16::from_le_bytes(*columns),
            parameters: u16::from_le_bytes(*parameters),
        })
    }
}

/// What the server says of a column.
pub(crate) fn column(body: &[u8]) -> Option<Sent> {
    let mut rest = body;
    // Catalogue, schema, table and name, the last two twice.
    for _ in 0..6 {
        (_, rest) = cell(rest)?;
    }
    let (_, rest) = length(rest)?;
    let (collation, rest) = rest.split_first_chunk()?;
    let (_width, rest) = rest.split_first_chunk::<4>()?;
    let (kind, rest) = rest.split_first()?;
    let (flags, _) = rest.split_first_chunk()?;
    Some(Sent {
        kind: *kind,
        unsigned: u16::from_le_bytes(*flags) & 0x20 != 0,
        collation: u16::from_le_bytes(*collation),
    })
}

/// The end of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) warnings: u16,
    /// Whether another result follows.
    pub(crate) more: bool,
}

impl End {
    /// Reads what ends rows; `is_ok` where the server says so with an OK packet.
    pub(crate) fn parse(body: &[u8], is_ok: bool) -> Option<Self> {
        let (&END, rest) = body.split_first()? else { return None };
        let (status, warnings) = if is_ok {
            let (_affected, rest) = length(rest)?;
            let (_inserted, rest) = length(rest)?;
            let (status, rest) = rest.split_first_chunk()?;
            (status, rest.split_first_chunk()?.0)
        } else {
            let (warnings, rest) = rest.split_first_chunk()?;
            (rest.split_first_chunk()?.0, warnings)
        };
        Some(Self {
            warnings: u16::from_le_bytes(*warnings),
            more: u16::from_le_bytes(*status) & 0x08 != 0,
        })
    }

    /// Whether a body that begins like an end is one, and no row of text whose
    /// first cell is larger than 16 MB.
    pub(crate) fn is_one(body: &[u8], is_ok: bool) -> bool {
        body.first() == Some(&END)
            && (body.len() < LONGEST_END || is_ok && body.len() < super::packets::LONGEST)
    }
}

/// A row of the text protocol.
pub(crate) fn text_row(body: &[u8]) -> Option<Vec<Option<String>>> {
    let mut cells = vec![];
    let mut rest = body;
    while let Some(first) = rest.first() {
        if *first == 0xFB {
            (_, rest) = rest.split_first()?;
            cells.push(None);
        } else {
            let (text, after) = cell(rest)?;
            cells.push(Some(String::from_utf8_lossy(text).into_owned()));
            rest = after;
        }
    }
    Some(cells)
}

fn until_nul(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let (text, rest) = bytes.split_at_checked(end)?;
    Some((text, rest.get(1..)?))
}

/// What the server shows of us in its list of connections.
pub(super) fn attributes() -> HashMap<String, String> {
    [("program_name", crate::config::PROGRAM_NAME), ("_client_version", env!("CARGO_PKG_VERSION"))]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn greeting() -> Vec<u8> {
        let mut body = b"\x0a5.5.5-10.11.6-MariaDB\0\x2a\0\0\0abcdefgh\0".to_vec();
        body.extend([0xFF, 0xF7, 45, 2, 0, 0xFF, 0x81, 21]);
        body.extend([0; 10]);
        body.extend(b"ijklmnopqrst\0mysql_native_password\0");
        body
    }

    #[test]
    fn a_greeting_is_read() {
        let greeting = Greeting::parse(&greeting()).unwrap();
        assert_eq!(greeting.version, "5.5.5-10.11.6-MariaDB");
        assert_eq!((greeting.id, greeting.capabilities), (42, 0x81FF_F7FF));
        assert_eq!(greeting.nonce, b"abcdefghijklmnopqrst");
        assert_eq!(greeting.plugin, b"mysql_native_password");
    }

    #[test]
    fn a_greeting_that_is_cut_off_is_none() {
        let body = greeting();
        // Without the plugin's name it still is one.
        for cut in 0..=60 {
            assert_eq!(Greeting::parse(&body[..cut.min(53)]), None, "{cut}");
        }
        assert_eq!(Greeting::parse(b"\x09old"), None);
    }

    #[test]
    fn ends_are_told_from_rows() {
        let eof = [0xFE, 3, 0, 2, 0];
        assert!(End::is_one(&eof, false));
        assert_eq!(End::parse(&eof, false), Some(End { warnings: 3, more: false }));
        let ok = [0xFE, 0, 0, 10, 0, 1, 0];
        assert!(End::is_one(&ok, true));
        assert_eq!(End::parse(&ok, true), Some(End { warnings: 1, more: true }));
        assert!(!End::is_one(&[0xFE; 300], false));
        assert_eq!(End::parse(&[0, 0, 0], true), None);
    }

    #[test]
    fn a_row_of_text_is_read() {
        let row = text_row(b"\x03abc\xFB\x00").unwrap();
        assert_eq!(row, [Some("abc".to_owned()), None, Some(String::new())]);
        assert_eq!(text_row(b"\x03ab"), None);
    }

    #[test]
    fn a_column_is_read() {
        let mut body = b"\x03def\x01s\x01t\x01t\x02id\x02id\x0c".to_vec();
        body.extend([63, 0, 11, 0, 0, 0, 3, 0x21, 0x42, 0, 0, 0]);
        assert_eq!(column(&body), Some(Sent { kind: 3, unsigned: true, collation: 63 }));
        assert_eq!(column(&body[..20]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(mut body in proptest::collection::vec(any::<u8>(), 0..120), first in 0usize..4) {
            if let Some(byte) = body.first_mut() {
                *byte = [0, 10, 0xFE, 0xFF][first];
            }
            let _ = (Greeting::parse(&body), Switch::parse(&body), Prepared::parse(&body));
            let _ = (column(&body), text_row(&body), End::parse(&body, true), End::parse(&body, false));
        }
    }
}
