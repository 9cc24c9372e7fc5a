//! Bytes of a connection, cut into packets.

use tidelake_model::{Error, ErrorKind, Result};

const BUFFER: usize = 256 << 10;
/// Length and number of a packet.
const HEAD: usize = 4;
/// A packet of that length goes on in the next one.
pub(super) const LONGEST: usize = 0xFF_FFFF;

/// Where the body of a packet lies in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packet {
    start: usize,
    end: usize,
}

/// Received bytes. Bodies are handed out where they lie; those that came in several
/// pieces are put together in place first.
pub(crate) struct PacketBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// The number that the next piece has to have.
    number: u8,
    /// Bytes behind the first head that are whole pieces already put together.
    joined: usize,
}

impl PacketBuffer {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; BUFFER], start: 0, end: 0, number: 0, joined: 0 }
    }

    /// Begins a new exchange; its first packet of the server has this number.
    pub(crate) fn expect(&mut self, number: u8) {
        self.number = number;
    }

    /// The number that a packet of ours has to have now.
    pub(crate) fn number(&self) -> u8 {
        self.number
    }

    /// Whether bytes are left that belong to no packet taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The next packet, once it is complete.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Packet>> {
        let Some(bytes) = self.bytes.get(self.start..self.end) else { return Ok(None) };
        let Some((head, body)) = bytes.split_first_chunk() else { return Ok(None) };
        let (length, number) = head_of(*head);
        if length == LONGEST {
            return self.next_large();
        }
        if body.len() < length {
            return Ok(None);
        }
        self.count(number)?;
        let start = self.start + HEAD;
        self.start = start + length;
        Ok(Some(Packet { start, end: self.start }))
    }

    #[inline]
    fn count(&mut self, number: u8) -> Result<()> {
        if number != self.number {
            return Err(Error::new(ErrorKind::Unavailable, "a packet of the server got lost"));
        }
        self.number = number.wrapping_add(1);
        Ok(())
    }

    /// The next packet where its first piece is as long as a piece can be.
    #[cold]
    fn next_large(&mut self) -> Result<Option<Packet>> {
        loop {
            // The head of the first piece stays; those behind it are cut out.
            let at = if self.joined == 0 { self.start } else { self.start + HEAD + self.joined };
            let Some(piece) = self.bytes.get(at..self.end) else { return Ok(None) };
            let Some((head, body)) = piece.split_first_chunk() else { return Ok(None) };
            let (length, number) = head_of(*head);
            if body.len() < length {
                return Ok(None);
            }
            self.count(number)?;
            if self.joined > 0 {
                self.bytes.copy_within(at + HEAD..self.end, at);
                self.end -= HEAD;
            }
            self.joined += length;
            if length < LONGEST {
                let start = self.start + HEAD;
                self.start = start + self.joined;
                self.joined = 0;
                return Ok(Some(Packet { start, end: self.start }));
            }
        }
    }

    pub(crate) fn body(&self, packet: Packet) -> &[u8] {
        self.bytes.get(packet.start..packet.end).unwrap_or(&[])
    }

    /// Space for more bytes behind those that are there. Bodies that were handed
    /// out before are no longer valid.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        let wanted = self.wanted();
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        // One large cell must not keep its space for the rest of the table.
        if wanted > self.bytes.len() || self.bytes.len() > 4 * wanted {
            let size = wanted.max(self.end);
            self.bytes.resize(size, 0);
            self.bytes.shrink_to(size);
        }
        self.bytes.get_mut(self.end..).unwrap_or(&mut [])
    }

    /// That many bytes of the space were filled.
    pub(crate) fn filled(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.bytes.len());
    }

    /// How large the buffer has to be for the packet that has begun: room for its
    /// next piece, and for a byte behind it.
    fn wanted(&self) -> usize {
        let at = if self.joined == 0 { 0 } else { HEAD + self.joined };
        let piece = self.bytes.get(self.start..self.end).and_then(|bytes| bytes.get(at..));
        let length = piece
            .and_then(|piece| piece.split_first_chunk())
            .map_or(0, |(head, _)| head_of(*head).0);
        (at + HEAD + length + 1).max(BUFFER)
    }
}

