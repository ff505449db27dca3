//! AWS Signature Version 4 in the `Authorization` header, both ways: a server verifies, a client signs. Performs no I/O.
//!
//! The rules are those of the AWS reference (*Create a signed AWS API request*) with the peculiarity of S3 that the path is
//! encoded once. Any region; which services are taken, the caller says. Invariants: what is not signed is not trusted (host, date and payload hash must be
//! among the signed headers); the comparison takes constant time; an unknown key and a wrong signature give one answer.

pub mod uri;

use hmac::{Hmac, KeyInit, Mac};
use hyper::HeaderMap;
use mw_model::{ErrorKind, when};
use sha2::{Digest, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// How far the client's clock may be off, in seconds (AWS: 15 minutes).
pub const SKEW: i64 = 15 * 60;
/// The payload hash of a body that is not signed.
pub const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
/// The header with the session token of a temporary key.
const TOKEN: &str = "x-amz-security-token";

/// Why a request is not believed, or cannot be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    fn invalid(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Invalid, message: message.into() }
    }

    /// Returns what a caller can act on: `Denied` or `Invalid`.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// A key and its secret.
#[derive(Clone)]
pub struct Credentials {
    /// The key's id.
    pub id: String,
    /// The secret.
    pub secret: String,
    /// The session token of a temporary key, which goes with every request; a lasting key has none.
    pub token: Option<String>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What the signature covers of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// The SHA-256 of the body; the reader of the body must compare it.
    Sha256([u8; 32]),
    /// Nothing: a stream.
    Unsigned,
}

impl Payload {
    /// Checks a whole body against the signed hash.
    ///
    /// # Errors
    /// `Invalid` when the body is not the one that was signed; `Denied` when it was not signed at all and is not empty.
    pub fn check(&self, body: &[u8]) -> Result<()> {
        match self {
            Self::Sha256(hash) if *hash == <[u8; 32]>::from(Sha256::digest(body)) => Ok(()),
            Self::Sha256(_) => {
                Err(Error::invalid("the body is not the one that was signed (x-amz-content-sha256); sign it again"))
            }
            Self::Unsigned if body.is_empty() => Ok(()),
            Self::Unsigned => Err(refused("this verb needs a signed body: send its SHA-256 in x-amz-content-sha256")),
        }
    }
}

/// The parts of a request that are signed.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The method, in upper case.
    pub method: &'a str,
    /// The path as it is sent, percent-encoded.
    pub path: &'a str,
    /// The query as it is sent, without `?`.
    pub query: &'a str,
}

/// What a verified signature says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The key that signed.
    pub key: String,
    /// What the signature covers of the body.
    pub payload: Payload,
}

fn refused(message: impl Into<String>) -> Error {
    Error { kind: ErrorKind::Denied, message: message.into() }
}

fn mac(key: &[u8], message: &[u8]) -> Hmac<Sha256> {
    // HMAC takes a key of any length, so that this cannot fail.
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes a key of any length"));
    mac.update(message);
    mac
}

/// Returns the HMAC-SHA256 of a message.
pub fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    mac(key, message).finalize().into_bytes().to_vec()
}

/// Returns whether `given` is the HMAC-SHA256 of a message; takes the same time whatever it is.
pub fn is_hmac(key: &[u8], message: &[u8], given: &[u8]) -> bool {
    mac(key, message).verify_slice(given).is_ok()
}

/// Returns the key that signs what a secret may sign on one day, in one region, for one service.
pub fn signing_key(secret: &str, date: &str, region: &str, service: &str) -> Vec<u8> {
    Scope { date, region, service }.key(secret)
}

/// Returns the lower-case hexadecimal SHA-256 of `bytes`.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The scope of a signature: who, when, where.
struct Scope<'a> {
    date: &'a str,
    region: &'a str,
    service: &'a str,
}

