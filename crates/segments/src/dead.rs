//! What is dead inside a segment that lives on. Pure; why it is dead, the caller knows.

use crate::blob::{ALIGN, HEADER};
use crate::{Error, Result, SegmentId};

/// What is dead of a live segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// The segment.
    pub segment: SegmentId,
    /// Offset and length, in bytes, of ranges that begin where a blob does or where the last one ends, and end likewise or with the
    /// segment. In order, apart from each other.
    pub ranges: Vec<(u32, u32)>,
}

impl Dead {
    /// Refuses ranges in which no blobs can lie, or that reach past `end`.
    pub(crate) fn check(&self, end: u64) -> Result<()> {
        for &(offset, len) in &self.ranges {
            let inside = u64::from(offset) + u64::from(len) <= end;
            let aligned = offset % ALIGN == 0 && len % ALIGN == 0;
            if !aligned || (len as usize) < HEADER || !inside {
                return Err(Error::invalid(format!("no blobs lie at {offset}..+{len} of segment {}", self.segment)));
            }
        }
        Ok(())
    }
}
