//! [`SimDisk`]: a [`Disk`] in memory with a power cord.
//!
//! Invariants: what was synced survives every crash; names are durable at once, as [`Disk`] promises; the fate of everything
//! else follows from the seed. Calls that change something are *steps*, counted from 0 since the disk was made; reads are not.

use crate::change::{Change, Mood, survive};
use crate::image::{Image, PAGE};
use mw_env::{Disk, Env, File};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A disk in memory. Clones are handles on the same disk.
#[derive(Clone)]
pub struct SimDisk(Arc<Mutex<State>>);

/// How often the disk was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that change something: opens of new names, writes, syncs, cuts, reservations, holes, removals.
    pub steps: u64,
    /// Calls of `write_at`.
    pub writes: u64,
    /// Bytes handed to `write_at`.
    pub bytes_written: u64,
    /// Calls of `sync`.
    pub syncs: u64,
    /// Calls of `read_at`.
    pub reads: u64,
}

struct State {
    env: Env,
    names: BTreeMap<String, usize>,
    /// Grows only: an open file outlives its name.
    inodes: Vec<Inode>,
    counts: Counts,
    fail_at: Option<u64>,
    off: bool,
    capacity: Option<u64>,
    failing_syncs: u32,
}

#[derive(Clone, Default)]
struct Inode {
    /// What every reader sees.
    live: Image,
    /// What a crash leaves at least.
    durable: Image,
    /// What leads from `durable` to `live`, in order.
    pending: Vec<Change>,
}

/// What becomes of a step: it runs, or the power goes in the middle of it.
#[derive(PartialEq)]
enum Power {
    On,
    Cut,
}

impl SimDisk {
    /// Returns an empty disk whose bad luck follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self::with(Env::seeded(seed), BTreeMap::new(), Vec::new())
    }

    fn with(env: Env, names: BTreeMap<String, usize>, inodes: Vec<Inode>) -> Self {
        let counts = Counts::default();
        let state = State { env, names, inodes, counts, fail_at: None, off: false, capacity: None, failing_syncs: 0 };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the disk as found after a power cut at this instant, in fresh order: no fault armed, all counts at 0. Each change
    /// that was not synced is kept, lost or torn between sectors. This disk is left as it is, so that the former life
    /// of a store, with its threads, cannot reach the new one. A second call draws new luck.
    #[must_use]
    pub fn crash(&self) -> Self {
        let seed = self.0.lock().env.random();
        self.crash_as(seed)
    }

    /// Does what [`SimDisk::crash`] does with luck drawn from `seed`: many crashes of one instant can be tried.
    #[must_use]
    pub fn crash_as(&self, seed: u64) -> Self {
        let env = Env::seeded(seed);
        let mood = Mood::draw(&env);
        self.reborn(env, |_, inode, env| found(inode, mood, env))
    }

    /// Does what [`SimDisk::crash`] does, but all that was not synced of a file is kept, or all of it lost, as `keep` says by the
    /// file's name: orders between files that luck seldom finds.
    #[must_use]
    pub fn crash_split(&self, keep: impl Fn(&str) -> bool) -> Self {
        let env = Env::seeded(self.0.lock().env.random());
        self.reborn(env, |name, inode, env| {
            found(inode, if keep(name) { Mood::Everything } else { Mood::Nothing }, env)
        })
    }

    /// Returns the disk as found after the process was killed while the machine lived on: everything written is there, though what
    /// was not synced is still not safe from a later [`SimDisk::crash`].
    #[must_use]
    pub fn kill(&self) -> Self {
        let env = Env::seeded(self.0.lock().env.random());
        self.reborn(env, |_, inode, _| inode.clone())
    }

    fn reborn(&self, env: Env, find: impl Fn(&str, &Inode, &Env) -> Inode) -> Self {
        let state = self.0.lock();
        let mut names = BTreeMap::new();
        let mut inodes = Vec::new();
        for (name, &number) in &state.names {
            names.insert(name.clone(), inodes.len());
            inodes.push(find(name, &state.inodes[number], &env));
        }
        Self::with(env, names, inodes)
    }

    /// Arms a power cut: step number `step` (from 0, since the disk was made) fails half done, and every later call fails, reads included.
    pub fn fail_at(&self, step: u64) {
        self.0.lock().fail_at = Some(step);
    }

    /// Cuts the power now: every later call fails.
    pub fn power_off(&self) {
        self.0.lock().off = true;
    }

    /// Returns whether the power is gone.
    pub fn is_off(&self) -> bool {
        self.0.lock().off
    }

    /// Limits the disk to `bytes` (in pages of 4 KiB); what does not fit fails with `StorageFull`. A write may fit in part, and
    /// is then found in part, as POSIX allows.
    pub fn full(&self, bytes: u64) {
        self.0.lock().capacity = Some(bytes);
    }

    /// Takes the limit of [`SimDisk::full`] away.
    pub fn roomy(&self) {
        self.0.lock().capacity = None;
    }

    /// Makes the next sync fail. As on Linux, what it should have written is then forgotten: some of it is on disk, the rest never will
    /// be, reads show it until the crash, and a second sync succeeds without having saved anything.
    pub fn fail_sync_once(&self) {
        self.0.lock().failing_syncs += 1;
    }

    /// Flips one bit of the file `name`, in memory and on disk, as a decaying medium does.
    ///
    /// # Errors
    /// `NotFound` for an unknown name, `UnexpectedEof` past the end.
    pub fn flip(&self, name: &str, offset: u64, bit: u8) -> io::Result<()> {
        let mut state = self.0.lock();
        let number = state.number(name)?;
        let inode = &mut state.inodes[number];
        if !inode.live.flip(offset, bit) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        inode.durable.flip(offset, bit);
        Ok(())
    }

    /// Returns the whole content of the file `name` as a reader sees it.
    ///
    /// # Errors
    /// `NotFound` for an unknown name.
    pub fn contents(&self, name: &str) -> io::Result<Vec<u8>> {
        let state = self.0.lock();
        let live = &state.inodes[state.number(name)?].live;
        let mut out = vec![0; live.len() as usize];
        live.read(&mut out, 0);
        Ok(out)
    }

    /// Returns the bytes of disk in use, in whole pages.
    pub fn used(&self) -> u64 {
        self.0.lock().used()
    }

    /// Returns how often the disk was used so far.
    pub fn counts(&self) -> Counts {
        self.0.lock().counts
    }
}

