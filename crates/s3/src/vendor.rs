//! The headers of the Tigris dialect: which there are, to what they apply, and what their values say.
//!
//! A header that is neglected does something else than was asked for: without its header a snapshot's deletion is the bucket's, and
//! a rename is a copy. So a header that is not known is refused, and so is a known one where it has no meaning.

use crate::errors::error;
use hyper::{HeaderMap, Method};
use mw_model::Version;
use s3s::{S3Error, S3ErrorCode, S3Result};

/// Asks for version ids in a new bucket.
pub(crate) const ENABLE: &str = "x-tigris-enable-snapshot";
/// Takes a snapshot (PUT of a bucket), or names the bucket whose snapshots are listed (GET of the store).
pub(crate) const SNAPSHOT: &str = "x-tigris-snapshot";
/// The instant to read, to copy from, or of the snapshot to delete.
pub(crate) const VERSION: &str = "x-tigris-snapshot-version";
/// The bucket to fork; in answers, the one that was forked.
pub(crate) const FORK_SOURCE: &str = "x-tigris-fork-source-bucket";
/// The instant to fork.
pub(crate) const FORK_AT: &str = "x-tigris-fork-source-bucket-snapshot";
/// The bucket whose forks are listed.
pub(crate) const FORKS_OF: &str = "x-tigris-fork";
/// The fork to merge.
pub(crate) const MERGE: &str = "x-tigris-merge-source-bucket";
/// Brings the base's changes to a fork.
pub(crate) const REBASE: &str = "x-tigris-rebase";
/// Deletes a bucket with what is in it, as clients in Python say it.
pub(crate) const FORCE: &str = "x-tigris-force-delete";
/// The same, as clients in JavaScript say it.
pub(crate) const FORCE_BARE: &str = "tigris-force-delete";
/// Makes a copy a rename.
pub(crate) const RENAME: &str = "x-tigris-rename";
/// How a bundle is packed.
pub(crate) const BUNDLE_FORMAT: &str = "x-tigris-bundle-format";
/// How a bundle is compressed.
pub(crate) const BUNDLE_COMPRESSION: &str = "x-tigris-bundle-compression";
/// What a key that is not there does to a bundle.
pub(crate) const BUNDLE_ON_ERROR: &str = "x-tigris-bundle-on-error";
/// In answers: whether a bucket has forks.
pub(crate) const IS_PARENT: &str = "x-tigris-is-fork-parent";

/// Headers that say where to place data; there is one place, so they may be neglected.
const PLACEMENT: [&str; 5] = [
    "x-tigris-regions",
    "x-tigris-namespace",
    "x-tigris-consistent",
    "x-tigris-list-source",
    "x-tigris-schedule-migration",
];

/// The longest label of a snapshot, in bytes.
const LABEL_MAX: usize = 255;

/// Whether a header belongs to the dialect.
pub(crate) fn is_vendor(name: &str) -> bool {
    name.starts_with("x-tigris-") || name == FORCE_BARE
}

/// What a request is addressed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// All buckets.
    Store,
    /// One bucket.
    Bucket,
    /// An object.
    Object,
}

/// A request, as far as it decides which headers have a meaning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim<'a> {
    /// The method.
    pub(crate) method: &'a Method,
    /// What it is addressed to.
    pub(crate) place: Place,
    /// Whether it is about the thing itself and none of its properties (`?tagging`).
    pub(crate) plain: bool,
    /// Whether it names a source to copy.
    pub(crate) copies: bool,
}

