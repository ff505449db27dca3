//! What a request is addressed to: the bucket and the key that its host and path name, read as the router reads them.

use crate::guard::pairs;
use crate::host::Suffix;
use crate::names::unpercent;
use crate::vendor::{Aim, Place};
use hyper::header::HOST;
use hyper::{HeaderMap, Method, Uri};
use s3s::host::S3Host;

/// A bucket, or an object in it, or neither.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// The bucket; empty for the store itself.
    pub(crate) bucket: String,
    /// The key as text; empty for the bucket itself.
    pub(crate) key: String,
    /// The query, decoded, without what belongs to a signature.
    pub(crate) query: Vec<(String, String)>,
}

impl Target {
    /// Reads a request's host, path and query.
    pub(crate) fn of(uri: &Uri, headers: &HeaderMap, suffix: Option<&Suffix>) -> Self {
        let host = headers.get(HOST).and_then(|h| h.to_str().ok()).unwrap_or_default();
        let of_host = suffix.and_then(|s| s.parse_host_header(host).ok()?.bucket().map(str::to_owned));
        let path = String::from_utf8_lossy(&unpercent(uri.path().as_bytes())).into_owned();
        let path = path.strip_prefix('/').unwrap_or(&path);
        let (bucket, key) = match of_host {
            Some(bucket) => (bucket, path.to_owned()),
            None => {
                let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
                (bucket.to_owned(), key.to_owned())
            }
        };
        let mut query = pairs(uri.query().unwrap_or_default());
        query.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("x-amz-"));
        Self { bucket, key, query }
    }

    /// Returns which of the three it is.
    pub(crate) fn place(&self) -> Place {
        match (self.bucket.is_empty(), self.key.is_empty()) {
            (true, _) => Place::Store,
            (false, true) => Place::Bucket,
            (false, false) => Place::Object,
        }
    }

    /// Returns a parameter of the query.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Returns what decides which headers have a meaning. `x-id` only repeats the operation's name.
    pub(crate) fn aim<'a>(&self, method: &'a Method, headers: &HeaderMap) -> Aim<'a> {
        Aim {
            method,
            place: self.place(),
            plain: self.query.iter().all(|(name, _)| name == "x-id"),
            copies: headers.contains_key("x-amz-copy-source"),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Host and path together name one thing.

    use super::*;

    #[test]
    fn host_and_path() {
        let suffix = Suffix::new("s3.example");
        let at = |host: &str, uri: &str| {
            let headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
            let target = Target::of(&uri.parse().unwrap(), &headers, Some(&suffix));
            (target.bucket, target.key)
        };
        let is = |bucket: &str, key: &str| (bucket.to_owned(), key.to_owned());
        assert_eq!(at("127.0.0.1:9", "/"), is("", ""));
        assert_eq!(at("127.0.0.1:9", "/b"), is("b", ""));
        assert_eq!(at("127.0.0.1:9", "/b/"), is("b", ""));
        assert_eq!(at("127.0.0.1:9", "/b//"), is("b", "/"));
        assert_eq!(at("127.0.0.1:9", "/b/k%2Fl/m"), is("b", "k/l/m"));
        assert_eq!(at("127.0.0.1:9", "/b%2Fk"), is("b", "k"));
        assert_eq!(at("b.s3.example", "/"), is("b", ""));
        assert_eq!(at("b.s3.example", "/k/l"), is("b", "k/l"));
        assert_eq!(at("s3.example", "/k/l"), is("k", "l"));
    }

    #[test]
    fn the_query_without_its_signature() {
        let uri = "/b?x-id=CreateBucket&X-Amz-Signature=1&x-amz-date=2".parse().unwrap();
        let target = Target::of(&uri, &HeaderMap::new(), None);
        assert!(target.aim(&Method::PUT, &HeaderMap::new()).plain);
        let target = Target::of(&"/b?versioning".parse().unwrap(), &HeaderMap::new(), None);
        assert!(!target.aim(&Method::PUT, &HeaderMap::new()).plain);
        assert_eq!(target.param("versioning"), Some(""));
    }
}
