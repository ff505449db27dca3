//! Paths are bytes; JSON speaks text. This file maps one to the other without loss.

use bytes::Bytes;

/// The first character of the private range in which bytes that are not UTF-8 are written: byte `b` is U+F700 + `b`.
const ESCAPE: u32 = 0xF700;

/// Writes a path as text, without loss: UTF-8 stands for itself, and each byte `b` that is not part of valid UTF-8 becomes the
/// character U+F700 + `b`. Characters of that range that really stand in a path are written byte by byte in the same way, so
/// that [`path_bytes`] always gives back the same bytes.
pub fn path_text(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    let escape = |bytes: &[u8], text: &mut String| {
        text.extend(bytes.iter().filter_map(|&b| char::from_u32(ESCAPE + u32::from(b))));
    };
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            if (ESCAPE..ESCAPE + 0x100).contains(&u32::from(c)) {
                escape(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut text);
            } else {
                text.push(c);
            }
        }
        escape(chunk.invalid(), &mut text);
    }
    text
}

/// Reads a path that [`path_text`] wrote.
pub fn path_bytes(text: &str) -> Bytes {
    let mut path = Vec::with_capacity(text.len());
    for c in text.chars() {
        match u32::from(c).checked_sub(ESCAPE).and_then(|b| u8::try_from(b).ok()) {
            Some(b) => path.push(b),
            None => path.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    path.into()
}

#[cfg(test)]
mod tests;