impl State {
    /// Counts a step.
    fn step(&mut self) -> io::Result<Power> {
        self.powered()?;
        let step = self.counts.steps;
        self.counts.steps += 1;
        if self.fail_at.is_some_and(|at| step >= at) {
            self.off = true;
            return Ok(Power::Cut);
        }
        Ok(Power::On)
    }

    fn powered(&self) -> io::Result<()> {
        if self.off { Err(power_cut()) } else { Ok(()) }
    }

    fn number(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn used(&self) -> u64 {
        self.names.values().map(|&number| self.inodes[number].live.used()).sum()
    }

    fn room(&self) -> u64 {
        self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used()))
    }

    fn change(&mut self, number: usize, change: Change) {
        let inode = &mut self.inodes[number];
        change.apply(&mut inode.live);
        inode.pending.push(change);
    }

    /// Runs a change that is a step; when the power goes in it, a crash decides whether it is found.
    fn change_step(&mut self, number: usize, change: Change) -> io::Result<()> {
        let power = self.step()?;
        self.change(number, change);
        if power == Power::Cut { Err(power_cut()) } else { Ok(()) }
    }

    fn sync(&mut self, number: usize) -> io::Result<()> {
        self.counts.syncs += 1;
        if self.step()? == Power::Cut {
            return Err(power_cut());
        }
        let failing = self.failing_syncs > 0;
        let inode = &mut self.inodes[number];
        let pending = std::mem::take(&mut inode.pending);
        if failing {
            self.failing_syncs -= 1;
            inode.durable = survive(&inode.durable, &pending, Mood::Mixed, &self.env);
            return Err(io::Error::other("simulated failure of a sync"));
        }
        for change in &pending {
            change.apply(&mut inode.durable);
        }
        Ok(())
    }

    /// Makes the write that was made last durable, and leaves what came before it to luck: where the file had to grow for it, zeros
    /// may be found before it. All is synced when an earlier change touches the same bytes, or the length.
    fn sync_last(&mut self, number: usize) -> io::Result<()> {
        let pending = &self.inodes[number].pending;
        let alone = pending.split_last().is_some_and(|(last, before)| before.iter().all(|b| !b.touches(last)));
        if !alone || self.failing_syncs > 0 {
            return self.sync(number);
        }
        self.counts.syncs += 1;
        if self.step()? == Power::Cut {
            return Err(power_cut());
        }
        let inode = &mut self.inodes[number];
        if let Some(last) = inode.pending.pop() {
            last.apply(&mut inode.durable);
        }
        Ok(())
    }
}

