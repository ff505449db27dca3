//! Moving a frozen table into the tree, and its log file back into use.
//!
//! Invariant: the log file is used again only after the tree holds all of its records durably. Tables move in their order. A few
//! may wait; when writers fill another one meanwhile, they wait too. A tree that failed is never written again: it is opened anew, or,
//! when the disk cannot be trusted, opened for reading alone.

use super::base::Mark;
use super::memtable::Memtable;
use super::wal::Chain;
use super::write::{FILES, Log, WalFile, new_file};
use super::{Base, Core};
use crate::{Error, Result};
use mw_model::ErrorKind;
use std::sync::Arc;

/// A table that takes no more changes, and the log file that holds it.
#[derive(Debug)]
pub(super) struct Frozen {
    pub(super) table: Memtable,
    /// The last record in the table.
    pub(super) lsn: u64,
    /// Its sum.
    pub(super) chain: Chain,
    /// The generation of the log file after this one.
    pub(super) live_from: u64,
    pub(super) wal: WalFile,
}

impl Core {
    /// The background thread: moves one table after another.
    pub(super) fn apply_until_stopped(&self) {
        self.prepare_spare();
        let mut log = self.log.lock();
        loop {
            // What is still frozen at the end is in the log, and quicker to replay than to wait for.
            if log.stop || self.group.check().is_err() {
                self.room.notify_all();
                return;
            }
            match log.frozen.front().cloned() {
                Some(frozen) if log.stuck.is_none() => {
                    let next = log.spares.is_empty();
                    drop(log);
                    if next {
                        // Writers are faster than the tree just now: the next table must not have to wait for its file.
                        self.prepare_spare();
                        self.room.notify_all();
                    }
                    let result = self.move_table(&frozen);
                    log = self.log.lock();
                    self.settle(&mut log, &frozen, result);
                }
                _ => self.work.wait(&mut log),
            }
        }
    }

    /// Moves the frozen table on the caller's thread, for a store without threads.
    pub(super) fn apply_here(&self, log: &mut Log) {
        if let Some(frozen) = log.frozen.front().cloned() {
            let result = self.move_table(&frozen);
            self.settle(log, &frozen, result);
        }
    }

    /// Makes a log file to go on with, when there is none and there may be one more.
    fn prepare_spare(&self) {
        let mut log = self.log.lock();
        if log.stop || !log.spares.is_empty() || log.files >= FILES {
            return;
        }
        let index = log.files;
        log.files += 1;
        drop(log);
        match new_file(&*self.disk, index, self.options.wal_bytes) {
            Ok(spare) => self.log.lock().spares.push(spare),
            // Whoever needs the file makes it, and hears of it.
            Err(error) => tracing::warn!(%error, "the spare log file could not be made yet"),
        }
    }

    fn move_table(&self, frozen: &Frozen) -> Result<()> {
        let _turn = self.applying.lock();
        let base = self.view.read().base.clone();
        let mark = Mark { lsn: frozen.lsn, chain: frozen.chain, live_from: frozen.live_from };
        match base.apply(&frozen.table, &mark) {
            Ok(moved) => {
                let mut view = self.view.write();
                view.base = Arc::new(moved);
                // The oldest: tables move in their order.
                view.frozen.pop();
                Ok(())
            }
            Err(error) => {
                self.replace(&base, &error);
                Err(error)
            }
        }
    }

    /// Opens the tree anew after `error`. The frozen table stays over it, so that readers see no difference.
    fn replace(&self, base: &Base, error: &Error) {
        let again =
            if error.kind() == ErrorKind::NoSpace && !base.sync_failed() { base.reopen() } else { Err(error.clone()) };
        let again = again.or_else(|again| {
            self.group.fail(again);
            base.reopen_for_reading()
        });
        match again {
            Ok(again) => self.view.write().base = Arc::new(again),
            Err(error) => tracing::error!(%error, "the metadata tree cannot even be read"),
        }
    }

    fn settle(&self, log: &mut Log, frozen: &Frozen, result: Result<()>) {
        match result {
            Ok(()) => {
                self.group.reached(frozen.lsn);
                log.frozen.pop_front();
                log.stuck = None;
                if let Some(spare) = self.recycle(&frozen.wal) {
                    log.spares.push(spare);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a table could not be moved into the tree");
                log.stuck = Some(error);
            }
        }
        self.room.notify_all();
    }

    /// Returns the file at its usual size, fit for another use; `None` when it cannot be cut.
    fn recycle(&self, wal: &WalFile) -> Option<WalFile> {
        let mut wal = wal.clone();
        if wal.len > self.options.wal_bytes {
            wal.file.set_len(self.options.wal_bytes).ok()?;
            wal.len = self.options.wal_bytes;
        }
        Some(wal)
    }
}
