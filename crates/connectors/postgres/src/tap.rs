//! A connection that can be borrowed from the driver.
//!
//! The driver logs in and runs statements, but hands every row of a COPY through
//! a message of its own. While rows are read its connection is borrowed, so that
//! they are decoded where the socket put them; the driver waits meanwhile.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A stream of bytes both ways.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

struct Line {
    stream: Box<dyn Stream>,
    borrowed: bool,
    waiting: Vec<Waker>,
}

/// The driver's end of a connection.
#[derive(Clone)]
pub(crate) struct Tap(Arc<Mutex<Line>>);

impl Tap {
    pub(crate) fn new(stream: impl Stream + 'static) -> Self {
        let line = Line { stream: Box::new(stream), borrowed: false, waiting: vec![] };
        Self(Arc::new(Mutex::new(line)))
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the connection from the driver, which must have no statement under
    /// way.
    pub(crate) fn borrow(&self) -> Borrowed {
        self.line().borrowed = true;
        Borrowed { tap: self.clone(), returned: false }
    }

    fn poll<T>(
        &self,
        context: &mut Context<'_>,
        action: impl FnOnce(Pin<&mut dyn Stream>, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let mut line = self.line();
        if line.borrowed {
            line.waiting.push(context.waker().clone());
            return Poll::Pending;
        }
        action(Pin::new(&mut *line.stream), context)
    }
}

impl AsyncRead for Tap {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(context, |stream, context| stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for Tap {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(context, |stream, context| stream.poll_shutdown(context))
    }
}

/// A connection taken from the driver. Dropping it closes the connection, since
/// nobody knows what is still to come on it.
pub(crate) struct Borrowed {
    tap: Tap,
    returned: bool,
}

impl Borrowed {
    /// Gives the connection back after the server said that it is ready.
    pub(crate) fn give_back(mut self) {
        self.returned = true;
        self.end(None);
    }

    fn end(&self, replacement: Option<Box<dyn Stream>>) {
        let mut line = self.tap.line();
        line.borrowed = false;
        if let Some(stream) = replacement {
            line.stream = stream;
        }
        let waiting = std::mem::take(&mut line.waiting);
        drop(line);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if !self.returned {
            self.end(Some(Box::new(tokio::io::empty())));
        }
    }
}

impl AsyncRead for Borrowed {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.tap.line().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Borrowed {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.tap.line().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.tap.line().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.tap.line().stream).poll_shutdown(context)
    }
}

/// Where the tap of an encrypted connection is left once its handshake is done.
pub(crate) type Slot = Arc<Mutex<Option<Tap>>>;

/// Encrypts a connection and puts a tap above the encryption.
pub(crate) struct TlsTap {
    connect: <MakeRustlsConnect as MakeTlsConnect<Tap>>::TlsConnect,
    slot: Slot,
}

impl TlsTap {
    pub(crate) fn new(config: rustls::ClientConfig, server: &str, slot: Slot) -> Option<Self> {
        let mut make = MakeRustlsConnect::new(config);
        let connect = MakeTlsConnect::<Tap>::make_tls_connect(&mut make, server).ok()?;
        Some(Self { connect, slot })
    }
}

impl TlsConnect<Tap> for TlsTap {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Tap) -> Self::Future {
        Box::pin(async move {
            let stream = TlsConnect::<Tap>::connect(self.connect, stream).await?;
            let binding = stream.channel_binding();
            let tap = Tap::new(stream);
            *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(tap.clone());
            Ok(Encrypted { tap, binding: Mutex::new(Some(binding)) })
        })
    }
}

/// The driver's end of an encrypted connection.
pub(crate) struct Encrypted {
    tap: Tap,
    binding: Mutex<Option<ChannelBinding>>,
}

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        // The driver asks once, while it logs in.
        let binding = self.binding.lock().unwrap_or_else(PoisonError::into_inner).take();
        binding.unwrap_or_else(ChannelBinding::none)
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tap).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tap).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tap).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tap).poll_shutdown(context)
    }
}
