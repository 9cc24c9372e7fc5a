//! Counts how often a server was waited for.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::tap::Stream;

/// Round trips of all connections of a pool.
#[derive(Debug, Clone, Default)]
pub(crate) struct RoundTrips(Arc<AtomicU64>);

impl RoundTrips {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection whose round trips are counted: each first write after a read.
pub(crate) struct Counted<S> {
    stream: S,
    is_asking: bool,
    trips: RoundTrips,
}

impl<S> Counted<S> {
    pub(crate) fn new(stream: S, trips: &RoundTrips) -> Self {
        Self { stream, is_asking: false, trips: trips.clone() }
    }
}

impl<S: Stream> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        self.is_asking = false;
        Poll::Ready(read)
    }
}

impl<S: Stream> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.is_asking {
            self.is_asking = true;
            self.trips.0.fetch_add(1, Ordering::Relaxed);
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn what_is_sent_together_counts_once() {
        let trips = RoundTrips::default();
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut ours = Counted::new(ours, &trips);
        for _ in 0..2 {
            ours.write_all(b"a").await.unwrap();
            ours.write_all(b"b").await.unwrap();
            theirs.write_all(b"cd").await.unwrap();
            let mut answer = [0; 2];
            ours.read_exact(&mut answer).await.unwrap();
        }
        assert_eq!(trips.count(), 2);
    }
}
