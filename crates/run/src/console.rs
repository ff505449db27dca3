//! What is typed to the command of a run that was asked to listen (`-i`, `-t`).

use mw_sandbox::Running;
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long what is typed early waits for the command to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// What somebody does at the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Types.
    Bytes(Vec<u8>),
    /// Ends standard input; on a terminal this is typed, as ^D.
    End,
    /// Makes the terminal this large.
    Size {
        /// Lines.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
}

/// The way to the command, once there is one.
#[derive(Default)]
pub(crate) struct Console {
    command: Mutex<Option<Weak<dyn Running>>>,
    opened: Condvar,
}

impl Console {
    pub(crate) fn open(&self, running: &Arc<dyn Running>) {
        *self.command.lock() = Some(Arc::downgrade(running));
        self.opened.notify_all();
    }

    /// Waits for the command. `None` when it is over, or does not start in time.
    pub(crate) fn command(&self) -> Option<Arc<dyn Running>> {
        let mut command = self.command.lock();
        if command.is_none() {
            self.opened.wait_for(&mut command, PATIENCE);
        }
        command.as_ref()?.upgrade()
    }
}
