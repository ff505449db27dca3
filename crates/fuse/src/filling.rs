//! Which files' content is on its way to the kernel before anybody asked to read it, and who must wait for that.
//!
//! A program that opens a small file reads all of it. So the kernel is given the content when a program opens such a file, ahead of the answer, and
//! the request to read it is saved. Nothing orders this against the mount's own requests but this module: what the kernel is given must
//! not be older than what it has, and giving waits for pages that a read or write of the same file may have locked. So it happens only while
//! the file is open just once, and whoever opens it meanwhile, or cuts it, waits (design/0023).
//!
//! Does not know what is given, nor to whom.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The files of one mount that somebody is alone with.
#[derive(Default)]
pub(crate) struct Filling {
    /// At most one for each thread that answers requests.
    inodes: Mutex<Vec<u64>>,
    /// How many, for a look without the lock.
    count: AtomicUsize,
    left: Condvar,
}

/// Somebody is alone with a file, until this is dropped.
pub(crate) struct Alone<'a> {
    filling: &'a Filling,
    ino: u64,
}

impl Filling {
    /// Waits until nobody is alone with `ino`. Whoever comes later sees what the caller did before: an open that was counted.
    pub(crate) fn wait(&self, ino: u64) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut inodes = self.inodes.lock();
        self.left.wait_while(&mut inodes, |inodes| inodes.contains(&ino));
    }

    /// Waits likewise, and is alone with it then.
    pub(crate) fn wait_alone(&self, ino: u64) -> Alone<'_> {
        let mut inodes = self.inodes.lock();
        self.left.wait_while(&mut inodes, |inodes| inodes.contains(&ino));
        self.take(&mut inodes, ino)
    }

    /// Is alone with `ino`, unless somebody is.
    pub(crate) fn alone(&self, ino: u64) -> Option<Alone<'_>> {
        let mut inodes = self.inodes.lock();
        (!inodes.contains(&ino)).then(|| self.take(&mut inodes, ino))
    }

    fn take(&self, inodes: &mut Vec<u64>, ino: u64) -> Alone<'_> {
        inodes.push(ino);
        self.count.store(inodes.len(), Ordering::SeqCst);
        Alone { filling: self, ino }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        let mut inodes = self.filling.inodes.lock();
        inodes.retain(|ino| *ino != self.ino);
        self.filling.count.store(inodes.len(), Ordering::SeqCst);
        self.filling.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn one_is_alone_and_the_others_wait() {
        let filling = Filling::default();
        let gone = AtomicBool::new(false);
        let alone = filling.alone(7).unwrap();
        assert!(filling.alone(7).is_none(), "two are alone");
        filling.wait(8);
        drop(filling.wait_alone(8));
        std::thread::scope(|scope| {
            for how in [Filling::wait, |filling: &Filling, ino| drop(filling.wait_alone(ino))] {
                let (filling, gone) = (&filling, &gone);
                scope.spawn(move || {
                    how(filling, 7);
                    assert!(gone.load(Ordering::SeqCst), "it did not wait");
                });
            }
            std::thread::yield_now();
            gone.store(true, Ordering::SeqCst);
            drop(alone);
        });
        assert!(filling.alone(7).is_some());
    }
}
