//! Indices into a dictionary: runs of one index, and between them packed bits.

/// Equal indices from which they become a run of their own. A run takes about four
/// bytes, and ends the packed bits before it.
const RUN: usize = 32;

/// Packed indices come in groups of this many.
const GROUP: usize = 8;

/// Bits that an index below `count` needs. Some readers do not expect none.
pub(super) fn index_bits(count: usize) -> usize {
    let highest = u16::try_from(count.saturating_sub(1)).unwrap_or(u16::MAX);
    (16 - highest.leading_zeros() as usize).max(1)
}

pub(super) fn push_varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        let [low, ..] = value.to_le_bytes();
        out.push(low | 0x80);
        value >>= 7;
    }
    let [low, ..] = value.to_le_bytes();
    out.push(low);
}

/// Writes indices of so many bits.
pub(super) fn write_indices(indices: &[u16], width: usize, out: &mut Vec<u8>) {
    let mut rest = indices;
    // Where what is not written yet begins; always a whole number of groups before `rest`.
    let mut begun = indices;
    while let Some(group) = rest.first_chunk::<GROUP>() {
        let [first, ..] = *group;
        let mut step = GROUP;
        if group.iter().all(|index| *index == first) {
            let same = rest.iter().take_while(|index| **index == first).count();
            if same >= RUN {
                write_packed(begun.get(..begun.len() - rest.len()).unwrap_or_default(), width, out);
                push_varint(same << 1, out);
                let bytes = first.to_le_bytes();
                out.extend_from_slice(bytes.get(..width.div_ceil(8)).unwrap_or(&bytes));
                rest = rest.get(same..).unwrap_or_default();
                begun = rest;
                continue;
            }
            step = same / GROUP * GROUP;
        }
        rest = rest.get(step..).unwrap_or_default();
    }
    write_packed(begun, width, out);
}

fn write_packed(indices: &[u16], width: usize, out: &mut Vec<u8>) {
    if indices.is_empty() {
        return;
    }
    let groups = indices.len().div_ceil(GROUP);
    push_varint(groups << 1 | 1, out);
    out.reserve(groups * width);
    // The width is a constant for each: packing is a good part of all the work.
    match width {
        1 => pack::<1>(indices, out),
        2 => pack::<2>(indices, out),
        3 => pack::<3>(indices, out),
        4 => pack::<4>(indices, out),
        5 => pack::<5>(indices, out),
        6 => pack::<6>(indices, out),
        7 => pack::<7>(indices, out),
        8 => pack::<8>(indices, out),
        9 => pack::<9>(indices, out),
        10 => pack::<10>(indices, out),
        11 => pack::<11>(indices, out),
        12 => pack::<12>(indices, out),
        13 => pack::<13>(indices, out),
        14 => pack::<14>(indices, out),
        15 => pack::<15>(indices, out),
        _ => pack::<16>(indices, out),
    }
}

fn pack<const WIDTH: usize>(indices: &[u16], out: &mut Vec<u8>) {
    let (groups, tail) = indices.as_chunks::<GROUP>();
    for group in groups {
        pack_group::<WIDTH>(group, out);
    }
    if !tail.is_empty() {
        let mut group = [0; GROUP];
        for (place, index) in group.iter_mut().zip(tail) {
            *place = *index;
        }
        pack_group::<WIDTH>(&group, out);
    }
}

#[inline]
fn pack_group<const WIDTH: usize>(group: &[u16; GROUP], out: &mut Vec<u8>) {
    if WIDTH <= 8 {
        let mut packed = 0_u64;
        for (place, index) in group.iter().enumerate() {
            packed |= u64::from(*index) << (place * WIDTH);
        }
        if let Some(bytes) = packed.to_le_bytes().first_chunk::<WIDTH>() {
            out.extend_from_slice(bytes);
        }
    } else {
        let mut packed = 0_u128;
        for (place, index) in group.iter().enumerate() {
            packed |= u128::from(*index) << (place * WIDTH);
        }
        if let Some(bytes) = packed.to_le_bytes().first_chunk::<WIDTH>() {
            out.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of the format, value by value.
    fn read(mut bytes: &[u8], width: usize, count: usize) -> Vec<u16> {
        let mut read = Vec::new();
        while read.len() < count {
            let mut header = 0_usize;
            for shift in (0..).step_by(7) {
                let (byte, rest) = bytes.split_first().unwrap();
                bytes = rest;
                header |= usize::from(byte & 0x7f) << shift;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            if header & 1 == 0 {
                let (value, rest) = bytes.split_at(width.div_ceil(8));
                bytes = rest;
                let value = value.iter().rev().fold(0, |value, byte| value << 8 | u16::from(*byte));
                read.extend(std::iter::repeat_n(value, header >> 1));
            } else {
                let (packed, rest) = bytes.split_at((header >> 1) * width);
                bytes = rest;
                let bit = |at: usize| packed[at / 8] >> (at % 8) & 1;
                for value in 0..(header >> 1) * 8 {
                    read.push((0..width).fold(0, |read, place| {
                        read | u16::from(bit(value * width + place)) << place
                    }));
                }
            }
        }
        assert!(bytes.is_empty(), "{} bytes are left over", bytes.len());
        assert!(read.len() < count + 8);
        read.truncate(count);
        read
    }

    #[test]
    fn indices_are_read_as_they_were_written() {
        let mut state = 7_u64;
        for round in 0..400 {
            let width = round % 16 + 1;
            let mut indices = Vec::new();
            for _ in 0..round % 23 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let [.., low, high] = state.to_le_bytes();
                let index = u16::from_le_bytes([low, high]) >> (16 - width);
                let times = if state.is_multiple_of(3) { 1 } else { usize::from(high) };
                indices.extend(std::iter::repeat_n(index, times));
            }
            let mut bytes = Vec::new();
            write_indices(&indices, width, &mut bytes);
            assert_eq!(read(&bytes, width, indices.len()), indices, "width {width}");
        }
    }

    #[test]
    fn an_index_gets_the_bits_that_it_needs() {
        for (count, bits) in [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (257, 9)] {
            assert_eq!(index_bits(count), bits, "{count}");
        }
        assert_eq!(index_bits(1 << 16), 16);
    }
}
