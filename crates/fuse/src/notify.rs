//! Telling the kernel what it must forget: a queue and one thread a mount, and the answers held back meanwhile.
//!
//! Invariant: while a notification waits or runs here, no answer of this mount is held back. A notification waits for a
//! lock that some request of this mount holds in the kernel; that request's answer then waits for nothing. No other
//! thread may send a notification that can wait for such a lock, except [`Notices::write_back`] under the same rule.

use crate::ticket::Ticket;
use fuser::INodeNo;
use mw_env::Env;
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The longest that an answer is held back.
const BOUND: Duration = Duration::from_secs(1);

/// FUSE_NOTIFY_RESEND (FUSE 7.40, Linux 6.9): the kernel sends anew what was read and is not answered.
const RESEND: i32 = 7;
/// FUSE_NOTIFY_INC_EPOCH (FUSE 7.44, Linux 6.16): every name that the kernel has cached expires at once.
const INC_EPOCH: i32 = 8;

/// Something that the kernel must forget.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Notice {
    /// A name in a directory.
    Entry(u64, Vec<u8>),
    /// Attributes and pages of an inode.
    Inode(u64),
    /// All names, attributes and pages.
    Everything,
    /// The mount itself: the world is gone.
    Mount,
    /// Nothing: when its turn comes, the kernel has heard of all before it.
    Turn(u64),
}

/// An answer ready to be sent.
pub(crate) type Answer = Box<dyn FnOnce() + Send>;

/// The kernel's end of a mount.
pub(crate) struct Kernel {
    notifier: fuser::Notifier,
    /// The same device; for the notifications that fuser does not offer.
    device: File,
}

impl Kernel {
    /// Takes both ends.
    pub(crate) fn new(notifier: fuser::Notifier, device: File) -> Self {
        Self { notifier, device }
    }

    /// Drops a name, waiting until no look-up or change of a name is under way in `parent`.
    pub(crate) fn forget_entry(&self, parent: u64, name: &[u8]) {
        note(self.notifier.inval_entry(INodeNo(parent), OsStr::from_bytes(name)));
    }

    /// Drops attributes and all pages (a directory's are its entries), waiting for reads and writes under way.
    pub(crate) fn forget_inode(&self, ino: u64) {
        note(self.notifier.inval_inode(INodeNo(ino), 0, 0));
    }

    /// Gives the kernel the beginning of an inode's content. Waits for pages that are locked: nothing of the inode may be read or written just now.
    pub(crate) fn give(&self, ino: u64, content: &[u8]) {
        note(self.notifier.store(INodeNo(ino), 0, content));
    }

    /// Waits until no look-up and no listing is under way in `directory`: the kernel takes its lock to look for a name that cannot be.
    pub(crate) fn barrier(&self, directory: u64) {
        self.forget_entry(directory, b"//");
    }

    /// Expires every cached name.
    ///
    /// # Errors
    /// `InvalidInput` when the kernel is too old.
    pub(crate) fn forget_names(&self) -> io::Result<()> {
        self.send(INC_EPOCH)
    }

    /// Has every request that was read, and is not answered, sent anew.
    ///
    /// # Errors
    /// `InvalidInput` when the kernel is too old.
    pub(crate) fn resend(&self) -> io::Result<()> {
        self.send(RESEND)
    }

    fn send(&self, code: i32) -> io::Result<()> {
        // struct fuse_out_header: length, code, and 0, which tells a notification from an answer.
        let mut message = [0; 16];
        message[..4].copy_from_slice(&16u32.to_ne_bytes());
        message[4..8].copy_from_slice(&code.to_ne_bytes());
        (&self.device).write_all(&message)
    }

    /// Returns another descriptor of the device.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn another(&self) -> io::Result<OwnedFd> {
        self.device.try_clone().map(OwnedFd::from)
    }
}

/// A name that is not there any more is what was wanted, and a kernel that is gone has nothing cached.
fn note(result: io::Result<()>) {
    if let Err(e) = result
        && !matches!(e.raw_os_error(), Some(NOENT | NODEV | NOTCONN))
    {
        tracing::debug!("the kernel refused a notification: {e}");
    }
}

