//! Lengths as the protocol writes them.

/// The length at the front of some bytes, and what follows; `None` where it is cut
/// off, or where a marker stands in its place.
#[inline]
pub(crate) fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    match first {
        0..=250 => Some((usize::from(*first), rest)),
        _ => long_length(*first, rest),
    }
}

fn long_length(first: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = match first {
        0xFC => {
            let (bytes, rest) = rest.split_first_chunk()?;
            (u64::from(u16::from_le_bytes(*bytes)), rest)
        }
        0xFD => {
            let ([low, middle, high], rest) = rest.split_first_chunk()?;
            (u64::from(u32::from_le_bytes([*low, *middle, *high, 0])), rest)
        }
        0xFE => {
            let (bytes, rest) = rest.split_first_chunk()?;
            (u64::from_le_bytes(*bytes), rest)
        }
        _ => return None,
    };
    Some((usize::try_from(length).ok()?, rest))
}

/// The cell at the front of some bytes, and what follows.
#[inline]
pub(crate) fn cell(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = length(bytes)?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_four_widths() {
        assert_eq!(length(&[250, 7]), Some((250, &[7][..])));
        assert_eq!(length(&[0xFC, 1, 2, 7]), Some((0x0201, &[7][..])));
        assert_eq!(length(&[0xFD, 1, 2, 3]), Some((0x03_0201, &[][..])));
        assert_eq!(length(&[0xFE, 1, 0, 0, 0, 0, 0, 0, 0, 9]), Some((1, &[9][..])));
        for bad in [&[][..], &[0xFB], &[0xFF, 1, 1], &[0xFC, 1], &[0xFD, 1, 1], &[0xFE; 8]] {
            assert_eq!(length(bad), None, "{bad:?}");
        }
        assert_eq!(cell(b"\x02abc"), Some((&b"ab"[..], &b"c"[..])));
        assert_eq!(cell(b"\x04abc"), None);
        assert_eq!(cell(&[0xFE; 9]), None);
    }
}
