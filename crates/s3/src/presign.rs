//! Presigned URLs, made here for a key whose secret the store knows (AWS, *Authenticating requests: using query parameters*).
//!
//! Whoever has the URL may do this one thing until it expires or the key dies.

use crate::names::percent;
use hmac::{Hmac, KeyInit, Mac};
use s3s::dto::{Timestamp, TimestampFormat};
use sha2::{Digest, Sha256};
use std::time::{Duration, SystemTime};

/// The longest life of a presigned URL, in seconds (AWS: seven days).
pub const EXPIRES_MAX: u64 = 7 * 24 * 60 * 60;

/// What a URL is for, and who signs it.
#[derive(Clone, Copy)]
pub struct Presign<'a> {
    /// The address of the store, as the client reaches it: `http://host:port`.
    pub base: &'a str,
    /// The method: `GET` or `PUT`.
    pub method: &'a str,
    /// The bucket.
    pub bucket: &'a str,
    /// The key, as S3 shows it.
    pub key: &'a str,
    /// The version to read; none: the one that is there when the URL is used.
    pub version: Option<&'a str>,
    /// The id of the access key.
    pub id: &'a str,
    /// Its secret.
    pub secret: &'a str,
    /// Its session token, when it is a temporary one.
    pub token: Option<&'a str>,
    /// The time of the signature, in UNIX nanoseconds.
    pub now: u64,
    /// How long the URL is good for, in seconds, at most [`EXPIRES_MAX`].
    pub expires: u64,
}

impl std::fmt::Debug for Presign<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Presign({} {}/{} by {})", self.method, self.bucket, self.key, self.id)
    }
}

/// The region of the scope. Every region is this one.
const REGION: &str = "auto";

/// Makes a presigned URL in path style.
pub fn presign(ask: &Presign<'_>) -> String {
    let (base, host) = parts(ask.base);
    let date = date(ask.now);
    let day = &date[..8];
    let scope = format!("{day}/{REGION}/s3/aws4_request");
    let mut query = vec![
        ("X-Amz-Algorithm", "AWS4-HMAC-SHA256".to_owned()),
        ("X-Amz-Credential", format!("{}/{scope}", ask.id)),
        ("X-Amz-Date", date.clone()),
        ("X-Amz-Expires", ask.expires.to_string()),
        ("X-Amz-SignedHeaders", "host".to_owned()),
    ];
    query.extend(ask.token.map(|token| ("X-Amz-Security-Token", token.to_owned())));
    query.extend(ask.version.map(|version| ("versionId", version.to_owned())));
    query.sort();
    let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let query = query.join("&");
    let path = format!("/{}/{}", percent(ask.bucket), percent(ask.key));
    let request = format!("{}\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD", ask.method);
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(request)));
    let key = [day, REGION, "s3", "aws4_request"]
        .iter()
        .fold(format!("AWS4{}", ask.secret).into_bytes(), |key, part| hmac(&key, part));
    format!("{base}{path}?{query}&X-Amz-Signature={}", hex(&hmac(&key, &text)))
}

/// Splits an address into what stands before the path, and the host as a client sends it: without the port that the scheme implies.
fn parts(base: &str) -> (&str, &str) {
    let base = base.trim_end_matches('/');
    let (scheme, host) = base.split_once("://").unwrap_or(("", base));
    let implied = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    (base, host.strip_suffix(implied).unwrap_or(host))
}

/// Writes an instant as SigV4 has it.
fn date(now: u64) -> String {
    let mut text = Vec::new();
    let stamp = Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_nanos(now));
    // Clocks of 64 bits of nanoseconds end in 2554, so every instant can be written.
    if stamp.format(TimestampFormat::DateTime, &mut text).is_err() || text.len() < 19 {
        text = b"1970-01-01T00:00:00".to_vec();
    }
    let digits = text[..19].iter().filter(|b| !matches!(b, b'-' | b':')).map(|b| char::from(*b));
    digits.chain(['Z']).collect()
}

/// Percent-encodes everything but unreserved characters.
fn encoded(text: &str) -> String {
    percent(text).replace('/', "%2F")
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    // HMAC takes a key of any length, so that this cannot fail.
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes a key of any length"));
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    //! The example of the AWS reference, whose region and host are its own, cannot be made here; what is made is used over HTTP in
    //! the integration tests. Here: the parts.

    use super::*;

    #[test]
    fn addresses_and_dates() {
        assert_eq!(parts("http://127.0.0.1:9000/"), ("http://127.0.0.1:9000", "127.0.0.1:9000"));
        assert_eq!(parts("https://s3.example:443"), ("https://s3.example:443", "s3.example"));
        assert_eq!(parts("http://s3.example:443"), ("http://s3.example:443", "s3.example:443"));
        assert_eq!(date(1_369_353_600_000_000_000), "20130524T000000Z");
        assert_eq!(date(1_369_353_601_999_000_000), "20130524T000001Z");
        assert_eq!(encoded("a/b c+ü~"), "a%2Fb%20c%2B%C3%BC~");
    }

    #[test]
    fn secrets_are_not_shown() {
        let ask = Presign {
            base: "http://h",
            method: "GET",
            bucket: "b",
            key: "k",
            version: None,
            id: "id",
            secret: "hidden",
            token: Some("hidden"),
            now: 0,
            expires: 1,
        };
        assert!(!format!("{ask:?}").contains("hidden"));
        let url = presign(&ask);
        assert!(url.starts_with(
            "http://h/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=id%2F19700101%2Fauto%2Fs3%2Faws4_request&"
        ));
    }
}