const NOENT: i32 = rustix::io::Errno::NOENT.raw_os_error();
const NODEV: i32 = rustix::io::Errno::NODEV.raw_os_error();
const NOTCONN: i32 = rustix::io::Errno::NOTCONN.raw_os_error();

/// The queue of one mount.
pub(crate) struct Notices {
    env: Env,
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Nothing is being sent.
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    next: VecDeque<Notice>,
    /// Who waits for a notice; one that is queued already is not queued again.
    tickets: HashMap<Notice, Vec<Arc<Ticket>>>,
    /// Notifications being sent now.
    running: usize,
    held: HashMap<u64, Held>,
    last: u64,
    /// Nothing new is sent, and no answer held back.
    paused: bool,
    stopped: bool,
}

struct Held {
    since: u64,
    answer: Answer,
}

impl Queue {
    fn take_held(&mut self) -> Vec<Answer> {
        self.held.drain().map(|(_, held)| held.answer).collect()
    }
}

impl Notices {
    /// Makes an empty queue.
    pub(crate) fn new(env: Env) -> Self {
        Self { env, queue: Mutex::default(), wake: Condvar::new(), idle: Condvar::new() }
    }

    /// Queues `notices`, sends every answer held back, and returns what to wait for.
    pub(crate) fn post(&self, notices: Vec<Notice>) -> Arc<Ticket> {
        let ticket = Ticket::new(notices.len());
        let answers = {
            let mut guard = self.queue.lock();
            let queue = &mut *guard;
            if queue.stopped || notices.is_empty() {
                return Ticket::new(0);
            }
            for notice in notices {
                let waiting = queue.tickets.entry(notice.clone()).or_insert_with(|| {
                    queue.next.push_back(notice);
                    Vec::new()
                });
                waiting.push(ticket.clone());
            }
            queue.take_held()
        };
        self.wake.notify_one();
        answers.into_iter().for_each(|answer| answer());
        ticket
    }