impl Scope<'_> {
    fn text(&self) -> String {
        format!("{}/{}/{}/aws4_request", self.date, self.region, self.service)
    }

    fn key(&self, secret: &str) -> Vec<u8> {
        let date = hmac(format!("AWS4{secret}").as_bytes(), self.date.as_bytes());
        let region = hmac(&date, self.region.as_bytes());
        let service = hmac(&region, self.service.as_bytes());
        hmac(&service, b"aws4_request")
    }
}

fn canonical_query(query: &str) -> Result<String> {
    let mut pairs: Vec<_> = uri::pairs(query)?
        .into_iter()
        .map(|(name, value)| (uri::encode(&name, false), uri::encode(&value, false)))
        .collect();
    pairs.sort();
    Ok(pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&"))
}

/// Builds the canonical request out of `headers`, each a lower-case name and its value, sorted by name.
fn canonical(request: Request<'_>, headers: &[(String, String)], payload: &str) -> Result<String> {
    let mut text = format!(
        "{}\n{}\n{}\n",
        request.method,
        uri::encode(&uri::decode(request.path)?, true),
        canonical_query(request.query)?
    );
    for (name, value) in headers {
        // Runs of spaces count as one.
        let value = value.split(' ').filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        text.push_str(&format!("{name}:{value}\n"));
    }
    let names: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
    text.push_str(&format!("\n{}\n{payload}", names.join(";")));
    Ok(text)
}

fn string_to_sign(time: &str, scope: &Scope<'_>, canonical: &str) -> String {
    format!("{ALGORITHM}\n{time}\n{}\n{}", scope.text(), sha256_hex(canonical.as_bytes()))
}

/// Signs a request and returns the headers to add: `x-amz-date`, `x-amz-content-sha256`, `authorization`, and `x-amz-security-token` where
/// the key has a session token. `headers` are the other headers to sign, `host` among them; `payload` is the body's SHA-256 in hexadecimal or [`UNSIGNED`]; `now` is in UNIX
/// nanoseconds.
///
/// # Errors
/// `Invalid` when the path or the query has a broken escape.
pub fn sign(
    credentials: &Credentials,
    region: &str,
    request: Request<'_>,
    headers: &[(&str, &str)],
    payload: &str,
    now: u64,
) -> Result<Vec<(&'static str, String)>> {
    let time = when::basic(now);
    let scope = Scope { date: &time[..8], region, service: "s3" };
    let mut signed: Vec<(String, String)> =
        headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), (*value).to_owned())).collect();
    signed.push(("x-amz-content-sha256".to_owned(), payload.to_owned()));
    signed.push(("x-amz-date".to_owned(), time.clone()));
    signed.extend(credentials.token.as_ref().map(|token| (TOKEN.to_owned(), token.clone())));
    signed.sort();
    let names = signed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(";");
    let text = string_to_sign(&time, &scope, &canonical(request, &signed, payload)?);
    let signature = hex::encode(hmac(&scope.key(&credentials.secret), text.as_bytes()));
    let authorization = format!(
        "{ALGORITHM} Credential={}/{},SignedHeaders={names},Signature={signature}",
        credentials.id,
        scope.text()
    );
    let mut added =
        vec![("x-amz-date", time), ("x-amz-content-sha256", payload.to_owned()), ("authorization", authorization)];
    added.extend(credentials.token.as_ref().map(|token| (TOKEN, token.clone())));
    Ok(added)
}

