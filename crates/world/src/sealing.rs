//! Secrets of keys, sealed: who reads `meta`, or a copy of it, learns none of them.
//!
//! A signature can be verified only with the secret itself, so that a hash of it would not do. It is encrypted with XChaCha20-Poly1305
//! under a key that lies outside `meta`, and bound to the id of its key, so that two records cannot swap their secrets.

use crate::error::{Error, Result};
use bytes::Bytes;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use mw_env::Env;
use mw_model::ErrorKind;

/// The length of a nonce, in bytes: long enough to be drawn at random for ever.
const NONCE: usize = 24;

/// The key under which secrets are sealed. Never printed.
#[derive(Clone)]
pub struct SealingKey([u8; 32]);

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealingKey(…)")
    }
}

impl SealingKey {
    /// Takes 32 random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(self.0))
    }

    fn seal(&self, env: &Env, id: &str, secret: &str) -> Result<Bytes> {
        let mut nonce = [0; NONCE];
        env.fill(&mut nonce);
        let payload = Payload { msg: secret.as_bytes(), aad: id.as_bytes() };
        let sealed = self
            .cipher()
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| Error::new(ErrorKind::Io, "a secret could not be sealed"))?;
        Ok([&nonce[..], &sealed].concat().into())
    }

    fn open(&self, id: &str, sealed: &[u8]) -> Result<String> {
        let wrong = || {
            Error::corrupt(format!(
                "the secret of key {id} does not open: the sealing key is not the one it was sealed with; put the file sealing-key of \
                 this store back"
            ))
        };
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE>().ok_or_else(wrong)?;
        let payload = Payload { msg: sealed, aad: id.as_bytes() };
        let secret = self.cipher().decrypt(&XNonce::from(*nonce), payload).map_err(|_| wrong())?;
        String::from_utf8(secret).map_err(|_| wrong())
    }
}

/// A secret as it is stored.
#[derive(Clone, PartialEq)]
pub(crate) enum Kept {
    /// Readable: in a store without a sealing key, which is one in memory or of an old format.
    Plain(String),
    Sealed(Bytes),
}

impl Kept {
    /// Seals a secret, when there is a key to seal it with.
    pub(crate) fn keep(key: Option<&SealingKey>, env: &Env, id: &str, secret: &str) -> Result<Self> {
        Ok(match key {
            Some(key) => Self::Sealed(key.seal(env, id, secret)?),
            None => Self::Plain(secret.to_owned()),
        })
    }

    /// Returns the secret.
    pub(crate) fn reveal(&self, key: Option<&SealingKey>, id: &str) -> Result<String> {
        match (self, key) {
            (Self::Plain(secret), _) => Ok(secret.clone()),
            (Self::Sealed(sealed), Some(key)) => key.open(id, sealed),
            (Self::Sealed(_), None) => Err(Error::corrupt(
                "the secrets of this store are sealed, and there is no sealing key; put the file sealing-key of this store back",
            )),
        }
    }
}
