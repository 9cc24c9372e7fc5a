//! Encryption, as far as the driver lets it be chosen.

use std::path::Path;

use mysql_async::SslOpts;
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tidelake_model::{Error, ErrorKind, Result};

use super::settings::TlsMode;

/// The driver leaves out the check of the name where the refusal holds this word,
/// which it only does since the name itself is told in it when that is the word.
const ANY_NAME: &str = "NotValidForName";

/// What the driver is told; `None` where nothing is encrypted.
pub(super) fn options(mode: TlsMode, roots: Option<&Path>) -> Result<Option<SslOpts>> {
    if mode == TlsMode::Disable {
        return Ok(None);
    }
    // The driver takes the provider of the process.
    if CryptoProvider::get_default().is_none() {
        let _ = ring::default_provider().install_default();
    }
    if matches!(mode, TlsMode::Prefer | TlsMode::Require) {
        return Ok(Some(SslOpts::default().with_danger_accept_invalid_certs(true)));
    }
    let roots = authorities(roots)?.into_iter().map(|root| root.as_ref().to_vec().into());
    let options = SslOpts::default()
        .with_disable_built_in_roots(true)
        .with_root_certs(roots.collect())
        .with_danger_skip_domain_validation(mode == TlsMode::VerifyCa);
    Ok(Some(options))
}

/// Whether the certificate is good, but for another server.
pub(super) fn is_wrong_name(error: &mysql_async::Error) -> bool {
    error.to_string().contains("not valid for name")
}

/// The same for a server whose certificate has another name.
pub(super) fn for_any_name(options: SslOpts) -> SslOpts {
    options.with_danger_tls_hostname_override(Some(ANY_NAME))
}

fn unusable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, message)
        .with_hint("check sslmode and sslrootcert of the state store's credential")
}

/// Certificates that can be trusted; the driver refuses all for one that it cannot read.
fn authorities(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>> {
    let mut found = match file {
        None => rustls_native_certs::load_native_certs().certs,
        Some(file) => {
            let unreadable = || unusable(format!("sslrootcert {} cannot be read", file.display()));
            CertificateDer::pem_file_iter(file)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| unreadable().with_source(error))?
        }
    };
    found.retain(|certificate| RootCertStore::empty().add(certificate.clone()).is_ok());
    match (found.is_empty(), file) {
        (false, _) => Ok(found),
        (true, Some(file)) => {
            Err(unusable(format!("sslrootcert {} holds no certificate", file.display())))
        }
        (true, None) => Err(unusable("the operating system has no trusted certificates")),
    }
}
