//! Packets of a server, the login's among them, or something else in their name.

use tidelake_mysql::fuzzing;

use crate::take;

pub(crate) fn target(bytes: &[u8]) {
    let Some((size, stream)) = take(bytes) else { return };
    let whole = fuzzing::packets(stream.chunks(stream.len().max(1)));
    let pieces = fuzzing::packets(stream.chunks(usize::from(size).max(1)));
    assert_eq!(whole, pieces, "pieces give other packets");
    // Each has a head of four bytes.
    assert!(whole <= stream.len() / 4, "{whole} packets in {} bytes", stream.len());
}