/// Returns a file as a crash leaves it.
fn found(inode: &Inode, mood: Mood, env: &Env) -> Inode {
    let found = survive(&inode.durable, &inode.pending, mood, env);
    Inode { live: found.clone(), durable: found, pending: Vec::new() }
}

fn power_cut() -> io::Error {
    io::Error::other("simulated power cut")
}

impl std::fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.0.lock();
        let lengths: BTreeMap<_, _> = state.names.iter().map(|(name, &n)| (name, state.inodes[n].live.len())).collect();
        f.debug_struct("SimDisk")
            .field("files", &lengths)
            .field("counts", &state.counts)
            .field("off", &state.off)
            .finish()
    }
}

impl Disk for SimDisk {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut state = self.0.lock();
        state.powered()?;
        let number = match state.names.get(name) {
            Some(&number) => number,
            None => {
                let power = state.step()?;
                if power == Power::Cut && state.env.random() & 1 == 0 {
                    return Err(power_cut());
                }
                let number = state.inodes.len();
                state.inodes.push(Inode::default());
                state.names.insert(name.to_owned(), number);
                if power == Power::Cut {
                    return Err(power_cut());
                }
                number
            }
        };
        Ok(Arc::new(SimFile { disk: self.clone(), number }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let state = self.0.lock();
        state.powered()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.powered()?;
        state.number(name)?;
        let power = state.step()?;
        if power == Power::On || state.env.random() & 1 == 1 {
            state.names.remove(name);
        }
        if power == Power::Cut { Err(power_cut()) } else { Ok(()) }
    }

    fn room(&self) -> io::Result<Option<u64>> {
        let state = self.0.lock();
        state.powered()?;
        Ok(state.capacity.map(|_| state.room()))
    }
}

/// One open file of a [`SimDisk`].
#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    number: usize,
}

impl File for SimFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        state.powered()?;
        state.counts.reads += 1;
        let live = &state.inodes[self.number].live;
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > live.len()) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the read goes past the end of the file"));
        }
        live.read(out, offset);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(io::ErrorKind::InvalidInput)?;
        let mut state = self.disk.0.lock();
        state.counts.writes += 1;
        state.counts.bytes_written += bytes.len() as u64;
        let room = state.room();
        let live = &state.inodes[self.number].live;
        let mut fits = end;
        while fits > offset && live.wants(offset..fits) > room {
            fits = (fits - 1) / PAGE * PAGE;
        }
        let fits = fits.max(offset);
        let part = bytes[..(fits - offset) as usize].to_vec();
        state.change_step(self.number, Change::Write { offset, bytes: part })?;
        if fits < end { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        self.disk.0.lock().sync_last(self.number)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.0.lock().sync(self.number)
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.disk.0.lock();
        state.powered()?;
        Ok(state.inodes[self.number].live.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.0.lock().change_step(self.number, Change::SetLen(len))
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        let end = offset.checked_add(len).ok_or(io::ErrorKind::InvalidInput)?;
        let mut state = self.disk.0.lock();
        if state.inodes[self.number].live.wants(offset..end) > state.room() {
            state.step()?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.change_step(self.number, Change::Allocate(offset..end))
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let end = offset.checked_add(len).ok_or(io::ErrorKind::InvalidInput)?;
        self.disk.0.lock().change_step(self.number, Change::Punch(offset..end))
    }

    fn held(&self, offset: u64, len: u64) -> io::Result<u64> {
        let end = offset.checked_add(len).ok_or(io::ErrorKind::InvalidInput)?;
        let state = self.disk.0.lock();
        state.powered()?;
        Ok(state.inodes[self.number].live.held(offset..end))
    }

    fn allocated(&self) -> io::Result<u64> {
        let state = self.disk.0.lock();
        state.powered()?;
        Ok(state.inodes[self.number].live.used())
    }
}
