//! All runs of a store.

use crate::console::Console;
use crate::error::{Error, Result};
use crate::events::{Event, Events};
use crate::journal::Journal;
use crate::record::{Attempt, Run, State};
use crate::spec::RunSpec;
use crate::workspace::Workspace;
use mw_model::ErrorKind;
use mw_sandbox::{Backend, Running};
use mw_world::{Principal, Role, Store};
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Where runs happen.
#[derive(Clone)]
pub struct Place {
    /// Shows forks as directories.
    pub workspace: Arc<dyn Workspace>,
    /// Runs commands isolated.
    pub backend: Arc<dyn Backend>,
    /// Where the store answers S3, on this machine.
    pub endpoint: SocketAddr,
    /// How many attempts of one run work at the same time.
    pub parallel: usize,
}

/// All runs of a store.
pub struct Runs {
    pub(crate) store: Arc<Store>,
    pub(crate) place: Place,
    pub(crate) journal: Journal,
    pub(crate) live: Mutex<HashMap<String, Arc<Live>>>,
    pub(crate) idle: Condvar,
    pub(crate) me: Weak<Runs>,
}

/// A run that has not ended.
pub(crate) struct Live {
    pub run: Mutex<Run>,
    pub who: Principal,
    pub spec: RunSpec,
    pub events: Events,
    pub cancelled: AtomicBool,
    /// The sandboxes that work for it.
    pub sandboxes: Mutex<Vec<Arc<dyn Running>>>,
    pub console: Console,
}

impl Live {
    /// Changes the record, writes it down, and tells the watchers when that moved the run or the attempt on.
    pub(crate) fn advance(&self, journal: &Journal, attempt: Option<u32>, change: impl FnOnce(&mut Run)) -> Result<()> {
        let state_of = |run: &Run| match attempt {
            Some(n) => run.attempts[n as usize - 1].state,
            None => run.state,
        };
        let (before, state) = {
            let mut run = self.run.lock();
            let before = state_of(&run);
            change(&mut run);
            journal.save(&run)?;
            (before, state_of(&run))
        };
        if state != before {
            self.events.push(Event::State { attempt, state });
        }
        Ok(())
    }

    /// Changes one attempt.
    pub(crate) fn attempt(&self, journal: &Journal, n: u32, change: impl FnOnce(&mut Attempt)) -> Result<()> {
        self.advance(journal, Some(n), |run| change(&mut run.attempts[n as usize - 1]))
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }
}

fn missing(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("run {id:?} does not exist; `mw runs list` shows what does"))
}

