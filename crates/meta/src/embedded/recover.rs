//! Opening a store: what the tree holds, then the records of the log that follow it.
//!
//! Invariant: exactly the records that follow the tree's mark without a gap are replayed; the first that does not verify ends
//! the log. When a later record proves that the missing one had been on disk, that is damage, and it is reported, not cut.
//! Everything replayed is in the tree before the store opens, so that no log file is ever appended to in a second life.

use super::base::{Base, Mark};
use super::flusher::Pulse;
use super::group::Group;
use super::memtable::Memtable;
use super::required::Values;
use super::wal::{HEAD, Header, PREFIX, Prefix, Record, align};
use super::write::{Log, WalFile, fill, name, new_epoch, new_file};
use super::{Core, Options, View};
use crate::{Error, Result};
use bytes::Bytes;
use mw_env::{Disk, Env, File};
use mw_model::ErrorKind;
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::VecDeque;
use std::sync::Arc;

const TREE: &str = "meta.redb";

/// A log file that is in use: its header verifies.
struct Live {
    name: String,
    header: Header,
    file: Arc<dyn File>,
}

/// Opens the store on `disk`.
pub(super) fn open(disk: Arc<dyn Disk>, env: Env, mut options: Options) -> Result<Core> {
    // Room for the header and some records at least.
    options.wal_bytes = align(options.wal_bytes.max(2 * HEAD));
    let names = disk.list().map_err(|e| Error::io("listing the store's files", e))?;
    let indices = wal_indices(&names);
    let live = read_headers(&*disk, &indices)?;
    // A log file is made only after the tree is whole.
    let tree = disk.open(TREE).map_err(|e| Error::io("opening the tree's file", e))?;
    let (mut base, mut mark) = Base::open(tree, options.cache_bytes, indices.is_empty())?;

    let newest = live.iter().map(|live| live.header.generation).max().unwrap_or(0);
    let live: Vec<Live> = live.into_iter().filter(|live| live.header.generation >= mark.live_from).collect();
    if !live.is_empty() {
        let table = replay(&live, &mut mark)?;
        // Also when nothing was replayed: files of a history that was cut off must never be looked at again.
        mark.live_from = newest + 1;
        base = base.apply(&table, &mark)?;
    }

    let generation = newest.max(mark.live_from) + 1;
    let (active, spares, files) = start_files(&*disk, &env, &options, &indices, generation, &mark)?;
    let group = Arc::new(Group::new(mark.lsn, active.file.clone()));
    let log = Log {
        lsn: mark.lsn,
        chain: mark.chain,
        generation,
        active,
        offset: HEAD,
        spares,
        required: Values::default(),
        files,
        frozen: VecDeque::new(),
        stuck: None,
        stop: false,
    };
    Ok(Core {
        disk,
        env,
        options,
        applying: Mutex::new(()),
        log: Mutex::new(log),
        room: Condvar::new(),
        work: Condvar::new(),
        view: RwLock::new(View { active: Memtable::default(), frozen: Vec::new(), base: Arc::new(base) }),
        group,
        pulse: Arc::new(Pulse::default()),
    })
}

fn wal_indices(names: &[String]) -> Vec<usize> {
    let index = |name: &String| name.strip_prefix("meta-")?.strip_suffix(".wal")?.parse().ok();
    let mut indices: Vec<usize> = names.iter().filter_map(index).collect();
    indices.sort_unstable();
    indices
}

/// Reads the headers of the files in use, in the order of the log.
fn read_headers(disk: &dyn Disk, indices: &[usize]) -> Result<Vec<Live>> {
    let reading = |e| Error::io("reading a log file's header", e);
    let mut live = Vec::new();
    for &index in indices {
        let name = name(index);
        let file = disk.open(&name).map_err(reading)?;
        if file.len().map_err(reading)? < HEAD {
            continue;
        }
        let mut page = vec![0; HEAD as usize];
        file.read_at(&mut page, 0).map_err(reading)?;
        if let Some(header) = Header::decode(&page, &name)? {
            live.push(Live { name, header, file });
        }
    }
    live.sort_by_key(|live| live.header.generation);
    Ok(live)
}

/// Replays the records that follow `mark` and moves it to the last of them.
fn replay(live: &[Live], mark: &mut Mark) -> Result<Memtable> {
    let mut table = Memtable::default();
    let mut ends = Vec::with_capacity(live.len());
    for file in live {
        let bytes = read_whole(&*file.file)?;
        // A file that does not go on from the very record before it is past a gap, or was started in vain.
        let follows = file.header.first == mark.lsn + 1 && file.header.prev == mark.chain;
        let end = if follows { replay_file(file, &bytes, mark, &mut table)? } else { HEAD as usize };
        ends.push((bytes, end));
    }
    for (file, (bytes, end)) in live.iter().zip(&ends) {
        check_known(file.header.durable, mark, &file.name, 0)?;
        check_rest(file, bytes, *end, mark)?;
    }
    Ok(table)
}