/// Signs a request in its query, so that whoever has the URL needs no key (*Authenticating Requests: Using Query Parameters*). Returns the
/// whole query, that of `request` at its end. `host` is what the client will send as such; it works for `seconds` from `now`, in UNIX
/// nanoseconds. The session token of a temporary key travels in it.
///
/// # Errors
/// `Invalid` when the path or the query has a broken escape.
pub fn presign(
    credentials: &Credentials,
    region: &str,
    request: Request<'_>,
    host: &str,
    seconds: u64,
    now: u64,
) -> Result<String> {
    let time = when::basic(now);
    let scope = Scope { date: &time[..8], region, service: "s3" };
    let (credential, seconds) = (format!("{}/{}", credentials.id, scope.text()), seconds.to_string());
    let mut pairs = vec![
        ("X-Amz-Algorithm", ALGORITHM.as_bytes()),
        ("X-Amz-Credential", credential.as_bytes()),
        ("X-Amz-Date", time.as_bytes()),
        ("X-Amz-Expires", seconds.as_bytes()),
    ];
    pairs.extend(credentials.token.as_ref().map(|token| ("X-Amz-Security-Token", token.as_bytes())));
    pairs.push(("X-Amz-SignedHeaders", b"host"));
    let mut query = uri::query(&pairs);
    if !request.query.is_empty() {
        query = format!("{query}&{}", request.query);
    }
    let request = Request { query: &query, ..request };
    let text = string_to_sign(&time, &scope, &canonical(request, &[("host".to_owned(), host.to_owned())], UNSIGNED)?);
    let signature = hex::encode(hmac(&scope.key(&credentials.secret), text.as_bytes()));
    Ok(format!("{query}&X-Amz-Signature={signature}"))
}

/// The fields of an `Authorization` header.
struct Authorization<'a> {
    key: &'a str,
    scope: Scope<'a>,
    signed: Vec<&'a str>,
    signature: &'a str,
}

fn parse(value: &str) -> Option<Authorization<'_>> {
    let rest = value.strip_prefix(ALGORITHM)?.strip_prefix(' ')?;
    let (mut credential, mut signed, mut signature) = (None, None, None);
    for field in rest.split(',') {
        let (name, value) = field.trim().split_once('=')?;
        let slot = match name {
            "Credential" => &mut credential,
            "SignedHeaders" => &mut signed,
            "Signature" => &mut signature,
            _ => return None,
        };
        // A field given twice would let two readers see two different ones.
        if slot.replace(value).is_some() {
            return None;
        }
    }
    let mut parts = credential?.split('/');
    let (key, date, region, service, end) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let whole = parts.next().is_none() && end == "aws4_request" && !key.is_empty();
    whole.then_some(Authorization {
        key,
        scope: Scope { date, region, service },
        signed: signed?.split(';').collect(),
        signature: signature?,
    })
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(refused(format!("the header {name} is given twice; send it once")));
    }
    value.to_str().map(Some).map_err(|_| refused(format!("the header {name} is not plain text")))
}

/// Returns the session token that comes with a request of a temporary key.
///
/// # Errors
/// `Denied` when it is given twice.
pub fn token(headers: &HeaderMap) -> Result<Option<&str>> {
    header(headers, TOKEN)
}

/// Verifies a request. `now` is in UNIX nanoseconds; `secret` returns the secret of a key, `None` when it is unknown, expired
/// or deleted.
///
/// # Errors
/// `Denied`, with one message for an unknown key and a wrong signature; whatever `secret` fails with.
pub fn verify<E: From<Error>>(
    request: Request<'_>,
    headers: &HeaderMap,
    now: u64,
    taken: Taken<'_>,
    secret: impl FnOnce(&str) -> Result<Option<String>, E>,
) -> Result<Verified, E> {
    let claim = claim(request, headers, now, taken)?;
    let known = secret(claim.given.key)?;
    Ok(claim.settle(known.as_deref())?)
}

/// What is taken of a request.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// The services that a signature may be for.
    pub services: &'a [&'a str],
    /// The SHA-256 of the body in hexadecimal, for services whose clients do not send it; without it, they must.
    pub body: Option<&'a str>,
}

/// A request that is well formed, before its signature is looked at.
struct Claim<'a> {
    given: Authorization<'a>,
    payload: &'a str,
    text: String,
}

