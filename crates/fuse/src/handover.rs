//! Bringing a mount to a standstill, handing it over to the program that takes this one's place, or letting it go on.
//!
//! In order, for all mounts of a server together: [`Mount::quiet`], [`Mount::halt`], [`Mount::give_back`], [`Mount::hand_over`]. Nothing may be on its way to a kernel
//! when a mount halts: a notification waits for a lock that a program holds until it is answered, and would keep this process
//! from ever becoming another one. What is to be told meanwhile waits, and is handed over too. So is every program's request: it stays in the kernel's queue.

use crate::door::Handed;
use crate::error::{Error, Result};
use crate::kernel::Requests;
use crate::mount::Mount;
use crate::serving::Serving;
use mw_model::ErrorKind;
use std::os::fd::OwnedFd;
use std::time::Duration;

impl Mount {
    /// Tells the kernel nothing more, and waits at most `limit` for what it is being told. Requests are answered meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`]: the kernel takes its time. To be followed by [`Mount::go_on`], as after success.
    pub fn quiet(&self, limit: Duration) -> Result<()> {
        if !self.is_alive() || self.door.notices.pause(limit) {
            return Ok(());
        }
        Err(self.busy("is being told of changes"))
    }

    /// Reads no more requests, and waits at most `limit` until those that were read are answered, but those that wait for a lock. Nobody watches over the mount then:
    /// there is nothing left in which a killed server could hang.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`]: something is not answered in time. To be followed by [`Mount::go_on`], as after success.
    pub fn halt(&self, limit: Duration) -> Result<()> {
        let Some(serving) = self.serving.lock().take() else { return Ok(()) };
        let left = serving.stop(&self.door, limit);
        if left.is_none() && self.is_alive() {
            return Err(self.busy("has requests that are not answered"));
        }
        *self.left.lock() = left;
        self.door.unguarded();
        Ok(())
    }

    /// Gives requests that wait for a lock back to the kernel, which sends them anew: they may wait for ever, and nothing was done for
    /// them yet. Comes when all mounts have halted, so that nobody can be given a lock meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`]: the kernel is older than Linux 6.9. To be followed by [`Mount::go_on`], as after success.
    pub fn give_back(&self) -> Result<()> {
        let waiting = self.left.lock().take().is_some_and(|left| left.unanswered() > 0);
        if !waiting || !self.is_alive() {
            return Ok(());
        }
        if self.door.kernel().is_none_or(|kernel| kernel.resend().is_err()) {
            return Err(self.busy("has programs that wait for a lock, who can go on waiting from Linux 6.9 on only"));
        }
        self.door.forget_waiting_for_locks();
        Ok(())
    }

    /// Returns the device of a mount that was halted, and what else the next server needs. `None` when the mount has ended.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn hand_over(&self) -> Result<Option<(OwnedFd, Handed)>> {
        if !self.is_alive() {
            return Ok(None);
        }
        let Some(kernel) = self.door.kernel() else { return Ok(None) };
        let device = kernel.another().map_err(|e| self.failed(e))?;
        Ok(Some((device, self.door.hand_over())))
    }

    /// Undoes [`Mount::quiet`] and [`Mount::halt`].
    ///
    /// # Errors
    /// No thread can be started; the mount hangs until it is ended.
    pub fn go_on(&self) -> Result<()> {
        let mut serving = self.serving.lock();
        if serving.is_none()
            && self.is_alive()
            && let Some(kernel) = self.door.kernel()
        {
            if let Some(number) = self.door.number() {
                self.door.numbered(number, self.how.guard.as_ref());
            }
            let device = kernel.another().map_err(|e| self.failed(e))?;
            let session = fuser::Session::resume(Requests(self.door.clone()), device, self.how.acl, self.how.config());
            *serving = Some(Serving::begin(session).map_err(|e| self.failed(e))?);
        }
        self.door.notices.resume();
        Ok(())
    }

    /// Returns how many programs wait for a lock.
    pub fn waiting_for_locks(&self) -> usize {
        self.door.waiting_for_locks()
    }

    /// Returns the kernel's number of the mount (the minor number of its device).
    pub fn number(&self) -> Option<u32> {
        self.door.number()
    }

    fn busy(&self, what: &str) -> Error {
        Error::new(ErrorKind::Busy, format!("the mount at {} {what}", self.dir().display()))
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::io(format!("the mount at {} cannot be handed over", self.dir().display()), error)
    }
}