/// Replays one file and returns where its records end.
fn replay_file(live: &Live, bytes: &Bytes, mark: &mut Mark, table: &mut Memtable) -> Result<usize> {
    let mut offset = HEAD as usize;
    loop {
        let next = mark.lsn + 1;
        match Record::read(bytes, offset, &live.header.epoch, next) {
            Some(record) if record.prev == mark.chain => {
                let changes = record.changes().map_err(|why| Error::Corrupt {
                    what: format!("record {next} in {} at {offset} verifies but cannot be read: {why}", live.name),
                })?;
                table.apply(&record.bytes, &changes);
                mark.lsn = next;
                mark.chain = record.sum;
                offset = align((offset + record.bytes.len()) as u64) as usize;
            }
            _ => return Ok(offset),
        }
    }
}

fn read_whole(file: &dyn File) -> Result<Bytes> {
    let reading = |e| Error::io("reading a log file", e);
    let len = usize::try_from(file.len().map_err(reading)?).unwrap_or(usize::MAX);
    let mut bytes = vec![0; len];
    file.read_at(&mut bytes, 0).map_err(reading)?;
    Ok(Bytes::from(bytes))
}

/// Looks at what lies behind the replayed records for one that knew a missing one to be on disk.
fn check_rest(live: &Live, bytes: &Bytes, end: usize, mark: &Mark) -> Result<()> {
    const STEP: usize = 4096;
    // No more records fit the file. The bytes looked at are mostly those of a former use, or content: they are told by what
    // stands where a number would, without hashing anything.
    let first = live.header.first.max(mark.lsn + 1);
    let last = live.header.first + (bytes.len() / PREFIX) as u64;
    for start in (end..bytes.len()).step_by(STEP) {
        let stop = (start + STEP).min(bytes.len());
        // No record starts among zeros, because no sum is zero; most of a file is.
        if bytes[start..stop] == [0; STEP][..stop - start] {
            continue;
        }
        for offset in (start..stop).step_by(8) {
            if let Some(prefix) = Prefix::read(bytes, offset, &live.header.epoch, |lsn| (first..=last).contains(&lsn)) {
                check_known(prefix.durable, mark, &live.name, end)?;
            }
        }
    }
    Ok(())
}

fn check_known(durable: u64, mark: &Mark, name: &str, offset: usize) -> Result<()> {
    if durable <= mark.lsn {
        return Ok(());
    }
    let what = format!(
        "record {} of the log was on disk and does not verify any more ({name}, offset {offset})",
        mark.lsn + 1
    );
    Err(Error::Corrupt { what })
}

/// Brings the log files into shape and starts the first: nothing in them is needed any more.
fn start_files(
    disk: &dyn Disk,
    env: &Env,
    options: &Options,
    indices: &[usize],
    generation: u64,
    mark: &Mark,
) -> Result<(WalFile, Vec<WalFile>, usize)> {
    let making = |e| Error::io("making a log file", e);
    let mut spares = Vec::new();
    for &index in indices {
        let file = disk.open(&name(index)).map_err(making)?;
        if let Err(error) = fill(&*file, options.wal_bytes).map_err(making) {
            // A full disk must not keep a store closed that has another file to go on with.
            if error.kind() == ErrorKind::NoSpace {
                continue;
            }
            return Err(error);
        }
        if file.len().map_err(making)? > options.wal_bytes {
            file.set_len(options.wal_bytes).map_err(making)?;
        }
        spares.push(WalFile { file, len: options.wal_bytes, epoch: [0; 32] });
    }
    let mut files = indices.last().map_or(0, |last| last + 1);
    // The background thread makes the second file, so that opening does not wait for it.
    let wanted = if options.background { 1 } else { 2 };
    while spares.len() < wanted {
        spares.push(new_file(disk, files, options.wal_bytes).map_err(making)?);
        files += 1;
    }
    let mut active = spares.remove(0);
    active.epoch = new_epoch(env, generation);
    let header = Header { generation, epoch: active.epoch, first: mark.lsn + 1, prev: mark.chain, durable: mark.lsn };
    active.file.write_at(&header.encode(), 0).map_err(making)?;
    Ok((active, spares, files))
}

#[cfg(test)]
mod tests;