fn claim<'a>(request: Request<'_>, headers: &'a HeaderMap, now: u64, taken: Taken<'a>) -> Result<Claim<'a>> {
    let value = header(headers, "authorization")?.ok_or_else(|| {
        refused("the request is not signed; sign it with AWS Signature Version 4 in the Authorization header")
    })?;
    if request.query.split('&').any(|pair| pair.to_ascii_lowercase().starts_with("x-amz-")) {
        return Err(refused("signatures in the query are not taken here; sign with the Authorization header alone"));
    }
    let given = parse(value).ok_or_else(|| {
        refused(
            "the Authorization header is malformed; send AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…",
        )
    })?;
    if !taken.services.contains(&given.scope.service) {
        return Err(refused(format!(
            "the credential scope names the service {:?}; sign for {:?}",
            given.scope.service,
            taken.services.join(" or ")
        )));
    }
    let time = header(headers, "x-amz-date")?.ok_or_else(|| refused("the header x-amz-date is missing"))?;
    let at = when::parse_basic(time).ok_or_else(|| refused("x-amz-date is malformed; send YYYYMMDDTHHMMSSZ"))?;
    if given.scope.date != &time[..8] {
        return Err(refused("the credential scope's date is not that of x-amz-date"));
    }
    if at.abs_diff((now / 1_000_000_000) as i64) > SKEW.unsigned_abs() {
        return Err(refused(format!("the request is dated {time}, more than 15 minutes off; set the clock")));
    }
    let sent = header(headers, "x-amz-content-sha256")?;
    let payload = sent.or(taken.body).ok_or_else(|| refused("the header x-amz-content-sha256 is missing"))?;
    for needed in ["host", "x-amz-date", "x-amz-content-sha256"] {
        let absent = needed == "x-amz-content-sha256" && sent.is_none();
        if !absent && !given.signed.contains(&needed) {
            return Err(refused(format!("the header {needed} is not signed")));
        }
    }
    if header(headers, TOKEN)?.is_some() && !given.signed.contains(&TOKEN) {
        return Err(refused(format!("the header {TOKEN} is not signed")));
    }
    if !given.signed.is_sorted_by(|a, b| a < b) {
        return Err(refused("SignedHeaders must be sorted and each named once"));
    }
    let signed: Vec<(String, String)> = given
        .signed
        .iter()
        .map(|name| {
            let value =
                header(headers, name)?.ok_or_else(|| refused(format!("the signed header {name} is missing")))?;
            Ok(((*name).to_owned(), value.to_owned()))
        })
        .collect::<Result<_>>()?;
    let text = string_to_sign(time, &given.scope, &canonical(request, &signed, payload)?);
    Ok(Claim { given, payload, text })
}

impl Claim<'_> {
    fn settle(&self, known: Option<&str>) -> Result<Verified> {
        // An unknown key is checked against a made-up secret, so that it takes as long as a wrong signature.
        let key = self.given.scope.key(known.unwrap_or("unknown"));
        let signature = hex::decode(self.given.signature).unwrap_or_default();
        let matches = is_hmac(&key, self.text.as_bytes(), &signature);
        if !matches || known.is_none() {
            return Err(refused(
                "the signature does not verify, or its key is unknown, expired or deleted; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            ));
        }
        Ok(Verified { key: self.given.key.to_owned(), payload: parse_payload(self.payload)? })
    }
}

/// Returns the service that the credential scope of an `Authorization` header names; none when the header is malformed.
pub fn service_of(authorization: &str) -> Option<&str> {
    Some(parse(authorization)?.scope.service)
}

fn parse_payload(text: &str) -> Result<Payload> {
    if text == UNSIGNED {
        return Ok(Payload::Unsigned);
    }
    let mut hash = [0; 32];
    hex::decode_to_slice(text, &mut hash)
        .map_err(|_| refused(format!("x-amz-content-sha256 must be a SHA-256 in hexadecimal or {UNSIGNED}")))?;
    Ok(Payload::Sha256(hash))
}

#[cfg(test)]
mod tests;
