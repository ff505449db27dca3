//! The value of `x-amz-copy-source`: `bucket/key`, percent-encoded once, with or without a leading slash.
//!
//! Decoded here and nowhere else, so that what is authorised and what is read are the same bytes.

use crate::errors::error;
use crate::names::{key_of, unpercent};
use bytes::Bytes;
use s3s::{S3ErrorCode, S3Result};

/// What is to be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// The world's name, as written.
    pub(crate) bucket: String,
    /// The key.
    pub(crate) key: Bytes,
    /// The version asked for.
    pub(crate) version: Option<String>,
}

impl Source {
    /// Reads a header's value.
    ///
    /// # Errors
    /// `InvalidArgument` when it does not name a bucket and a key.
    pub(crate) fn parse(value: &[u8]) -> S3Result<Self> {
        let wrong = || {
            error(
                S3ErrorCode::InvalidArgument,
                "Copy Source must mention the source bucket and key: sourcebucket/sourcekey",
            )
        };
        let mark = b"?versionId=";
        // The key's own question marks are encoded, so the first raw one starts the query.
        let cut = value.windows(mark.len()).position(|w| w == mark);
        let (path, version) = match cut {
            Some(at) => (&value[..at], Some(unpercent(&value[at + mark.len()..]))),
            None => (value, None),
        };
        let path = unpercent(path);
        let path = path.strip_prefix(b"/").unwrap_or(&path);
        let cut = path.iter().position(|b| *b == b'/').ok_or_else(wrong)?;
        let (bucket, key) = (&path[..cut], &path[cut + 1..]);
        if bucket.is_empty() || key.is_empty() {
            return Err(wrong());
        }
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| wrong());
        // Raw bytes that are not UTF-8 are the key itself; a text may hold the escapes of such bytes.
        let key = match std::str::from_utf8(key) {
            Ok(text) => key_of(text)?,
            Err(_) => Bytes::copy_from_slice(key),
        };
        Ok(Self { bucket: text(bucket)?, key, version: version.as_deref().map(text).transpose()? })
    }
}

#[cfg(test)]
mod tests;
