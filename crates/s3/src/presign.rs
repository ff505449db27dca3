//! Presigned URLs, made here for a key whose secret the store knows (AWS, *Authenticating requests: using query parameters*).
//!
//! Whoever has the URL may do this one thing until it expires or the key dies.

use crate::names::percent;
use mw_sigv4::{Credentials, Request, uri};

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
    let path = format!("/{}/{}", percent(ask.bucket), percent(ask.key));
    let version: Vec<_> = ask.version.map(|version| ("versionId", version.as_bytes())).into_iter().collect();
    let request = Request { method: ask.method, path: &path, query: &uri::query(&version) };
    let token = ask.token.map(str::to_owned);
    let credentials = Credentials { id: ask.id.to_owned(), secret: ask.secret.to_owned(), token };
    let query = mw_sigv4::presign(&credentials, REGION, request, host, ask.expires, ask.now)
        .unwrap_or_else(|e| unreachable!("what was encoded here decodes: {e}"));
    format!("{base}{path}?{query}")
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

#[cfg(test)]
mod tests {
    //! The example of the AWS reference, whose region and host are its own, cannot be made here; what is made is used over HTTP in
    //! the integration tests. Here: the parts.

    use super::*;
    use mw_model::when::basic as date;

    fn encoded(text: &str) -> String {
        uri::encode(text.as_bytes(), false)
    }

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
