//! Names that only S3 can hold, and the names under which a mount reaches them all the same.
//!
//! `.s3~` and the name, in which `%`, NUL and the dots of `.` and `..` stand as `%` and two digits; of a name that is too long, `.s3~#` and
//! the first 32 digits of its BLAKE3 hash. The empty name (a directory's marker) is `.s3~` alone. Such names are not listed.

use crate::error::Result;
use crate::view::View;
use bytes::Bytes;
use mw_model::name::{MAX_NAME, mountable};
use mw_model::{Hash, Ino};

/// What the names begin with.
pub const ESCAPE: &[u8] = b".s3~";

/// Returns under which name a mount reaches the entry `name` (without the trailing `/` of a directory); `None` for a name that
/// needs no other.
pub fn escaped(name: &[u8]) -> Option<Bytes> {
    if mountable(name) {
        return None;
    }
    let mut out = ESCAPE.to_vec();
    for byte in name {
        match byte {
            b'.' if name == b"." || name == b".." => out.extend_from_slice(b"%2e"),
            b'%' => out.extend_from_slice(b"%25"),
            0 => out.extend_from_slice(b"%00"),
            other => out.push(*other),
        }
    }
    if out.len() > MAX_NAME {
        let hash = Hash::of(name).to_string();
        out = [ESCAPE, b"#", &hash.as_bytes()[..32]].concat();
    }
    Some(out.into())
}

/// Returns the entry's name that `shown` stands for in `dir`; `None` when it stands for itself.
pub(crate) fn meant(view: &View, dir: Ino, shown: &[u8]) -> Result<Option<Bytes>> {
    let Some(rest) = shown.strip_prefix(ESCAPE) else { return Ok(None) };
    if rest.starts_with(b"#") {
        for item in view.entries(dir, &[]) {
            let (raw, _) = item?;
            let name = raw.strip_suffix(b"/").unwrap_or(&raw);
            if name.len() > MAX_NAME - ESCAPE.len() && escaped(name).is_some_and(|escaped| escaped == shown) {
                return Ok(Some(Bytes::copy_from_slice(name)));
            }
        }
        return Ok(None);
    }
    let name = unescaped(rest);
    // Each name has one other name and no more.
    Ok(name.filter(|name| escaped(name).is_some_and(|escaped| escaped == shown)))
}

fn unescaped(mut text: &[u8]) -> Option<Bytes> {
    let mut out = Vec::with_capacity(text.len());
    while let Some((first, rest)) = text.split_first() {
        text = rest;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let (byte, rest) = match rest {
            [b'2', b'e', rest @ ..] => (b'.', rest),
            [b'2', b'5', rest @ ..] => (b'%', rest),
            [b'0', b'0', rest @ ..] => (0, rest),
            _ => return None,
        };
        out.push(byte);
        text = rest;
    }
    Some(out.into())
}

#[cfg(test)]
mod tests;
