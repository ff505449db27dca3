//! Finding the blobs of a segment by their headers alone, for fsck.
//!
//! Invariant: every byte of the used range is accounted for: it belongs to a whole blob, to a hole made on purpose, to the
//! padding after either, or to a broken range that is reported. It does not know which engine holds the bytes.

use crate::blob::{self, ALIGN, Codec, HEADER, Header};
use crate::{Addr, BlobRef, Found, SegmentId};
use bytes::Bytes;
use mw_model::Hash;

/// Lists the blobs in `used`, the bytes of `segment` from its start.
///
/// A blob whose header verifies and whose content does not is listed with the hash of its header. A range without a header is
/// listed with a zero hash, as long as it takes to find the next header.
pub(crate) fn blobs(segment: SegmentId, used: &Bytes) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < used.len() {
        at += match Header::decode(&used[at..]) {
            // What was given back may reach past the end: to that of the segment.
            Ok(header) if header.codec == Codec::Hole && header.len() as usize >= used.len() - at => break,
            Ok(header) if header.len() as usize <= used.len() - at => {
                let len = header.len();
                if header.codec != Codec::Hole {
                    let blob = BlobRef { addr: Addr { segment, offset: at as u32, len }, hash: header.hash };
                    let whole = blob::open(&used.slice(at..at + len as usize), &blob).is_ok();
                    found.push(Found { blob, whole });
                }
                blob::padded(len) as usize
            }
            _ => {
                let len = to_next_header(&used[at..]);
                let addr = Addr { segment, offset: at as u32, len: len as u32 };
                found.push(Found { blob: BlobRef { addr, hash: Hash::default() }, whole: false });
                len
            }
        };
    }
    found
}

/// Lists the ranges inside `from..to` that were given back, as far as headers lead from `from`, where one may stand: offset and
/// length.
pub(crate) fn holes<E>(
    from: u32,
    to: u32,
    mut read: impl FnMut(u32) -> Result<[u8; HEADER], E>,
) -> Result<Vec<(u32, u32)>, E> {
    let mut holes = Vec::new();
    let mut at = from;
    while to.saturating_sub(at) as usize >= HEADER {
        let Ok(header) = Header::decode(&read(at)?) else { break };
        let len = blob::padded(header.len()).min(to - at);
        if header.codec == Codec::Hole {
            holes.push((at, len));
        }
        at += len;
    }
    Ok(holes)
}

/// Returns the distance from the start of `bytes`, which is no header, to the next header or the end.
fn to_next_header(bytes: &[u8]) -> usize {
    (ALIGN as usize..bytes.len().saturating_sub(HEADER - 1))
        .step_by(ALIGN as usize)
        .find(|&at| Header::decode(&bytes[at..]).is_ok())
        .unwrap_or(bytes.len())
}
