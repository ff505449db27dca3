//! A local certificate authority in the server's directory, for TLS without a public name.
//!
//! `DIR/tls/ca.pem` is made once and is what clients trust; the server's own certificate is made anew at each start and once a month.
//! Keys are for the owner of the directory alone. `DIR/tls/bundle.pem` holds the authority beside the certificates that this machine trusts
//! already, for clients whose setting replaces those.

use crate::dir;
use crate::failure::{Failure, Result};
use mw_env::Env;
use mw_model::{ErrorKind, when};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The certificate that clients trust.
pub const CA: &str = "ca.pem";
/// The same beside those that this machine trusts already.
pub const BUNDLE: &str = "bundle.pem";
const CA_KEY: &str = "ca-key.pem";
const CERT: &str = "server.pem";
const KEY: &str = "server-key.pem";

/// How long the authority, and a certificate of it, are valid, in days.
const CA_DAYS: i64 = 3_650;
const CERT_DAYS: i64 = 90;
/// The age at which a certificate is made anew.
const OLD: Duration = Duration::from_secs(30 * 86_400);
/// Where systems keep the certificates that they trust.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];

/// Returns the folder of a server's directory.
pub fn folder(dir: &Path) -> PathBuf {
    dir.join("tls")
}

/// Returns the server's certificate and its key.
pub fn files(dir: &Path) -> (PathBuf, PathBuf) {
    let folder = folder(dir);
    (folder.join(CERT), folder.join(KEY))
}

/// Returns whether a certificate is so old that it should be made anew.
pub fn is_old(cert: &Path, env: &Env) -> bool {
    let modified = std::fs::metadata(cert).and_then(|meta| meta.modified()).ok();
    let made = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    made.is_some_and(|made| Duration::from_nanos(env.now()) > made + OLD)
}

/// Makes a certificate for `names` (host names and addresses), and the authority when there is none.
///
/// # Errors
/// A file cannot be read or written, or holds no key.
pub fn issue(dir: &Path, names: &[String], env: &Env) -> Result<()> {
    let folder = folder(dir);
    dir::make(&folder)?;
    let failed = |e: rcgen::Error| Failure::new(ErrorKind::Io, format!("{}: {e}", folder.display()));
    let authority = match std::fs::read_to_string(folder.join(CA_KEY)) {
        Ok(pem) => KeyPair::from_pem(&pem).map_err(|e| {
            Failure::new(
                ErrorKind::Corrupt,
                format!("{}: {e}; remove the folder for a new authority", folder.join(CA_KEY).display()),
            )
        })?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let key = KeyPair::generate().map_err(failed)?;
            dir::write(&folder, CA_KEY, key.serialize_pem().as_bytes(), env)?;
            key
        }
        Err(e) => return Err(Failure::io(folder.join(CA_KEY).display(), e)),
    };
    let params = authority_params(&authority, env.now());
    if !folder.join(CA).exists() {
        let cert = params.self_signed(&authority).map_err(failed)?;
        dir::write(&folder, CA, cert.pem().as_bytes(), env)?;
    }
    let own = std::fs::read(folder.join(CA)).map_err(|e| Failure::io(folder.join(CA).display(), e))?;
    dir::write(&folder, BUNDLE, &[own, system()].concat(), env)?;
    let issuer = Issuer::new(params, authority);
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::new(names.to_vec()).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "manyworlds");
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    valid(&mut params, env.now(), CERT_DAYS);
    let cert = params.signed_by(&key, &issuer).map_err(failed)?;
    dir::write(&folder, KEY, key.serialize_pem().as_bytes(), env)?;
    dir::write(&folder, CERT, cert.pem().as_bytes(), env)
}

/// Describes the authority of a key. Its name follows from the key, so that two of them can be trusted side by side.
fn authority_params(key: &KeyPair, now: u64) -> CertificateParams {
    let mark = mw_http::sigv4::sha256_hex(key.public_key_raw());
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, format!("Manyworlds local authority {}", &mark[..8]));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid(&mut params, now, CA_DAYS);
    params
}

/// Makes a certificate valid from yesterday on, for so many days.
fn valid(params: &mut CertificateParams, now: u64, days: i64) {
    let day = |days: i64| {
        let text = when::rfc3339((now as i64).saturating_add(days * 86_400_000_000_000));
        let number = |range: std::ops::Range<usize>| text[range].parse::<u8>().unwrap_or(1);
        date_time_ymd(text[..4].parse().unwrap_or(1970), number(5..7), number(8..10))
    };
    params.not_before = day(-1);
    params.not_after = day(days);
}

/// Returns the certificates that this machine trusts.
fn system() -> Vec<u8> {
    SYSTEM.iter().find_map(|path| std::fs::read(path).ok()).unwrap_or_default()
}