impl Aim<'_> {
    /// Whether a header has a meaning here; none when it is not known at all.
    fn takes(self, name: &str) -> Option<bool> {
        let is = |method: &Method, place| self.method == method && self.place == place;
        let reads = matches!(*self.method, Method::GET | Method::HEAD) && self.place != Place::Store;
        let changes = |method| is(method, Place::Bucket) && self.plain;
        let copies = is(&Method::PUT, Place::Object) && self.copies;
        Some(match name {
            ENABLE | FORK_SOURCE | FORK_AT | MERGE | REBASE => changes(&Method::PUT),
            SNAPSHOT => changes(&Method::PUT) || is(&Method::GET, Place::Store),
            VERSION => reads || copies || changes(&Method::DELETE) || is(&Method::POST, Place::Bucket),
            FORKS_OF => is(&Method::GET, Place::Store),
            FORCE | FORCE_BARE => changes(&Method::DELETE),
            RENAME => copies,
            BUNDLE_FORMAT | BUNDLE_COMPRESSION | BUNDLE_ON_ERROR => is(&Method::POST, Place::Bucket),
            name => return PLACEMENT.contains(&name).then_some(true),
        })
    }

    /// Refuses a header of the dialect that is not known, that has no meaning here, or that is given twice.
    ///
    /// # Errors
    /// `NotImplemented` or `InvalidArgument`, with the header's name.
    pub(crate) fn check(self, headers: &HeaderMap) -> S3Result<()> {
        for name in headers.keys().map(|n| n.as_str()).filter(|n| is_vendor(n)) {
            match self.takes(name) {
                None => {
                    return Err(error(
                        S3ErrorCode::NotImplemented,
                        format!("A header you provided implies functionality that is not implemented: {name}"),
                    ));
                }
                Some(false) => {
                    return Err(argument(format!(
                        "The header {name} has no meaning in this request; nothing was done."
                    )));
                }
                Some(true) if headers.get_all(name).iter().count() > 1 => {
                    return Err(argument(format!("The header {name} is given more than once.")));
                }
                Some(true) => {}
            }
        }
        Ok(())
    }
}

/// Makes the answer to a value that cannot be one.
pub(crate) fn argument(message: impl Into<String>) -> S3Error {
    error(S3ErrorCode::InvalidArgument, message)
}

/// Returns a header's text.
///
/// # Errors
/// `InvalidArgument` when it is empty or no text.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> S3Result<Option<&'a str>> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match value.to_str().map(str::trim) {
        Ok(text) if !text.is_empty() => Ok(Some(text)),
        _ => Err(argument(format!("The header {name} is empty or no text."))),
    }
}

/// Reads a header that is `true` or `false`.
///
/// # Errors
/// `InvalidArgument` for any other value.
pub(crate) fn flag(headers: &HeaderMap, name: &str) -> S3Result<bool> {
    match text(headers, name)? {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
        Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
        Some(_) => Err(argument(format!("The header {name} is true or false."))),
    }
}

/// Reads an instant: UNIX nanoseconds, with or without the name of a snapshot behind it.
///
/// # Errors
/// `InvalidArgument` when it is no such number.
pub(crate) fn version(headers: &HeaderMap, name: &str) -> S3Result<Option<Version>> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    let digits = value.split_once(';').map_or(value, |(number, _)| number).trim();
    if !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && let Ok(number) = digits.parse()
    {
        return Ok(Some(Version(number)));
    }
    Err(argument(format!("The header {name} is a snapshot's version: UNIX nanoseconds in decimal.")))
}

/// Reads `true` or `true; name=LABEL`: whether a snapshot is to be taken, and what it is called.
///
/// # Errors
/// `InvalidArgument` for any other value, and for a label over 255 bytes or with control characters.
pub(crate) fn label(headers: &HeaderMap) -> S3Result<Option<Option<String>>> {
    let Some(value) = headers.get(SNAPSHOT) else { return Ok(None) };
    // Some clients send UTF-8, others Latin-1.
    let value = match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => value.as_bytes().iter().map(|b| char::from(*b)).collect(),
    };
    let wrong = || argument(format!("The header {SNAPSHOT} is `true`, or `true; name=` and a name."));
    let value = value.trim();
    let rest = value.get(..4).filter(|t| t.eq_ignore_ascii_case("true")).map(|_| value[4..].trim_start());
    let label = match rest.ok_or_else(wrong)? {
        "" => return Ok(Some(None)),
        rest => rest.strip_prefix(';').and_then(|r| r.trim_start().strip_prefix("name=")).ok_or_else(wrong)?,
    };
    if label.len() > LABEL_MAX || label.chars().any(char::is_control) {
        return Err(argument(format!("A snapshot's name has at most {LABEL_MAX} bytes and no control characters.")));
    }
    Ok(Some(Some(label.to_owned()).filter(|l| !l.is_empty())))
}

#[cfg(test)]
mod tests;