#[inline]
fn head_of([low, middle, high, number]: [u8; HEAD]) -> (usize, u8) {
    let length = u32::from_le_bytes([low, middle, high, 0]);
    // Three bytes fit every size.
    (usize::try_from(length).unwrap_or(usize::MAX), number)
}

/// A body as packets, the first of which has that number; returns the number that
/// comes after the last.
pub(crate) fn framed(body: &[u8], mut number: u8) -> (Vec<u8>, u8) {
    let mut bytes = Vec::with_capacity(body.len() + HEAD * (body.len() / LONGEST + 1));
    let mut rest = body;
    loop {
        let (piece, after) = rest.split_at_checked(LONGEST).unwrap_or((rest, &[]));
        let length = u32::try_from(piece.len()).unwrap_or(0).to_le_bytes();
        bytes.extend(length.iter().take(3));
        bytes.push(number);
        bytes.extend_from_slice(piece);
        number = number.wrapping_add(1);
        rest = after;
        // One of the full length says that another follows, be it empty.
        if piece.len() < LONGEST {
            return (bytes, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All bodies in bytes that arrive in pieces of these sizes.
    fn bodies(bytes: &[u8], pieces: &[usize]) -> Result<Vec<Vec<u8>>> {
        let mut buffer = PacketBuffer::new();
        let mut found = vec![];
        let mut rest = bytes;
        let mut pieces = pieces.iter().cycle();
        while !rest.is_empty() {
            let space = buffer.space();
            let count = (*pieces.next().unwrap()).min(rest.len()).min(space.len());
            let (piece, after) = rest.split_at(count);
            space[..count].copy_from_slice(piece);
            buffer.filled(count);
            rest = after;
            while let Some(packet) = buffer.next()? {
                found.push(buffer.body(packet).to_vec());
            }
        }
        assert!(buffer.is_empty());
        Ok(found)
    }

    fn stream(sent: &[Vec<u8>]) -> Vec<u8> {
        let (mut bytes, mut number) = (vec![], 0);
        for body in sent {
            let (framed, next) = framed(body, number);
            bytes.extend(framed);
            number = next;
        }
        bytes
    }

    #[test]
    fn packets_of_several_pieces_are_put_together() {
        for length in [LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST, 2 * LONGEST + 77] {
            let large: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let sent = vec![b"before".to_vec(), large, vec![], b"after".to_vec()];
            let bytes = stream(&sent);
            for pieces in [&[1 << 30][..], &[700_001], &[LONGEST + 4], &[LONGEST + 14, 1, 3]] {
                let found = bodies(&bytes, pieces).unwrap();
                assert!(found == sent, "{length} in pieces of {pieces:?}");
            }
        }
    }

    #[test]
    fn the_space_of_a_large_packet_is_given_back() {
        let mut buffer = PacketBuffer::new();
        let bytes = stream(&[vec![7; 5 << 20]]);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let space = buffer.space();
            let count = space.len().min(rest.len());
            space[..count].copy_from_slice(&rest[..count]);
            buffer.filled(count);
            rest = &rest[count..];
        }
        assert!(buffer.next().unwrap().is_some());
        assert!(buffer.bytes.len() > 5 << 20);
        assert_eq!(buffer.space().len(), BUFFER);
    }

    #[test]
    fn a_packet_that_is_missing_is_noticed() {
        let mut bytes = stream(&[b"one".to_vec()]);
        bytes.extend(framed(b"three", 2).0);
        let error = bodies(&bytes, &[100]).unwrap_err();
        assert!(error.to_string().contains("got lost"));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_packets(
            sent in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..300),
            pieces in proptest::collection::vec(1usize..900, 1..20),
        ) {
            let found = bodies(&stream(&sent), &pieces).unwrap();
            prop_assert_eq!(found, sent);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut buffer = PacketBuffer::new();
            let space = buffer.space();
            space[..bytes.len()].copy_from_slice(&bytes);
            buffer.filled(bytes.len());
            while let Ok(Some(packet)) = buffer.next() {
                let _ = buffer.body(packet);
            }
            buffer.space();
        }
    }
}
