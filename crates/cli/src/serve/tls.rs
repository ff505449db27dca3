//! TLS of the listener: which certificate it shows, and how that is exchanged while it runs.
//!
//! A certificate that does not load never takes the place of one that does: files are changed one after the other, and what does not
//! fit together now may fit in a moment.

use super::authority;
use crate::failure::{Failure, Result};
use mw_env::Env;
use mw_model::ErrorKind;
use parking_lot::RwLock;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ServerConfig};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// Files of the owner's: a certificate with its chain, and its key.
    Files {
        /// The certificate and its chain, PEM.
        cert: PathBuf,
        /// The key, PEM.
        key: PathBuf,
    },
    /// A local authority in the server's directory.
    Local,
}

/// The listener's TLS.
pub struct Tls {
    current: Arc<Current>,
    cert: PathBuf,
    key: PathBuf,
    local: Option<Local>,
}

/// What is needed to make a new certificate of the local authority.
struct Local {
    dir: PathBuf,
    names: Vec<String>,
    env: Env,
}

/// The certificate that is shown now.
struct Current(RwLock<Arc<CertifiedKey>>);

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Current")
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

impl Tls {
    /// Loads the certificate; that of the local authority, for `names`, is made first.
    ///
    /// # Errors
    /// A file cannot be read or is not what it should be, or the two do not belong together.
    pub fn open(source: &Source, dir: &Path, names: Vec<String>, env: &Env) -> Result<Self> {
        let (cert, key, local) = match source {
            Source::Files { cert, key } => (cert.clone(), key.clone(), None),
            Source::Local => {
                authority::issue(dir, &names, env)?;
                let (cert, key) = authority::files(dir);
                (cert, key, Some(Local { dir: dir.to_owned(), names, env: env.clone() }))
            }
        };
        let current = Arc::new(Current(RwLock::new(Arc::new(load(&cert, &key)?))));
        Ok(Self { current, cert, key, local })
    }

    /// Returns what makes a connection an encrypted one.
    ///
    /// # Errors
    /// None in practice: the versions and ciphers are the library's own.
    pub fn acceptor(&self) -> Result<TlsAcceptor> {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| Failure::new(ErrorKind::Io, format!("TLS cannot be set up: {e}")))?;
        let mut config = config.with_no_client_auth().with_cert_resolver(self.current.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Loads the certificate again whenever its files change, or the process is told to (SIGHUP). Never ends.
    pub async fn watch(&self) {
        let Ok(mut told) = signal(SignalKind::hangup()) else { return std::future::pending().await };
        let mut seen = self.stamps();
        loop {
            let asked = tokio::select! {
                _ = tokio::time::sleep(LOOK) => false,
                _ = told.recv() => true,
            };
            if let Some(local) = &self.local
                && authority::is_old(&self.cert, &local.env)
                && let Err(error) = authority::issue(&local.dir, &local.names, &local.env)
            {
                tracing::warn!(%error, "the certificate cannot be renewed");
            }
            let now = self.stamps();
            if now == seen && !asked {
                continue;
            }
            match load(&self.cert, &self.key) {
                Ok(key) => {
                    *self.current.0.write() = Arc::new(key);
                    seen = now;
                    tracing::info!(cert = %self.cert.display(), "the certificate was loaded again");
                }
                Err(error) => tracing::warn!(%error, "the certificate changed and does not load; the old one stays"),
            }
        }
    }

    fn stamps(&self) -> [Option<(SystemTime, u64)>; 2] {
        [&self.cert, &self.key].map(|path| {
            let meta = std::fs::metadata(path).ok()?;
            Some((meta.modified().ok()?, meta.len()))
        })
    }
}

fn load(cert: &Path, key: &Path) -> Result<CertifiedKey> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| {
        Failure::new(
            ErrorKind::Invalid,
            format!("{}: {why}; give PEM files with --tls-cert and --tls-key", path.display()),
        )
    };
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(cert).and_then(Iterator::collect).map_err(|e| wrong(cert, &e))?;
    if chain.is_empty() {
        return Err(wrong(cert, &"holds no certificate"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|e| wrong(key, &e))?;
    CertifiedKey::from_der(chain, secret, &ring::default_provider()).map_err(|e| match e {
        rustls::Error::InconsistentKeys(_) => wrong(key, &"is not the key of the certificate"),
        e => wrong(cert, &e),
    })
}
