//! The write path: check, number, append, publish, all under one lock and without a thread hand-over.
//!
//! Invariant: a batch is in the table exactly when its record is whole in the log; records follow one another without a gap.
//! A write that failed for want of room leaves number and place to the next one; any other failed write ends all writing.

use super::required::Values;
use super::wal::{Chain, Draft, Epoch, HEAD, Header, align};
use super::{Base, Core, apply::Frozen};
use crate::{Batch, Error, Result};
use mw_env::{Disk, Env, File};
use mw_model::ErrorKind;
use parking_lot::MutexGuard;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// How many tables may wait for the tree: writers that come in a burst do not wait for it as long as it keeps up on average.
const FROZEN: usize = 4;
/// How many log files there are at most: one for each table that waits, the one being written, and one to go on with.
pub(super) const FILES: usize = FROZEN + 2;

/// A file of the log.
#[derive(Debug, Clone)]
pub(super) struct WalFile {
    pub(super) file: Arc<dyn File>,
    /// Its length: the room for header and records.
    pub(super) len: u64,
    /// What this use of the file is keyed by.
    pub(super) epoch: Epoch,
}

/// Where the log ends.
#[derive(Debug)]
pub(super) struct Log {
    /// The number of the last record.
    pub(super) lsn: u64,
    /// Its sum.
    pub(super) chain: Chain,
    /// The generation of the file being written.
    pub(super) generation: u64,
    pub(super) active: WalFile,
    /// Where the next record goes.
    pub(super) offset: u64,
    /// What batches required lately.
    pub(super) required: Values,
    /// Files to use next.
    pub(super) spares: Vec<WalFile>,
    /// The number of files, for naming the next one.
    pub(super) files: usize,
    /// The tables that wait for the tree, the oldest first.
    pub(super) frozen: VecDeque<Arc<Frozen>>,
    /// Why the oldest frozen table could not move, when trying again may help.
    pub(super) stuck: Option<Error>,
    /// The store ends.
    pub(super) stop: bool,
}

impl Core {
    /// Checks `batch`, appends and applies it, and returns the number to wait for.
    pub(super) fn submit(&self, batch: &Batch) -> Result<u64> {
        batch.check()?;
        let draft = Draft::new(batch);
        let mut log = self.log.lock();
        self.group.check()?;
        if draft.changes.is_empty() {
            self.require(&mut log, batch)?;
            // Whoever waits then knows that what held is on disk.
            return Ok(log.lsn);
        }
        // Before the requirements are looked at, because making room may let the lock go.
        self.make_room(&mut log, draft.len())?;
        self.require(&mut log, batch)?;
        self.append(&mut log, draft)?;
        self.freeze_when_large(&mut log)?;
        let lsn = log.lsn;
        drop(log);
        if self.options.background {
            self.pulse.beat();
        }
        Ok(lsn)
    }

    fn require(&self, log: &mut Log, batch: &Batch) -> Result<()> {
        batch.check_requires(|key| {
            if let Some(value) = log.required.get(key) {
                return Ok(Some(value));
            }
            let value = self.get_with(key, Base::get_required)?;
            if let Some(value) = &value {
                log.required.keep(key, value);
            }
            Ok(value)
        })
    }

    fn append(&self, log: &mut Log, draft: Draft) -> Result<()> {
        let lsn = log.lsn + 1;
        let (record, changes, sum) = draft.seal(&log.active.epoch, lsn, self.group.synced(), &log.chain);
        if let Err(error) = log.active.file.write_at(&record, log.offset) {
            // The record may be whole on the disk although the call failed. Nothing follows it until its place is written
            // again, and a blank sum keeps it from being replayed meanwhile.
            let _ = log.active.file.write_at(&[0; 16], log.offset);
            return Err(self.refused("appending to the log", error));
        }
        log.lsn = lsn;
        log.chain = sum;
        log.offset = align(log.offset + record.len() as u64);
        changes.iter().for_each(|change| log.required.forget(&record[change.key.clone()]));
        self.view.write().active.apply(&record, &changes);
        self.group.wrote(lsn);
        Ok(())
    }

    /// Makes the active file have room for `need` bytes. Waits, with the lock let go, when a table must move first.
    fn make_room(&self, log: &mut MutexGuard<'_, Log>, need: u64) -> Result<()> {
        let mut tried = false;
        loop {
            self.group.check()?;
            if log.offset + need <= log.active.len {
                return Ok(());
            }
            if log.offset == HEAD {
                return self.grow(&mut log.active, align(HEAD + need));
            }
            if log.frozen.is_empty() || self.may_freeze(log) {
                self.freeze(log)?;
                continue;
            }
            if let Some(stuck) = log.stuck.clone() {
                if tried {
                    return Err(stuck);
                }
                log.stuck = None;
                tried = true;
            }
            if self.options.background {
                self.work.notify_one();
                self.room.wait(log);
            } else {
                tried = true;
                self.apply_here(log);
            }
        }
    }

