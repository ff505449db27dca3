//! What the caller holds of a running sandbox, and the thread behind it.
//!
//! The kernel kills the builder when the *thread* that started it ends (prctl(2), PR_SET_PDEATHSIG). So each sandbox has a
//! thread of its own, which starts it, watches it and outlives it, whatever pool the caller's thread belongs to.

use crate::launch::{Alive, Launch};
use crate::outcome::Outcome;
use crate::pump::Output;
use crate::shared::{Request, Shared};
use crate::spec::Enforcers;
use crate::watch::watch;
use crate::{Error, Result, Running};
use parking_lot::{Condvar, Mutex};
use rustix::event::EventfdFlags;
use rustix::termios::Winsize;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A running sandbox.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Starts `launch` on a thread of its own.
pub(crate) fn start(launch: Launch, output: Arc<dyn Output>) -> Result<Box<dyn Running>> {
    let (tell, told) = mpsc::sync_channel(1);
    let work = move || live(launch, &output, &tell);
    let thread = std::thread::Builder::new()
        .name(String::from("sandbox"))
        .spawn(work)
        .map_err(Error::io("start a thread for the sandbox"))?;
    let shared = told.recv().map_err(|_| Error::Setup(String::from("the thread that builds it broke")))??;
    Ok(Box::new(Handle { shared, thread: Some(thread) }))
}

/// The life of one sandbox.
fn live(launch: Launch, output: &Arc<dyn Output>, tell: &mpsc::SyncSender<Result<Arc<Shared>>>) {
    let (env, limits) = (launch.env.clone(), launch.limits.clone());
    let started = launch.run(output).and_then(|mut alive| {
        let shared = share(&mut alive)?;
        Ok((alive, shared))
    });
    let (alive, shared) = match started {
        Ok(started) => started,
        Err(e) => {
            let _ = tell.send(Err(e));
            return;
        }
    };
    let begun = env.monotonic();
    if tell.send(Ok(Arc::clone(&shared))).is_err() {
        shared.ask(Request::Kill);
    }
    let outcome = watch(alive, &shared, &env, &limits, begun);
    *shared.input.lock() = None;
    *shared.end.lock() = Some(outcome);
    shared.ended.notify_all();
}

fn share(alive: &mut Alive) -> Result<Arc<Shared>> {
    let bell = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    Ok(Arc::new(Shared {
        bell: bell.map_err(Error::io("make an event"))?,
        request: Mutex::new(Request::Nothing),
        end: Mutex::new(None),
        ended: Condvar::new(),
        pid: alive.pid.as_raw_nonzero().get(),
        enforcers: alive.enforcers,
        input: Mutex::new(alive.input.take()),
        terminal: alive.terminal.take(),
    }))
}

impl Running for Handle {
    fn wait(&self) -> Outcome {
        let mut end = self.shared.end.lock();
        loop {
            if let Some(outcome) = &*end {
                return outcome.clone();
            }
            self.shared.ended.wait(&mut end);
        }
    }

    fn outcome(&self) -> Option<Outcome> {
        self.shared.end.lock().clone()
    }

    fn stop(&self) {
        self.shared.ask(Request::Stop);
    }

    fn kill(&self) {
        self.shared.ask(Request::Kill);
    }

    fn pid(&self) -> i32 {
        self.shared.pid
    }

    fn limits_enforced_by(&self) -> Enforcers {
        self.shared.enforcers
    }

    fn input(&self, bytes: &[u8]) -> Result<()> {
        let mut input = self.shared.input.lock();
        let file = input.as_mut().ok_or(io::ErrorKind::BrokenPipe).map_err(Error::io("write to the command"))?;
        file.write_all(bytes).map_err(Error::io("write to the command"))
    }

    fn close_input(&self) {
        if self.shared.terminal.is_none() {
            *self.shared.input.lock() = None;
        }
    }

    fn resize(&self, rows: u16, columns: u16) -> Result<()> {
        let Some(terminal) = &self.shared.terminal else { return Ok(()) };
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(terminal, size).map_err(Error::io("resize the terminal"))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.ask(Request::Kill);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
