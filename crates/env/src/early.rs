//! Writing back early: a thread that tells the kernel which written ranges it may bring to disk already.
//!
//! Left alone, Linux begins with what was written after half a minute, or when a tenth of the memory waits, so that most of a large
//! object would wait for the sync at its end: first the processor works, then the disk, one after the other. Invariant: nobody waits
//! for this thread. What it cannot take is left to the sync, and errors are the sync's to find: `sync_file_range` without a flag to
//! wait reports none and takes none away from it.

use crate::affinity::run_anywhere;
use std::fs::File;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

/// How many ranges may wait for the thread, which the kernel holds up while the disk has enough to do.
const WAITING: usize = 64;

/// A range of a file.
struct Range {
    file: Arc<File>,
    offset: u64,
    len: u64,
}

/// The way to the thread. Clones lead to the same one; it is started when it is first needed, and ends with the last clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Early(Arc<OnceLock<Option<SyncSender<Range>>>>);

impl Early {
    /// Lets the disk begin with a range, unless it has enough to do.
    pub(crate) fn begin(&self, file: &Arc<File>, offset: u64, len: u64) {
        if let Some(sender) = self.0.get_or_init(start) {
            // A full queue: the disk is busy anyway.
            let _ = sender.try_send(Range { file: file.clone(), offset, len });
        }
    }
}

/// Starts the thread; none when the system has no more threads to give.
fn start() -> Option<SyncSender<Range>> {
    let (sender, receiver) = sync_channel::<Range>(WAITING);
    let run = move || {
        // It outlives what it was started for.
        run_anywhere();
        receiver.into_iter().for_each(|range| write_back(&range));
    };
    std::thread::Builder::new().name("early".to_owned()).spawn(run).ok().map(|_| sender)
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the call has no safe wrapper")]
fn write_back(range: &Range) {
    use std::os::fd::AsRawFd;
    let (Ok(offset), Ok(len)) = (i64::try_from(range.offset), i64::try_from(range.len)) else { return };
    // SAFETY: the call takes numbers alone and touches no memory of this process; `range` keeps the descriptor open.
    unsafe { libc::sync_file_range(range.file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
}

#[cfg(not(target_os = "linux"))]
fn write_back(_: &Range) {}
