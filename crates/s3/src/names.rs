//! Keys are bytes; S3 speaks text. This file maps one to the other without loss.
//!
//! A byte that the text cannot carry is shown as the private-use character U+F700 + byte: bytes that are not UTF-8 everywhere, and
//! in XML without `encoding-type=url` also the control characters that XML 1.0 forbids. The same characters are read back as
//! those bytes. A key that really holds a character of U+F700..U+F7FF, or U+FFFE or U+FFFF, shows it byte by byte, so the mapping
//! stays reversible: every text has at most one key, and a text that no key would be shown as is refused.

use crate::errors::error;
use bytes::Bytes;
use s3s::dto::EncodingType;
use s3s::{S3ErrorCode, S3Result};

/// The longest key that can be created, in bytes (AWS: "Object key names").
pub(crate) const KEY_MAX: usize = 1024;

const ESCAPE: u32 = 0xF700;

/// Whether `c` stands for a byte.
fn is_escape(c: char) -> bool {
    (ESCAPE..ESCAPE + 0x100).contains(&u32::from(c))
}

/// Whether XML 1.0 can carry `c`.
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

fn push_escape(text: &mut String, byte: u8) {
    // U+F700..U+F7FF are all characters; the fallback is never taken.
    text.push(char::from_u32(ESCAPE + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER));
}

fn show(key: &[u8], carries: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(key.len());
    for chunk in key.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_escape(c) || !carries(c) {
                c.encode_utf8(&mut [0; 4]).bytes().for_each(|b| push_escape(&mut text, b));
            } else {
                text.push(c);
            }
        }
        chunk.invalid().iter().for_each(|b| push_escape(&mut text, *b));
    }
    text
}

/// Shows a key where every character can be carried (headers and `encoding-type=url`).
pub(crate) fn text_of(key: &[u8]) -> String {
    show(key, |_| true)
}

/// Shows a key as XML 1.0 can carry it.
pub(crate) fn xml_of(key: &[u8]) -> String {
    show(key, is_xml)
}

/// Whether finished XML is certainly well-formed: nearly always, and seen at a glance, while [`repaired`] goes through every character.
pub(crate) fn is_sound(xml: &[u8]) -> bool {
    // Among the characters of several bytes, those that XML cannot carry start with 0xEF. Joined, not looked for, so that many bytes are
    // looked at at once and without a branch.
    let suspect = |b: u8| (b == 0xEF) | ((b < 0x20) & (b != b'\t') & (b != b'\n'));
    xml.chunks(4096).all(|part| part.iter().fold(0, |found, b| found | u8::from(suspect(*b))) == 0)
}

/// Makes finished XML well-formed: a carriage return becomes a reference, or it would be read back as a line feed (XML 1.0, 2.11), and
/// what XML cannot carry comes under the escape of keys.
pub(crate) fn repaired(xml: &str) -> String {
    let mut text = String::with_capacity(xml.len());
    for c in xml.chars() {
        match c {
            '\r' => text.push_str("&#13;"),
            c if is_xml(c) => text.push(c),
            c => c.encode_utf8(&mut [0; 4]).bytes().for_each(|b| push_escape(&mut text, b)),
        }
    }
    text
}

/// Reads a key as a client wrote it.
///
/// # Errors
/// `InvalidArgument` for a text under which no key would be shown.
pub(crate) fn key_of(text: &str) -> S3Result<Bytes> {
    if !text.chars().any(is_escape) {
        return Ok(Bytes::copy_from_slice(text.as_bytes()));
    }
    let mut key = Vec::with_capacity(text.len());
    for c in text.chars() {
        if is_escape(c) {
            key.push((u32::from(c) - ESCAPE) as u8);
        } else {
            key.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    if text_of(&key) == text || xml_of(&key) == text {
        return Ok(key.into());
    }
    Err(error(
        S3ErrorCode::InvalidArgument,
        "The key uses U+F700..U+F7FF, which stand for bytes that text cannot carry, in a form that no key has.",
    ))
}

/// Percent-encodes everything but unreserved characters and `/`, as `encoding-type=url` wants it.
///
/// A space becomes `%20` and a plus `%2B`, so that clients that read `+` as a space and clients that do not agree.
pub(crate) fn percent(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        if b.is_ascii_alphanumeric() || b"-_.~/".contains(&b) {
            out.push(char::from(b));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            out.push('%');
            out.push(char::from(HEX[usize::from(b >> 4)]));
            out.push(char::from(HEX[usize::from(b & 15)]));
        }
    }
    out
}

/// Decodes percent escapes once; `+` stays a plus. A `%` that starts no escape stays as it is, as AWS takes it.
pub(crate) fn unpercent(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let hex = |b: u8| char::from(b).to_digit(16);
        if first == b'%'
            && let [a, b, after @ ..] = tail
            && let (Some(a), Some(b)) = (hex(*a), hex(*b))
        {
            out.push((a * 16 + b) as u8);
            rest = after;
        } else {
            out.push(first);
            rest = tail;
        }
    }
    out
}

/// How keys are written in an answer.
#[derive(Clone, Copy)]
pub(crate) enum Written {
    /// Percent-encoded, so that every key can be carried.
    Url,
    /// As text, with the bytes that XML cannot carry under the escape of this file.
    Xml,
}

impl Written {
    pub(crate) fn of(encoding: Option<&EncodingType>) -> S3Result<Self> {
        match encoding.map(EncodingType::as_str) {
            None => Ok(Self::Xml),
            Some("url") => Ok(Self::Url),
            Some(_) => Err(error(S3ErrorCode::InvalidArgument, "Invalid Encoding Method specified in Request")),
        }
    }

    pub(crate) fn write(self, key: &[u8]) -> String {
        match self {
            Self::Url => percent(&text_of(key)),
            Self::Xml => xml_of(key),
        }
    }
}

#[cfg(test)]
mod tests;
