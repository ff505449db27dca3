//! Percent encoding as SigV4 wants it: everything but `A-Z a-z 0-9 - . _ ~` is encoded, once, in upper case.
//!
//! Paths and queries are bytes; nothing here assumes UTF-8.

use crate::{Error, Result};

/// Encodes `bytes`; a `/` stays when `keep_slash` is set.
pub fn encode(bytes: &[u8], keep_slash: bool) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(bytes.len() + 16);
    for &b in bytes {
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~') || (keep_slash && b == b'/') {
            out.push(char::from(b));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(b >> 4)]));
            out.push(char::from(HEX[usize::from(b & 15)]));
        }
    }
    out
}

/// Decodes `text`. A `+` stays a `+`.
///
/// # Errors
/// A `%` is not followed by two hexadecimal digits.
pub fn decode(text: &str) -> Result<Vec<u8>> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let digits = bytes.get(at + 1..at + 3).and_then(|pair| {
                let digit = |b: u8| char::from(b).to_digit(16);
                Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)
            });
            out.push(digits.ok_or_else(|| Error::invalid(format!("{text:?} has a broken percent escape; send %XX")))?);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    Ok(out)
}

/// Decodes a query into its pairs, in order.
///
/// # Errors
/// A percent escape is broken.
pub fn pairs(query: &str) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

/// Encodes pairs into a query.
pub fn query(pairs: &[(&str, &[u8])]) -> String {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name.as_bytes(), false), encode(value, false)))
        .collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests;
