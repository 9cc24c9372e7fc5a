//! Which certificates are accepted.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::kx_group::{SECP256R1, SECP384R1, X25519};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore,
    SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tidelake_model::{Error, ErrorKind, Result};

use crate::config::{MysqlConfig, TlsMode};

/// The TLS settings of a connection; `None` where none is to be encrypted. The
/// provider is passed by hand: which one a process prefers is not ours to say.
pub(crate) fn client_config(config: &MysqlConfig) -> Result<Option<ClientConfig>> {
    let mode = config.tls_mode()?;
    if mode == TlsMode::Disable || config.is_socket() {
        return Ok(None);
    }
    // Up to version 17 servers take this curve alone, and ask for a second hello
    // where the first one brings another.
    let kx_groups = vec![SECP256R1, X25519, SECP384R1];
    let provider = Arc::new(CryptoProvider { kx_groups, ..ring::default_provider() });
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| configuration("tls cannot be set up").with_source(error))?;
    let client = match mode {
        TlsMode::VerifyFull => {
            builder.with_root_certificates(authorities(config)?).with_no_client_auth()
        }
        TlsMode::VerifyCa => {
            let roots = Arc::new(authorities(config)?);
            let inner = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
                .build()
                .map_err(|error| configuration("tls cannot be set up").with_source(error))?;
            let verifier = Arc::new(AnyName(inner));
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
        TlsMode::Disable | TlsMode::Prefer | TlsMode::Require => {
            let verifier = Arc::new(AnyCertificate(provider));
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
    };
    Ok(Some(client))
}

fn configuration(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, message)
}

fn authorities(config: &MysqlConfig) -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    let Some(path) = &config.sslrootcert else {
        let native = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(native.certs);
        if store.is_empty() {
            return Err(configuration("the operating system has no trusted certificates")
                .with_hint("name a file of trusted certificates with sslrootcert"));
        }
        return Ok(store);
    };
    let unreadable = |error: rustls_pki_types::pem::Error| {
        configuration(format!("sslrootcert {path:?} cannot be read as certificates"))
            .with_hint("name a file that holds certificates in PEM form")
            .with_source(error)
    };
    for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
        let certificate = certificate.map_err(unreadable)?;
        store.add(certificate).map_err(|error| {
            configuration(format!("sslrootcert {path:?} holds a certificate that cannot be used"))
                .with_source(error)
        })?;
    }
    if store.is_empty() {
        return Err(configuration(format!("sslrootcert {path:?} holds no certificate"))
            .with_hint("name a file that holds certificates in PEM form"));
    }
    Ok(store)
}

/// Checks the chain, not the name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let verified =
            self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is looked at last, once the chain was found to be good.
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Checks that the server owns its certificate, and nothing else.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
