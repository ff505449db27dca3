//! Typing to the command of a run.

use crate::console::Input;
use crate::error::{Error, Result};
use crate::runs::{Live, Runs};
use mw_model::ErrorKind;
use mw_world::Principal;
use std::sync::Arc;

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