impl Runs {
    /// Opens the runs of a store, and finishes or cleans up those that a former process left.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn open(store: Arc<Store>, place: Place) -> Result<Arc<Self>> {
        let journal = Journal(store.meta().clone());
        let runs = Arc::new_cyclic(|me| Self {
            store,
            place,
            journal,
            live: Mutex::new(HashMap::new()),
            idle: Condvar::new(),
            me: me.clone(),
        });
        runs.recover()?;
        Ok(runs)
    }

    /// Starts a run and returns at once.
    ///
    /// # Errors
    /// `Invalid` for a run that breaks a rule; `Denied` unless the key is admin on the base; `Unsupported` where this machine
    /// cannot isolate commands.
    pub fn start(&self, who: &Principal, spec: &RunSpec, idempotency: Option<&str>) -> Result<Run> {
        spec.check()?;
        let session = self.store.session(who, &spec.base)?;
        let needed = if spec.exec { Role::Editor } else { Role::Admin };
        if !session.allows(needed) {
            return Err(Error::new(ErrorKind::Denied, format!("this needs the role {needed} on world {}", spec.base)));
        }
        self.place.backend.probe()?;
        let mut shown = spec.clone();
        shown.env.values_mut().for_each(|value| *value = "…".to_owned());
        let run = Run {
            id: self.store.env().token(10),
            spec: shown,
            key: who.key_id().to_owned(),
            state: State::Planned,
            created: self.store.env().now(),
            ended: None,
            attempts: (1..=spec.count()).map(Attempt::new).collect(),
            winner: None,
            version: None,
            conflicts: Vec::new(),
            changes: Vec::new(),
            error: None,
        };
        if let Some(before) = self.journal.plan(&run, idempotency)? {
            return Ok(before);
        }
        let live = Arc::new(Live {
            run: Mutex::new(run.clone()),
            who: who.lasting(),
            spec: spec.clone(),
            events: Events::default(),
            cancelled: AtomicBool::new(false),
            sandboxes: Mutex::new(Vec::new()),
            console: Console::default(),
        });
        self.live.lock().insert(run.id.clone(), live.clone());
        let Some(me) = self.me.upgrade() else { return Ok(run) };
        let started = std::thread::Builder::new().name("run".to_owned()).spawn({
            let live = live.clone();
            move || me.drive(&live)
        });
        if let Err(e) = started {
            self.end(&live, |run| {
                run.state = State::Failed;
                run.error = Some(format!("no thread could be started: {e}"));
            });
        }
        Ok(run)
    }

    /// Takes a run from its plan to its end.
    fn drive(&self, live: &Arc<Live>) {
        let work = || -> Result<()> {
            if live.spec.exec {
                return self.exec(live);
            }
            live.advance(&self.journal, None, |run| run.state = State::Started)?;
            let count = live.spec.count();
            let next = std::sync::atomic::AtomicU32::new(1);
            std::thread::scope(|scope| {
                for _ in 0..self.place.parallel.clamp(1, count as usize) {
                    scope.spawn(|| {
                        loop {
                            let n = next.fetch_add(1, Ordering::SeqCst);
                            if n > count {
                                break;
                            }
                            self.attempt(live, n);
                        }
                    });
                }
            });
            self.settle(live)
        };
        if let Err(e) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Io, "the run met a fault of the program; see the server's log"))
        }) {
            tracing::warn!(run = live.run.lock().id, "the run failed: {e}");
            self.end(live, |run| {
                run.state = State::Failed;
                run.error = Some(e.to_string());
            });
        }
    }

    /// Writes the end of a run down, and forgets it here.
    pub(crate) fn end(&self, live: &Live, change: impl FnOnce(&mut Run)) {
        let run = {
            let mut run = live.run.lock();
            change(&mut run);
            if live.is_cancelled() && run.state == State::Failed {
                run.state = State::Cancelled;
            }
            run.ended = Some(self.store.env().now());
            run.clone()
        };
        self.kill_keys(&run.id);
        if let Err(e) = self.journal.save(&run) {
            tracing::error!(run = run.id, "the end of the run could not be written down; a restart will clean up: {e}");
        }
        self.live.lock().remove(&run.id);
        self.idle.notify_all();
        live.events.push(Event::Result(Box::new(run)));
    }

    /// Returns the run if `who` may see it: whoever may read its base.
    fn visible(&self, who: &Principal, run: Option<Run>, id: &str) -> Result<Run> {
        let run = run.ok_or_else(|| missing(id))?;
        let own = run.key == who.key_id() || who.is_root();
        if own || self.store.session(who, &run.spec.base).is_ok() { Ok(run) } else { Err(missing(id)) }
    }

    /// Returns a run.
    ///
    /// # Errors
    /// `NotFound`, also for a run that `who` may not see.
    pub fn show(&self, who: &Principal, id: &str) -> Result<Run> {
        let live = self.live.lock().get(id).map(|live| live.run.lock().clone());
        let run = match live {
            Some(run) => Some(run),
            None => self.journal.get(id)?,
        };
        self.visible(who, run, id)
    }

    /// Returns the runs that `who` may see, newest first.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn list(&self, who: &Principal) -> Result<Vec<Run>> {
        let mut runs = self.journal.all()?;
        runs.retain(|run| self.visible(who, Some(run.clone()), &run.id).is_ok());
        runs.sort_by_key(|run| std::cmp::Reverse(run.created));
        Ok(runs)
    }

    /// Hands the events of a run to `each`, until the run ended or `each` returns false.
    ///
    /// # Errors
    /// `NotFound`, also for a run that `who` may not see.
    pub fn watch(&self, who: &Principal, id: &str, each: &mut dyn FnMut(Event) -> bool) -> Result<()> {
        let run = self.show(who, id)?;
        let live = self.live.lock().get(id).cloned();
        match live {
            Some(live) => live.events.watch(each),
            None => {
                let run = self.journal.get(id)?.unwrap_or(run);
                each(Event::Result(Box::new(run)));
            }
        }
        Ok(())
    }

    /// Returns the run, unless it has ended, to whoever may act on it: the key that started it, and the admins of its base.
    pub(crate) fn own(&self, who: &Principal, id: &str, done: &str) -> Result<Option<Arc<Live>>> {
        let run = self.show(who, id)?;
        let admin = self.store.session(who, &run.spec.base).is_ok_and(|s| s.allows(Role::Admin));
        if !(admin || run.key == who.key_id()) {
            return Err(Error::new(
                ErrorKind::Denied,
                format!("a run is {done} by the key that started it, or by an admin of its base"),
            ));
        }
        Ok(self.live.lock().get(id).cloned())
    }

    /// Cancels a run and returns when it has ended cleanly. Does nothing to a run that ended.
    ///
    /// # Errors
    /// `NotFound`, also for a run that `who` may not see; `Denied` unless the key started it or is admin on the base.
    pub fn cancel(&self, who: &Principal, id: &str) -> Result<Run> {
        if let Some(live) = self.own(who, id, "cancelled")? {
            live.cancelled.store(true, Ordering::SeqCst);
            for sandbox in live.sandboxes.lock().iter() {
                sandbox.kill();
            }
            let mut all = self.live.lock();
            while all.contains_key(id) {
                self.idle.wait(&mut all);
            }
        }
        self.show(who, id)
    }

    /// Returns how many runs have not ended.
    pub fn active(&self) -> u64 {
        self.live.lock().len() as u64
    }

    /// Returns the runs that have not ended.
    pub fn under_way(&self) -> Vec<String> {
        self.live.lock().keys().cloned().collect()
    }

    /// Cancels every run and waits for their ends (the server stops).
    pub fn stop(&self) {
        for live in self.live.lock().values() {
            live.cancelled.store(true, Ordering::SeqCst);
            for sandbox in live.sandboxes.lock().iter() {
                sandbox.kill();
            }
        }
        let mut all = self.live.lock();
        while !all.is_empty() {
            self.idle.wait(&mut all);
        }
    }
}
