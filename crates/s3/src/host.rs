//! Virtual hosts: `bucket.SUFFIX` names a bucket; every other host, the suffix itself included, is path style.

use crate::names::unpercent;
use hyper::HeaderMap;
use hyper::header::HOST;
use hyper::http::request::Parts;
use s3s::S3Result;
use s3s::host::{S3Host, VirtualHost};

/// The suffix under which the first labels of a host name are a bucket.
#[derive(Debug, Clone)]
pub(crate) struct Suffix(String);

impl Suffix {
    /// Takes a suffix, with or without a leading dot or a port.
    pub(crate) fn new(suffix: &str) -> Self {
        Self(without_port(suffix.trim_start_matches('.')).to_ascii_lowercase())
    }

    fn bucket<'a>(&self, host: &'a str) -> Option<&'a str> {
        let host = without_port(host);
        let cut = host.len().checked_sub(self.0.len() + 1)?;
        let (bucket, rest) = host.split_at_checked(cut)?;
        let named = rest.strip_prefix('.').is_some_and(|r| r.eq_ignore_ascii_case(&self.0));
        (named && !bucket.is_empty()).then_some(bucket)
    }
}

/// Returns the bucket that a request names, and the key, by host or by path, with escapes resolved once; none where it names none.
pub(crate) fn place(parts: &Parts, suffix: Option<&Suffix>) -> Option<(String, String)> {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let path = String::from_utf8(unpercent(parts.uri.path().as_bytes())).ok()?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    if let Some(bucket) = suffix.and_then(|suffix| suffix.bucket(host)) {
        return Some((bucket.to_owned(), path.to_owned()));
    }
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    (!bucket.is_empty()).then(|| (bucket.to_owned(), key.to_owned()))
}

/// Whether the host of a request names a bucket.
pub(crate) fn is_virtual(suffix: Option<&Suffix>, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|h| h.to_str().ok()).unwrap_or_default();
    suffix.is_some_and(|suffix| suffix.bucket(host).is_some())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

impl S3Host for Suffix {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        let place = VirtualHost::new(host);
        Ok(match self.bucket(host) {
            Some(bucket) => place.with_bucket(bucket),
            None => place,
        })
    }
}

#[cfg(test)]
mod tests {
    //! Which hosts name a bucket.

    use super::*;

    #[test]
    fn only_names_under_the_suffix_are_buckets() {
        let suffix = Suffix::new(".s3.example:9000");
        for (host, bucket) in [
            ("w.s3.example", Some("w")),
            ("w.s3.example:80", Some("w")),
            ("a.b.S3.Example", Some("a.b")),
            ("s3.example", None),
            (".s3.example", None),
            ("ws3.example", None),
            ("127.0.0.1:9000", None),
            ("localhost", None),
            ("", None),
            ("é.s3.example", Some("é")),
        ] {
            assert_eq!(suffix.parse_host_header(host).unwrap().bucket(), bucket, "{host}");
        }
    }
}
