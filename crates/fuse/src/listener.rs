//! What a world tells a mount: changes made elsewhere, and when to stand still.
//!
//! Called on any thread: that of an S3 request, which waits here until the kernel knows, or one that answers requests of
//! another mount, which must not wait (see [`crate::ticket`]).

use crate::door::Door;
use crate::notify::Notice;
use crate::ticket::{Ticket, hand_over};
use mw_model::Ino;
use mw_world::{Changed, Listener};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The longest that a change through another door waits for a mount.
const BOUND: Duration = Duration::from_secs(10);

/// The ear of one mount. Weak, because the mount holds the world that holds this.
pub(crate) struct Ear(pub(crate) Weak<Door>);

impl Listener for Ear {
    fn changed(&self, changes: &[Changed]) {
        let Some(door) = self.0.upgrade() else { return };
        let mut notices = Vec::with_capacity(changes.len());
        for change in changes {
            match change {
                Changed::Inode(ino) | Changed::Content(ino) => {
                    door.epochs.touch(ino.0);
                    door.heard_of_change(*ino, matches!(change, Changed::Content(_)));
                    notices.push(Notice::Inode(ino.0));
                }
                Changed::Entry { parent, name } => {
                    door.epochs.touch(parent.0);
                    notices.push(Notice::Entry(parent.0, name.to_vec()));
                }
                Changed::Everything => {
                    door.epochs.touch_all();
                    notices.push(Notice::Everything);
                }
                Changed::Gone => {
                    door.epochs.touch_all();
                    door.set_gone();
                    notices.push(Notice::Everything);
                    notices.push(Notice::Mount);
                }
            }
        }
        let ticket = door.notices.post(notices);
        if hand_over(&ticket) {
            return;
        }
        if door.gate.is_held() {
            // A parked request may hold the lock that a notification needs: it goes on, and is waited for, after release.
            door.owed.lock().push(ticket);
        } else {
            wait(&ticket);
        }
    }

    fn write_back(&self) -> mw_world::Result<()> {
        self.0.upgrade().map_or(Ok(()), |door| door.write_back())
    }

    fn is_sole(&self) -> bool {
        self.0.upgrade().is_some_and(|door| door.writes_back())
    }

    fn hold(&self) {
        if let Some(door) = self.0.upgrade() {
            door.hold();
        }
    }

    fn release(&self) {
        let Some(door) = self.0.upgrade() else { return };
        door.gate.release();
        if !door.gate.is_held() {
            let owed = std::mem::take(&mut *door.owed.lock());
            owed.iter().for_each(wait);
        }
    }

    fn uses(&self, ino: Ino) -> bool {
        self.0.upgrade().is_some_and(|door| door.known.uses(ino.0) || door.opens.has(ino.0))
    }
}

fn wait(ticket: &Arc<Ticket>) {
    if !ticket.wait(BOUND) {
        tracing::warn!("a mount's kernel has not taken notice of a change in {} s; going on", BOUND.as_secs());
    }
}
