//! Limits and cursors. A cursor is opaque to a model: bytes in URL-safe base64.

use crate::error::{Refusal, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Checks how many items are asked for.
pub(crate) fn limit(asked: Option<u32>, usual: usize, most: usize) -> Result<usize> {
    match asked {
        None => Ok(usual),
        Some(n) if (1..=most as u64).contains(&u64::from(n)) => Ok(n as usize),
        Some(n) => Err(Refusal::invalid(format!("limit {n} is out of range; use 1 to {most}"))),
    }
}

/// Writes a cursor.
pub(crate) fn cursor(place: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(place)
}

/// Reads a cursor.
pub(crate) fn place(cursor: Option<&str>) -> Result<Option<Vec<u8>>> {
    cursor
        .map(|text| {
            URL_SAFE_NO_PAD.decode(text).map_err(|_| {
                Refusal::invalid(format!(
                    "{text:?} is no cursor of this tool; leave it out to start over, or give `next` of the last answer"
                ))
            })
        })
        .transpose()
}
