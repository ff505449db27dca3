//! The objects of a listing as text, written here: `s3s` knows how, but goes through an event and a search for each of a dozen tags,
//! which is most of what a listing costs. All around them it writes itself, with one empty object where they belong.
//!
//! Invariant: the bytes are those that `s3s` would write; a test holds one against the other.

use crate::digest::name;
use crate::errors::internal;
use crate::meta::stamp;
use crate::names::Written;
use bytes::Bytes;
use mw_world::Brief;
use s3s::dto::{ChecksumType, Object, TimestampFormat};
use s3s::xml::Serializer;
use s3s::{Body, S3Error, S3Result};
use std::io::Write;

/// What an empty object looks like, and no text that was escaped.
const PLACE: &[u8] = b"<Contents></Contents>";
/// What an object without much metadata takes, in bytes, beside its key.
const USUAL: usize = 320;
const DAY: u64 = 86_400;

/// The objects of a page, written. They travel beside the answer that they belong to.
#[derive(Debug, Clone)]
pub(crate) struct Contents(Bytes);

impl Contents {
    /// Returns what `s3s` is to write in their place.
    pub(crate) fn place(&self) -> Vec<Object> {
        if self.0.is_empty() { Vec::new() } else { vec![Object::default()] }
    }

    /// Puts them into the answer.
    pub(crate) fn fill(&self, body: Body) -> Body {
        let Some(text) = body.bytes() else { return body };
        let Some(at) = text.windows(PLACE.len()).position(|part| part == PLACE) else { return body };
        let (before, after) = (&text[..at], &text[at + PLACE.len()..]);
        Body::from([before, &self.0, after].concat())
    }
}

/// Writes the objects of a page, one after another.
pub(crate) struct Writer {
    out: Vec<u8>,
    written: Written,
    owned: bool,
    /// The day that was written last, in days since 1970, and its text up to the hour.
    day: Option<(u64, [u8; 11])>,
    failed: Option<S3Error>,
}

impl Writer {
    /// Starts a page of about `objects` objects, with or without their owner.
    pub(crate) fn new(objects: usize, written: Written, owned: bool) -> Self {
        Self { out: Vec::with_capacity(objects * USUAL), written, owned, day: None, failed: None }
    }

    /// Adds an object. After one that cannot be written nothing is.
    pub(crate) fn add(&mut self, brief: &Brief<'_>) {
        if self.failed.is_none() {
            self.failed = self.object(brief).err();
        }
    }

    /// Ends the page.
    ///
    /// # Errors
    /// An object could not be written.
    pub(crate) fn finish(self) -> S3Result<Contents> {
        self.failed.map_or_else(|| Ok(Contents(self.out.into())), Err)
    }

    fn object(&mut self, brief: &Brief<'_>) -> S3Result<()> {
        self.raw(b"<Contents>");
        for (algorithm, _) in brief.checksums {
            self.raw(b"<ChecksumAlgorithm>");
            self.raw(name(*algorithm).as_bytes());
            self.raw(b"</ChecksumAlgorithm>");
        }
        if let Some((_, composite)) = brief.checksums.first() {
            self.raw(b"<ChecksumType>");
            self.raw(if *composite { ChecksumType::COMPOSITE } else { ChecksumType::FULL_OBJECT }.as_bytes());
            self.raw(b"</ChecksumType>");
        }
        self.raw(b"<ETag>\"");
        self.raw(brief.etag.as_bytes());
        self.raw(b"\"</ETag>");
        let plain = match self.written {
            Written::Url => |b: u8| b.is_ascii_alphanumeric() || b"-_.~/".contains(&b),
            Written::Xml => is_plain,
        };
        if brief.key.iter().all(|b| plain(*b)) {
            self.raw(b"<Key>");
            self.raw(brief.key);
            self.raw(b"</Key>");
        } else {
            self.text("Key", &self.written.write(brief.key))?;
        }
        self.raw(b"<LastModified>");
        self.time(brief.modified)?;
        self.raw(b"</LastModified>");
        if self.owned {
            self.raw(b"<Owner><DisplayName>manyworlds</DisplayName><ID>manyworlds</ID></Owner>");
        }
        self.raw(b"<Size>");
        self.number(brief.size as i64);
        self.raw(b"</Size>");
        match brief.storage_class {
            None => self.raw(b"<StorageClass>STANDARD</StorageClass>"),
            Some(class) => self.text("StorageClass", class)?,
        }
        self.raw(b"</Contents>");
        Ok(())
    }

    fn raw(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    /// Writes an element with any text in it.
    fn text(&mut self, tag: &str, text: &str) -> S3Result<()> {
        Serializer::new(&mut self.out).content(tag, text).map_err(|e| internal(&e))
    }

    fn number(&mut self, n: i64) {
        // Nothing that is written to memory fails.
        let _ = write!(self.out, "{n}");
    }

    /// Writes an instant to the millisecond.
    fn time(&mut self, nanoseconds: u64) -> S3Result<()> {
        let milliseconds = nanoseconds / 1_000_000;
        let seconds = milliseconds / 1_000;
        let day = match self.day.filter(|(day, _)| *day == seconds / DAY) {
            Some((_, text)) => text,
            None => {
                let mut text = Vec::with_capacity(24);
                stamp(nanoseconds).format(TimestampFormat::DateTime, &mut text).map_err(|e| internal(&e))?;
                let text = *text.first_chunk().ok_or_else(|| internal(&"a time without a day"))?;
                self.day = Some((seconds / DAY, text));
                text
            }
        };
        let digit = |n: u64, of: u64| b'0' + (n / of % 10) as u8;
        let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
        let two = |n| [digit(n, 10), digit(n, 1)];
        let ([h, i], [m, n], [s, t]) = (two(hour), two(minute), two(second));
        let thousandths = [100, 10, 1].map(|of| digit(milliseconds, of));
        self.raw(&day);
        self.raw(&[h, i, b':', m, n, b':', s, t, b'.']);
        self.raw(&thousandths);
        self.raw(b"Z");
        Ok(())
    }
}

/// Whether a byte of a key stands in XML as it is: of ASCII all but control characters and what is escaped.
fn is_plain(b: u8) -> bool {
    (0x20..0x80).contains(&b) && !b"<>&'\"".contains(&b)
}

#[cfg(test)]
mod tests;
