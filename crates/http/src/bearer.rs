//! `Authorization: Bearer ID:SECRET`, or `ID:SECRET:TOKEN` with a temporary key: for clients that can send a fixed header and cannot sign.
//!
//! The secret itself travels, so that the caller of this takes it over TLS and on loopback alone. An unknown key and a wrong secret give
//! one answer, and the comparison takes constant time.

use crate::{Error, Result, sigv4};
use mw_model::ErrorKind;
use mw_world::{Principal, Store};

/// Returns the credentials of a header's value; none when it is of another kind.
pub fn credentials(value: &str) -> Option<&str> {
    let (scheme, rest) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim())
}

/// Returns the session token in `ID:SECRET:TOKEN`.
pub fn token(credentials: &str) -> Option<&str> {
    credentials.splitn(3, ':').nth(2)
}

/// Returns who presents `ID:SECRET` or `ID:SECRET:TOKEN`.
///
/// # Errors
/// `Denied`, with one message for whatever is wrong with it.
pub fn verify(store: &Store, credentials: &str) -> Result<Principal> {
    let refused = || {
        Error::new(
            ErrorKind::Denied,
            "the bearer token names no live key; send Authorization: Bearer ID:SECRET with a key of `mw key create`",
        )
    };
    let (id, rest) = credentials.split_once(':').ok_or_else(refused)?;
    let (secret, token) = (rest.split_once(':').map_or(rest, |(secret, _)| secret), token(credentials));
    let known = store.secret(id)?;
    let digest = |text: &str| sigv4::hmac(b"bearer", text.as_bytes());
    // An unknown key is compared with a made-up secret, so that it takes as long as a wrong one.
    let same = sigv4::is_hmac(b"bearer", known.as_deref().unwrap_or("unknown").as_bytes(), &digest(secret));
    if !same || known.is_none() || !store.token_fits(id, token)? {
        return Err(refused());
    }
    store.principal(id).map_err(|_| refused())
}
