//! Which certificates a command trusts when its endpoint is `https://`.
//!
//! Those of this machine, those of `$AWS_CA_BUNDLE` (as the S3 clients beside it), and the local authority of the store's directory.

use crate::failure::{Failure, Result};
use mw_model::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// What may be written to and read from.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection, encrypted or not.
pub type Connection = Box<dyn Stream>;

/// What makes a connection an encrypted one.
#[derive(Clone)]
pub struct Trust(TlsConnector);

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Trust")
    }
}

impl Trust {
    /// Collects the certificates to trust. `local` is the authority of a store's directory, if there is one.
    ///
    /// # Errors
    /// `$AWS_CA_BUNDLE` names a file that cannot be read.
    pub fn new(local: &Path) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        // What of this machine's certificates cannot be read is only not trusted.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if local.exists() {
            roots.add_parsable_certificates(read(local)?);
        }
        if let Some(bundle) = std::env::var_os("AWS_CA_BUNDLE").filter(|path| !path.is_empty()) {
            roots.add_parsable_certificates(read(Path::new(&bundle))?);
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| Failure::new(ErrorKind::Io, format!("TLS cannot be set up: {e}")))?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Encrypts a connection to `HOST:PORT`.
    pub async fn secure(&self, stream: TcpStream, authority: &str) -> std::io::Result<Connection> {
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
        Ok(Box::new(self.0.connect(name, stream).await?))
    }
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|e| Failure::new(ErrorKind::Invalid, format!("{} cannot be read: {e}", path.display())))
}
