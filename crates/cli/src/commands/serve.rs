//! `mw serve`.

use super::Context;
use crate::failure::{DONE, Failure, Result};
use crate::serve::{self, Setup, Source};
use crate::units;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The least memory that a server is given, in bytes: below it, little but the program itself would fit.
const LEAST_MEMORY: u64 = 64 << 20;

/// Serve the store
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen; port 0 takes a free one. Without TLS, keep it on loopback or behind a proxy
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9700")]
    listen: SocketAddr,
    /// Speak TLS with this certificate (PEM, with its chain); it is loaded again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Speak TLS with a certificate of a local authority, made in the server's directory; `mw env` has clients trust it
    #[arg(long)]
    tls: bool,
    /// Serve worlds as virtual hosts under this name too: WORLD.SUFFIX
    #[arg(long, value_name = "SUFFIX")]
    host_suffix: Option<String>,
    /// The URL under which clients reach the server, where it is not the address
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// How much memory the server may use, mostly for its caches (512M, 4G)
    #[arg(long, value_name = "SIZE", default_value = "1G", env = "MW_MEMORY")]
    memory: String,
    /// Leave after this long without clients, mounts and runs
    #[arg(long, value_name = "SECONDS")]
    idle_exit: Option<u64>,
    /// Started by another command
    #[arg(long, hide = true)]
    background: bool,
    /// Take over from the program that this process was
    #[arg(long, hide = true)]
    handover: bool,
}

impl Serve {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        if self.idle_exit == Some(0) {
            return Err(Failure::usage("--idle-exit 0 would leave at once; give at least one second"));
        }
        let suffix = self.host_suffix.as_deref().map(|suffix| suffix.trim_start_matches('.'));
        if suffix.is_some_and(|suffix| {
            suffix.is_empty() || !suffix.bytes().all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b))
        }) {
            return Err(Failure::usage("--host-suffix is no host name; write s3.example"));
        }
        let memory = units::parse_size(&self.memory)?;
        if memory < LEAST_MEMORY {
            let least = units::size(LEAST_MEMORY);
            return Err(Failure::usage(format!(
                "--memory {} is too little for a server; give at least {least}",
                self.memory
            )));
        }
        let setup = Setup {
            dir: context.dir()?,
            listen: self.listen,
            host_suffix: suffix.map(str::to_owned),
            public_url: self.public_url.map(|url| url.trim_end_matches('/').to_owned()),
            tls: match (self.tls_cert, self.tls_key) {
                (Some(cert), Some(key)) => Some(Source::Files { cert, key }),
                _ => self.tls.then_some(Source::Local),
            },
            // More than can be addressed is as good as no limit.
            memory: usize::try_from(memory).unwrap_or(usize::MAX),
            idle: self.idle_exit.map(Duration::from_secs),
            background: self.background,
            heir: self.handover,
        };
        serve::serve(&setup, context.out)?;
        Ok(DONE)
    }
}