    /// Sends `answer` when all `tickets` of other mounts are done; at once while this mount has something to tell its own
    /// kernel, and after [`BOUND`] at the latest.
    pub(crate) fn hold_back(self: &Arc<Self>, tickets: &[Arc<Ticket>], answer: Answer) {
        let id = {
            let mut queue = self.queue.lock();
            if !queue.next.is_empty() || queue.running > 0 || queue.stopped || queue.paused {
                drop(queue);
                return answer();
            }
            queue.last += 1;
            let id = queue.last;
            queue.held.insert(id, Held { since: self.env.monotonic(), answer });
            id
        };
        // The thread of the queue is idle; it now has an answer to look after.
        self.wake.notify_one();
        let left = Arc::new(AtomicUsize::new(tickets.len()));
        for ticket in tickets {
            let (notices, left) = (self.clone(), left.clone());
            ticket.then(move || {
                if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                    let held = notices.queue.lock().held.remove(&id);
                    if let Some(held) = held {
                        (held.answer)();
                    }
                }
            });
        }
    }

    /// Sends `answer` when the kernel has heard of all that this mount was told so far. Only for answers to requests during which the kernel
    /// holds nothing that a notification waits for, such as one for a lock: they are exempt from the rule above.
    pub(crate) fn in_turn(&self, answer: impl FnOnce() + Send + 'static) {
        let turn = {
            let mut guard = self.queue.lock();
            let queue = &mut *guard;
            if queue.stopped || (queue.next.is_empty() && queue.running == 0) {
                None
            } else {
                let ticket = Ticket::new(1);
                queue.last += 1;
                let turn = Notice::Turn(queue.last);
                queue.next.push_back(turn.clone());
                queue.tickets.insert(turn, vec![ticket.clone()]);
                Some(ticket)
            }
        };
        match turn {
            None => answer(),
            Some(ticket) => {
                self.wake.notify_one();
                ticket.then(answer);
            }
        }
    }

    /// Sends notifications from the calling thread, which must not be one that answers requests.
    pub(crate) fn write_back(&self, send: impl FnOnce()) {
        let answers = {
            let mut queue = self.queue.lock();
            self.idle.wait_while(&mut queue, |queue| queue.paused && !queue.stopped);
            queue.running += 1;
            queue.take_held()
        };
        answers.into_iter().for_each(|answer| answer());
        send();
        self.sent();
    }

    fn sent(&self) {
        let mut queue = self.queue.lock();
        queue.running -= 1;
        if queue.running == 0 {
            self.idle.notify_all();
        }
    }

    /// Sends nothing new until [`Notices::resume`], and waits at most `limit` for what is being sent. What is posted meanwhile
    /// stays in the queue; no answer is held back for it. Returns whether all is quiet.
    pub(crate) fn pause(&self, limit: Duration) -> bool {
        let answers = {
            let mut queue = self.queue.lock();
            queue.paused = true;
            queue.take_held()
        };
        answers.into_iter().for_each(|answer| answer());
        let mut queue = self.queue.lock();
        !self.idle.wait_while_for(&mut queue, |queue| queue.running > 0, limit).timed_out()
    }

    /// Ends a pause.
    pub(crate) fn resume(&self) {
        self.queue.lock().paused = false;
        self.wake.notify_all();
        self.idle.notify_all();
    }

    /// Returns what waits to be sent, in order.
    pub(crate) fn waiting(&self) -> Vec<Notice> {
        self.queue.lock().next.iter().filter(|notice| !matches!(notice, Notice::Turn(_))).cloned().collect()
    }

    /// Returns how many answers wait for their turn.
    pub(crate) fn turns(&self) -> usize {
        self.queue.lock().next.iter().filter(|notice| matches!(notice, Notice::Turn(_))).count()
    }

    /// Drops the answers that wait for their turn: they will be asked for anew.
    pub(crate) fn forget_turns(&self) {
        let forgotten: Vec<_> = {
            let mut guard = self.queue.lock();
            let queue = &mut *guard;
            let (turns, others): (VecDeque<_>, _) =
                std::mem::take(&mut queue.next).into_iter().partition(|notice| matches!(notice, Notice::Turn(_)));
            queue.next = others;
            turns.iter().filter_map(|turn| queue.tickets.remove(turn)).collect()
        };
        drop(forgotten);
    }

    /// The life of the thread: sends notices with `send` until [`Notices::stop`].
    pub(crate) fn run(&self, send: impl Fn(&Notice)) {
        loop {
            let (notice, tickets) = {
                let mut queue = self.queue.lock();
                loop {
                    if queue.stopped {
                        return;
                    }
                    if !queue.paused
                        && let Some(notice) = queue.next.pop_front()
                    {
                        queue.running += 1;
                        let tickets = queue.tickets.remove(&notice).unwrap_or_default();
                        break (notice, tickets);
                    }
                    if queue.held.is_empty() {
                        self.wake.wait(&mut queue);
                    } else if self.wake.wait_for(&mut queue, BOUND).timed_out() {
                        let late = self.late(&mut queue);
                        parking_lot::MutexGuard::unlocked(&mut queue, || late.into_iter().for_each(|answer| answer()));
                    }
                }
            };
            send(&notice);
            self.sent();
            tickets.iter().for_each(|ticket| ticket.one_done());
        }
    }

    /// Ends the thread, and lets everybody go who waits.
    pub(crate) fn stop(&self) {
        let (answers, tickets) = {
            let mut queue = self.queue.lock();
            queue.stopped = true;
            queue.next.clear();
            let tickets: Vec<_> = queue.tickets.drain().flat_map(|(_, tickets)| tickets).collect();
            (queue.take_held(), tickets)
        };
        self.wake.notify_all();
        self.idle.notify_all();
        answers.into_iter().for_each(|answer| answer());
        tickets.iter().for_each(|ticket| ticket.one_done());
    }

    fn late(&self, queue: &mut Queue) -> Vec<Answer> {
        let now = self.env.monotonic();
        let bound = BOUND.as_nanos() as u64;
        let late: Vec<u64> =
            queue.held.iter().filter(|(_, held)| now.saturating_sub(held.since) >= bound).map(|(id, _)| *id).collect();
        if !late.is_empty() {
            tracing::warn!(
                answers = late.len(),
                "another mount's kernel takes its time; answers are no longer held back"
            );
        }
        late.into_iter().filter_map(|id| queue.held.remove(&id)).map(|held| held.answer).collect()
    }
}

#[cfg(test)]
mod tests;