    /// Gives a batch that is larger than a log file its room.
    fn grow(&self, wal: &mut WalFile, len: u64) -> Result<()> {
        match wal.file.allocate(wal.len, len - wal.len) {
            Ok(()) => {
                wal.len = len;
                Ok(())
            }
            Err(error) => Err(self.refused("growing a log file", error)),
        }
    }

    /// Freezes the table at its size limit. Never makes a file for it: a batch that fits must not wait for that.
    fn freeze_when_large(&self, log: &mut Log) -> Result<()> {
        if self.view.read().active.bytes() < self.options.table_bytes || !self.may_freeze(log) {
            return Ok(());
        }
        // The batch is in already; when the switch is refused for want of room it is tried again with the next batch.
        if let Err(error) = self.freeze(log) {
            tracing::warn!(%error, "a full table could not be set aside yet");
            return Ok(());
        }
        if !self.options.background {
            self.apply_here(log);
        }
        Ok(())
    }

    /// Returns whether another table may wait for the tree, and there is a file to go on with.
    fn may_freeze(&self, log: &Log) -> bool {
        let most = if self.options.background { FROZEN } else { 1 };
        log.frozen.len() < most && !log.spares.is_empty()
    }

    /// Sets the active table aside with its log file and goes on with another file.
    fn freeze(&self, log: &mut Log) -> Result<()> {
        let spare = match log.spares.pop() {
            Some(spare) => spare,
            None => {
                let file = new_file(&*self.disk, log.files, self.options.wal_bytes)
                    .map_err(|e| self.refused("making a log file", e))?;
                log.files += 1;
                file
            }
        };
        let next = match self.begin(log, &spare) {
            Ok(next) => next,
            Err(error) => {
                log.spares.push(spare);
                return Err(error);
            }
        };
        log.generation += 1;
        log.offset = HEAD;
        self.group.switched(next.file.clone());
        let full = std::mem::replace(&mut log.active, next);
        let mut view = self.view.write();
        let table = std::mem::take(&mut view.active);
        view.frozen.insert(0, table.clone());
        drop(view);
        let frozen = Frozen { table, lsn: log.lsn, chain: log.chain, live_from: log.generation, wal: full };
        log.frozen.push_back(Arc::new(frozen));
        self.work.notify_one();
        Ok(())
    }

    fn begin(&self, log: &Log, spare: &WalFile) -> Result<WalFile> {
        let generation = log.generation + 1;
        let next = WalFile { epoch: new_epoch(&self.env, generation), ..spare.clone() };
        let header =
            Header { generation, epoch: next.epoch, first: log.lsn + 1, prev: log.chain, durable: self.group.synced() };
        next.file.write_at(&header.encode(), 0).map_err(|e| self.refused("starting a log file", e))?;
        Ok(next)
    }

    /// Turns a refusal of the disk into an error. Want of room may pass; anything else ends all writing.
    pub(super) fn refused(&self, doing: &'static str, error: io::Error) -> Error {
        let error = Error::io(doing, error);
        if error.kind() != ErrorKind::NoSpace {
            self.group.fail(error.clone());
        }
        error
    }
}

/// Draws an epoch. The generation is mixed in, so that even randomness that repeats after a restart gives no epoch twice.
pub(super) fn new_epoch(env: &Env, generation: u64) -> Epoch {
    let mut random = [0; 40];
    env.fill(&mut random[..32]);
    random[32..].copy_from_slice(&generation.to_be_bytes());
    *blake3::hash(&random).as_bytes()
}

/// Returns the name of log file `index`.
pub(super) fn name(index: usize) -> String {
    format!("meta-{index}.wal")
}

/// Makes log file `index`, or completes one whose making was interrupted.
///
/// The file is filled with zeros, not only reserved: only then does a later sync of a record change nothing but the record's
/// own blocks.
pub(super) fn new_file(disk: &dyn Disk, index: usize, len: u64) -> io::Result<WalFile> {
    let file = disk.open(&name(index))?;
    fill(&*file, len)?;
    Ok(WalFile { file, len, epoch: [0; 32] })
}

/// Fills `file` with zeros from its end to `len`, durably.
pub(super) fn fill(file: &dyn File, len: u64) -> io::Result<()> {
    let have = file.len()?;
    if have >= len {
        return Ok(());
    }
    file.allocate(have, len - have)?;
    // In small steps: the kernel keeps a file in memory in pieces as large as the writes that made it, and a later write of
    // one record costs as much as the piece around it is large.
    let zeros = [0; 16 << 10];
    let mut at = have;
    while at < len {
        let step = (len - at).min(zeros.len() as u64);
        file.write_at(&zeros[..step as usize], at)?;
        at += step;
    }
    file.sync()
}
