//! Dead ranges inside live segments, given back to the file system: the whole blocks of a range become a hole, behind a header
//! that says so.
//!
//! The holes come first and are synced before their headers are written: a header on disk means that the space is free, so that
//! nothing is looked at twice, and what a power cut took back of it is done again by the next sweep. Headers go where the first
//! block of a dead range is not given back, so that they need no space. Nobody but the owner's cursor, which is locked meanwhile,
//! can let the segment go. This file does not know why a range is dead.

use super::Local;
use super::cursor::Cursor;
use super::file::DataFile;
use super::refused;
use crate::blob::{HEADER, Header};
use crate::{Dead, Error, Owner, Result, walk};
use std::ops::Range;
use std::sync::Arc;

/// What a hole is made of: the block of the file systems in use.
const BLOCK: u64 = 4096;

/// A range that is a hole by now and has no header yet.
struct Punched {
    data: Arc<DataFile>,
    /// Its place in the file, and its length.
    start: u64,
    len: u32,
}

impl Local {
    pub(super) fn punch_dead(&self, owner: Owner, dead: &[Dead]) -> Result<u64> {
        self.sync.alive()?;
        self.cursors.with(owner, |cursor| {
            let mut punched = Vec::new();
            let mut total = 0;
            for dead in dead {
                if self.space.lock().owner(dead.segment) == Some(owner) {
                    total += self.punch_segment(cursor, dead, &mut punched)?;
                }
            }
            if punched.is_empty() {
                return Ok(0);
            }
            self.sync.wait(|| self.sync_files())?;
            for Punched { data, start, len } in punched {
                let written = data.file.write_at(&Header::hole(len).encode(), start);
                data.touch();
                self.sync.wrote();
                written.map_err(|error| refused(HEADER as u64, &data.name, error))?;
            }
            Ok(total)
        })
    }

    fn punch_segment(&self, cursor: &Cursor, dead: &Dead, punched: &mut Vec<Punched>) -> Result<u64> {
        let segment = dead.segment;
        let data = self.file(segment).ok_or_else(|| Error::unowned(segment))?;
        // Behind what was appended to an open segment, the next blob comes.
        let open = cursor.open.as_ref().filter(|open| open.id == segment);
        let end = open.map_or(segment.size(), |open| u64::from(open.used));
        dead.check(end)?;
        let mut total = 0;
        for &(offset, len) in &dead.ranges {
            let start = segment.offset() + u64::from(offset);
            let hole = blocks(start, len);
            if hole.is_empty() {
                continue;
            }
            let header = |at: u32| {
                let mut bytes = [0; HEADER];
                data.file.read_at(&mut bytes, segment.offset() + u64::from(at)).map(|()| bytes)
            };
            let before = walk::holes(offset, offset + len, header)
                .map_err(|e| Error::io(format!("reading segment {segment}"), e))?;
            let given = |&(at, len): &(u32, u32)| {
                let hole = blocks(segment.offset() + u64::from(at), len);
                hole.end - hole.start
            };
            let back = (hole.end - hole.start).saturating_sub(before.iter().map(given).sum());
            if back == 0 {
                continue;
            }
            let outcome = data.file.punch(hole.start, hole.end - hole.start);
            data.touch();
            self.sync.wrote();
            outcome.map_err(|error| Error::io(format!("giving back space of data file {}", data.name), error))?;
            punched.push(Punched { data: data.clone(), start, len });
            total += back;
        }
        Ok(total)
    }
}

/// Returns the whole blocks of `len` bytes at `start` of a file, behind a header.
fn blocks(start: u64, len: u32) -> Range<u64> {
    let from = (start + HEADER as u64).next_multiple_of(BLOCK);
    let to = (start + u64::from(len)) / BLOCK * BLOCK;
    from..to.max(from)
}
