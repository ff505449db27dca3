//! Directories that are being listed, as they were opened.

use mw_model::Ino;
use mw_world::Dir;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many openings are kept.
const OPENINGS: usize = 256;

/// Directories that clients are in the middle of, newest last, by number.
#[derive(Default)]
pub(crate) struct Openings(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    last: u64,
    dirs: VecDeque<(u64, Ino, Arc<Dir>)>,
}

impl std::fmt::Debug for Openings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Openings({})", self.0.lock().dirs.len())
    }
}

impl Openings {
    pub(crate) fn get(&self, number: u64, ino: Ino) -> Option<Arc<Dir>> {
        let kept = self.0.lock();
        kept.dirs.iter().find(|(n, i, _)| (*n, *i) == (number, ino)).map(|(_, _, dir)| dir.clone())
    }

    pub(crate) fn add(&self, dir: Dir) -> (u64, Arc<Dir>) {
        let mut kept = self.0.lock();
        kept.last += 1;
        let (number, dir) = (kept.last, Arc::new(dir));
        kept.dirs.push_back((number, dir.attr().ino, dir.clone()));
        if kept.dirs.len() > OPENINGS {
            kept.dirs.pop_front();
        }
        (number, dir)
    }

    pub(crate) fn forget(&self, number: u64) {
        self.0.lock().dirs.retain(|(n, _, _)| *n != number);
    }
}
