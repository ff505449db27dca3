//! Whether two files hold the same bytes. How they are cut into extents does not count; where pieces are equal by hash nothing
//! is read.

use crate::content::Content;
use crate::error::Result;
use crate::record::Extent;
use crate::view::View;
use mw_model::Ino;

/// How much of a file is looked at in one go, in bytes: bounds the extents in memory.
const WINDOW: u64 = 64 << 20;
/// How much is read and compared at a time, in bytes.
const STEP: u64 = 256 << 10;

/// A file of a view.
#[derive(Clone, Copy)]
pub(crate) struct FileIn<'a> {
    pub view: &'a View,
    pub ino: Ino,
}

/// Returns whether the first `len` bytes of two files are the same; both must be that long.
pub(crate) fn same_start(content: &Content, a: FileIn<'_>, b: FileIn<'_>, len: u64) -> Result<bool> {
    let mut start = 0;
    while start < len {
        let end = len.min(start + WINDOW);
        let (left, right) = (a.view.extents(a.ino, start, end)?, b.view.extents(b.ino, start, end)?);
        if !same_window(content, &left, &right, start, end)? {
            return Ok(false);
        }
        start = end;
    }
    Ok(true)
}

fn same_window(content: &Content, a: &[(u64, Extent)], b: &[(u64, Extent)], mut at: u64, end: u64) -> Result<bool> {
    let (mut i, mut j) = (0, 0);
    while at < end {
        let (left, left_end) = run(a, &mut i, at, end);
        let (right, right_end) = run(b, &mut j, at, end);
        let stop = left_end.min(right_end);
        let equal = match (left, right) {
            (None, None) => true,
            (Some((x, p)), Some((y, q))) => {
                p.piece.hash == q.piece.hash && at - x + u64::from(p.skip) == at - y + u64::from(q.skip)
            }
            _ => false,
        };
        if equal {
            at = stop;
            continue;
        }
        // The runs are cut differently: the bytes decide.
        let stop = end.min(at + STEP);
        if content.assemble(within(a, at, stop), at, stop)? != content.assemble(within(b, at, stop), at, stop)? {
            return Ok(false);
        }
        at = stop;
    }
    Ok(true)
}

/// Returns the extent at `at`, or none for a hole, and where that ends.
fn run<'a>(extents: &'a [(u64, Extent)], next: &mut usize, at: u64, end: u64) -> (Option<(u64, &'a Extent)>, u64) {
    while let Some((from, extent)) = extents.get(*next) {
        let stop = from + u64::from(extent.len);
        if stop <= at {
            *next += 1;
            continue;
        }
        return if *from <= at { (Some((*from, extent)), stop.min(end)) } else { (None, (*from).min(end)) };
    }
    (None, end)
}

/// Returns the extents that overlap `start..end`.
fn within(extents: &[(u64, Extent)], start: u64, end: u64) -> &[(u64, Extent)] {
    let from = extents.partition_point(|(at, extent)| at + u64::from(extent.len) <= start);
    let to = extents.partition_point(|(at, _)| *at < end);
    &extents[from.min(to)..to]
}
