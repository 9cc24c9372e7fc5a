//! The way to the server: a socket, encrypted or not.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tidelake_model::{Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::packets::{Packet, PacketBuffer, framed};
use crate::config::MysqlConfig;
use crate::failure::broken;

/// A stream of bytes both ways.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// A connection that carries packets.
pub(crate) struct Line {
    stream: Box<dyn Stream>,
    pub(crate) packets: PacketBuffer,
    /// Whether nobody on the way can read what is sent.
    pub(crate) is_private: bool,
}

impl Line {
    /// Connects, without encryption so far.
    pub(crate) async fn open(config: &MysqlConfig) -> Result<Self> {
        let refused = |error| {
            let message = format!("{} cannot be reached", config.place());
            broken(error, &message)
                .with_hint("check server and port, and that the server runs and can be reached")
        };
        let stream: Box<dyn Stream> = if config.is_socket() {
            Box::new(UnixStream::connect(&config.server).await.map_err(refused)?)
        } else {
            let address = (config.server.as_str(), config.port);
            let stream = TcpStream::connect(address).await.map_err(refused)?;
            keep_alive(&stream, config.keepalive).map_err(refused)?;
            Box::new(stream)
        };
        Ok(Self::over(stream, config.is_socket()))
    }

    fn over(stream: Box<dyn Stream>, is_private: bool) -> Self {
        Self { stream, packets: PacketBuffer::new(), is_private }
    }

    /// Encrypts the connection.
    pub(crate) async fn encrypt(self, tls: ClientConfig, config: &MysqlConfig) -> Result<Self> {
        let doing = format!("the connection to {} cannot be encrypted", config.place());
        // Bytes that came before encryption began would be taken for answers within.
        if !self.packets.is_empty() {
            return Err(Error::new(ErrorKind::Unavailable, doing)
                .with_source("the server sent something before encryption had begun"));
        }
        let name = ServerName::try_from(config.server.clone()).map_err(|error| {
            let message = format!("{:?} is no host name that tls can check", config.server);
            Error::new(ErrorKind::Configuration, message).with_source(error)
        })?;
        let connected = TlsConnector::from(Arc::new(tls)).connect(name, self.stream).await;
        let stream = connected.map_err(|error| {
            if was_cut(&error) {
                return broken(error, &doing);
            }
            Error::new(ErrorKind::Configuration, doing)
                .with_hint(
                    "check sslmode and sslrootcert, and that the certificate names the server",
                )
                .with_source(error)
        })?;
        let mut line = Self::over(Box::new(stream), true);
        line.packets.expect(self.packets.number());
        Ok(line)
    }

    /// Sends the first packet of a new exchange.
    pub(crate) async fn command(&mut self, body: &[u8], doing: &str) -> Result<()> {
        self.packets.expect(0);
        self.send(body, doing).await
    }

    /// Sends the next packet of an exchange.
    pub(crate) async fn send(&mut self, body: &[u8], doing: &str) -> Result<()> {
        let (bytes, next) = framed(body, self.packets.number());
        self.packets.expect(next);
        self.stream.write_all(&bytes).await.map_err(|error| broken(error, doing))?;
        self.stream.flush().await.map_err(|error| broken(error, doing))
    }

    /// The next packet.
    pub(crate) async fn receive(&mut self, doing: &str) -> Result<Packet> {
        loop {
            if let Some(packet) = self.packets.next()? {
                return Ok(packet);
            }
            self.fill(doing).await?;
        }
    }

    /// Reads more bytes behind those that are there.
    pub(crate) async fn fill(&mut self, doing: &str) -> Result<()> {
        let space = self.packets.space();
        let read = self.stream.read(space).await.map_err(|error| broken(error, doing))?;
        if read == 0 {
            return Err(Error::new(ErrorKind::Unavailable, doing)
                .with_source("the server closed the connection"));
        }
        self.packets.filled(read);
        Ok(())
    }

    pub(crate) fn body(&self, packet: Packet) -> &[u8] {
        self.packets.body(packet)
    }

    /// Whether the other end said something unasked, such as good-bye, or closed.
    pub(crate) fn is_closed(&mut self) -> bool {
        use std::task::{Context, Waker};
        let mut byte = [0];
        let mut buffer = tokio::io::ReadBuf::new(&mut byte);
        let mut context = Context::from_waker(Waker::noop());
        std::pin::Pin::new(&mut self.stream).poll_read(&mut context, &mut buffer).is_ready()
    }
}

fn was_cut(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::TimedOut
            | io::ErrorKind::UnexpectedEof
    )
}

/// A server that vanished without a word ends the connection, and small statements
/// are sent at once.
fn keep_alive(stream: &TcpStream, seconds: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // Operating systems ask nine times or so.
    let probes = socket2::TcpKeepalive::new()
        .with_time(Duration::from_secs(seconds.max(1)))
        .with_interval(Duration::from_secs((seconds / 9).max(1)));
    socket2::SockRef::from(stream).set_tcp_keepalive(&probes)
}
