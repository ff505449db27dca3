//! What is typed to the command of a run that was asked to listen (`-i`, `-t`).

use crate::error::{Error, Result};
use crate::runs::{Live, Runs};
use mw_model::ErrorKind;
use mw_sandbox::Running;
use mw_world::Principal;
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
    fn command(&self) -> Option<Arc<dyn Running>> {
        let mut command = self.command.lock();
        if command.is_none() {
            self.opened.wait_for(&mut command, PATIENCE);
        }
        command.as_ref()?.upgrade()
    }
}

impl Runs {
    /// Types to the command of a run. Returns when the command's terminal, or its pipe, has taken it.
    ///
    /// # Errors
    /// `NotFound`, also for a run that `who` may not see; `Denied` unless the key started it or is admin on the base;
    /// `Unsupported` for a run that does not listen; `Busy` when its command has ended, or has not started in time.
    pub fn input(&self, who: &Principal, id: &str, input: &Input) -> Result<()> {
        let live = self.own(who, id, "typed to")?;
        let over = || Error::new(ErrorKind::Busy, format!("the command of run {id:?} has ended, or has not started"));
        let live: Arc<Live> = live.ok_or_else(over)?;
        if !(live.spec.tty || live.spec.stdin) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("run {id:?} does not listen; start it with -i, or -t for a terminal"),
            ));
        }
        let command = live.console.command().ok_or_else(over)?;
        match input {
            Input::Bytes(bytes) => command.input(bytes).map_err(|_| over()),
            Input::End => {
                command.close_input();
                Ok(())
            }
            Input::Size { rows, columns } => command.resize(*rows, *columns).map_err(|_| over()),
        }
    }
}
