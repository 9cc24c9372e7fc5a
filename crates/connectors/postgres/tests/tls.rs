//! Certificates that must be refused, shown by a server that does no more than
//! begin to encrypt. Those that must be accepted are met on the real one
//! (`login.rs`); the keys in `certificates/` were made for these tests.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tidelake_connector::Connector;
use tidelake_model::{CredentialInfo, Error, ErrorKind};
use tidelake_postgres::Postgres;

fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name)
}

/// What the server answers to the wish to encrypt.
#[derive(Clone, Copy)]
enum Answer {
    /// It encrypts, with a certificate of that name, and hangs up afterwards.
    Certificate(&'static str),
    /// It does not encrypt.
    No,
    /// It hangs up in the middle of the handshake.
    HangUp,
}

/// Serves any number of connections, for as long as the test lasts.
fn serve(answer: Answer) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = serve_one(stream, answer);
        }
    });
    port
}

fn serve_one(mut stream: TcpStream, answer: Answer) -> std::io::Result<()> {
    stream.read_exact(&mut [0; 8])?;
    let name = match answer {
        Answer::No => {
            stream.write_all(b"N")?;
            // The client says no more without encryption.
            let mut said = vec![];
            stream.read_to_end(&mut said)?;
            assert!(said.is_empty(), "the client went on in the clear");
            return Ok(());
        }
        Answer::HangUp => {
            stream.write_all(b"S")?;
            let read = stream.read(&mut [0; 1024])?;
            assert!(read > 0);
            return Ok(());
        }
        Answer::Certificate(name) => name,
    };
    stream.write_all(b"S")?;
    let file = certificate(name);
    let chain = CertificateDer::pem_file_iter(&file).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(&file).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let mut connection = rustls::ServerConnection::new(Arc::new(config)).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(std::io::Error::other)?;
    }
    // The first words of the log-in show that the client was content.
    let read = rustls::Stream::new(&mut connection, &mut stream).read(&mut [0; 64])?;
    assert!(read > 0);
    Ok(())
}

async fn refused(answer: Answer, mode: &str, server: &str) -> Error {
    let info = json!({
        "username": "u", "password": "hunter2", "server": server, "port": serve(answer),
        "database": "d", "sslmode": mode, "sslrootcert": certificate("authority.crt"),
    });
    match Postgres.source(&CredentialInfo::new(info)).await {
        Ok(_) => panic!("there is no such server"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_certificate_in_order_is_accepted_until_the_server_hangs_up() {
    for mode in ["require", "verify-ca", "verify-full"] {
        let error = refused(Answer::Certificate("good.pem"), mode, "127.0.0.1").await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{mode}: {error:?}");
        assert!(error.is_retryable());
    }
    let error = refused(Answer::Certificate("good.pem"), "verify-full", "localhost").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
}

#[tokio::test]
async fn an_expired_certificate_is_refused_where_it_is_looked_at() {
    for mode in ["verify-ca", "verify-full"] {
        let error = refused(Answer::Certificate("expired.pem"), mode, "127.0.0.1").await;
        assert_eq!(error.kind(), ErrorKind::Configuration, "{mode}: {error:?}");
        assert!(error.chain().contains("expired") && !error.is_retryable(), "{error:?}");
    }
    let error = refused(Answer::Certificate("expired.pem"), "require", "127.0.0.1").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_by_verify_full_alone() {
    let error = refused(Answer::Certificate("elsewhere.pem"), "verify-full", "localhost").await;
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
    assert!(error.hint().unwrap().contains("names the server"), "{error:?}");
    assert!(error.chain().contains("db.example"), "{error:?}");
    let error = refused(Answer::Certificate("elsewhere.pem"), "verify-ca", "localhost").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
}

#[tokio::test]
async fn a_server_without_encryption_is_refused_where_it_must_encrypt() {
    for mode in ["require", "verify-ca", "verify-full"] {
        let error = refused(Answer::No, mode, "127.0.0.1").await;
        assert_eq!(error.kind(), ErrorKind::Configuration, "{mode}: {error:?}");
        assert!(error.hint().unwrap().contains("sslmode"), "{error:?}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}

#[tokio::test]
async fn a_handshake_that_is_cut_may_be_tried_again() {
    let error = refused(Answer::HangUp, "verify-full", "127.0.0.1").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.is_retryable());
}
