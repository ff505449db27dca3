//! The B-tree below the log: one snapshot of it for reading, and the one way to move it forward.
//!
//! Invariant: the tree moves in durable steps; each holds all changes up to one log record, and that record's number and sum
//! (the [`Mark`]) in the same transaction. Values carry a checksum of their own, because redb verifies pages only when it
//! repairs. It does not know the log's files.

use super::backend::{Backend, Link};
use super::memtable::Memtable;
use super::merge::Source;
use super::required::{Gap, Gaps};
use super::wal::{Chain, VERSION};
use crate::{Error, Order, Result};
use bytes::Bytes;
use mw_env::File;
use mw_model::codec::{DecodeError, Reader, Writer};
use parking_lot::Mutex;
use redb::{Database, ReadOnlyTable, ReadableDatabase, TableDefinition};
use std::ops::Bound;
use std::sync::Arc;

const PAIRS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("pairs");
const ABOUT: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("about");
const FORMAT: &str = "format";
const MARK: &str = "mark";
const SUM: usize = 8;
const MAGIC: &[u8; 9] = b"redb\x1A\x0A\xA9\x0D\x0A";

type Stored = redb::AccessGuard<'static, &'static [u8]>;
/// What a walk over the tree gives.
type Item = std::result::Result<(Stored, Stored), redb::StorageError>;

/// How far the tree goes, and where the log goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    /// The last record that the tree holds.
    pub(super) lsn: u64,
    /// Its sum.
    pub(super) chain: Chain,
    /// The first generation of log files that may hold later records.
    pub(super) live_from: u64,
}

impl Mark {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u64(self.lsn).raw(&self.chain).u64(self.live_from);
        out.0
    }

    fn decode(bytes: &[u8]) -> std::result::Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut mark = Self { lsn: reader.u64()?, ..Self::default() };
        mark.chain.copy_from_slice(reader.take(16)?);
        mark.live_from = reader.u64()?;
        reader.end()?;
        Ok(mark)
    }
}

/// A snapshot of the tree.
pub(super) struct Base {
    // Dropped before the database, which waits for its readers.
    pairs: ReadOnlyTable<&'static [u8], &'static [u8]>,
    db: Arc<Database>,
    file: Arc<dyn File>,
    link: Arc<Link>,
    cache: usize,
    /// What is known to be absent from this snapshot.
    gaps: Mutex<Gaps>,
}

impl std::fmt::Debug for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Base").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Base {
    /// Opens the tree in `file`, making it when the file is empty. `blank` says that the store holds nothing else yet, so
    /// that a tree whose making was interrupted may be made again.
    pub(super) fn open(file: Arc<dyn File>, cache: usize, blank: bool) -> Result<(Self, Mark)> {
        if blank && !has_magic(&*file).map_err(|e| Error::io("reading the tree's first bytes", e))? {
            file.set_len(0).map_err(|e| Error::io("clearing an unfinished tree", e))?;
        }
        let link = Arc::new(Link::default());
        let db = open(Backend::new(file.clone(), link.clone()), cache)?;
        let mark = match read_about(&db)? {
            Some(mark) => mark,
            None => {
                write_about(&db, &Mark::default())?;
                Mark::default()
            }
        };
        Ok((Self::at(db, file, link, cache)?, mark))
    }

    /// Ends all writing by this tree and opens its file again.
    pub(super) fn reopen(&self) -> Result<Self> {
        self.link.fence();
        Ok(Self::open(self.file.clone(), self.cache, false)?.0)
    }

    /// Ends all writing by this tree and opens its file again for reading alone: not a byte of it is written.
    pub(super) fn reopen_for_reading(&self) -> Result<Self> {
        self.link.fence();
        let link = Arc::new(Link::default());
        let backend = Backend::shadowed(self.file.clone(), link.clone())
            .map_err(|e| Error::io("opening the tree for reading", e))?;
        Self::at(open(backend, self.cache)?, self.file.clone(), link, self.cache)
    }

    /// Returns whether a sync of the tree's file failed.
    pub(super) fn sync_failed(&self) -> bool {
        self.link.sync_failed()
    }

    fn at(db: Arc<Database>, file: Arc<dyn File>, link: Arc<Link>, cache: usize) -> Result<Self> {
        let read = db.begin_read().map_err(|e| Error::tree("starting to read", e))?;
        let pairs = read.open_table(PAIRS).map_err(|e| Error::tree("opening the table of pairs", e))?;
        Ok(Self { pairs, db, file, link, cache, gaps: Mutex::default() })
    }

    /// Returns the value of `key`.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self.pairs.get(key).map_err(|e| Error::tree("reading a key", e))? {
            Some(stored) => unseal(key, stored.value()).map(|(_, value)| Some(value)),
            None => Ok(None),
        }
    }

    /// Returns the value of a `key` that a batch requires something of.
    pub(super) fn get_required(&self, key: &[u8]) -> Result<Option<Bytes>> {
        if self.gaps.lock().hold(key) {
            return Ok(None);
        }
        let value = self.get(key)?;
        if value.is_none() {
            let gap = self.gap(key)?;
            self.gaps.lock().keep(gap);
        }
        Ok(value)
    }

    /// Returns the neighbours of a `key` that is absent.
    fn gap(&self, key: &[u8]) -> Result<Gap> {
        let look = |range: (Bound<&[u8]>, Bound<&[u8]>)| {
            self.pairs.range::<&[u8]>(range).map_err(|e| Error::tree("looking for a neighbour", e))
        };
        let key_of = |item: Option<Item>| {
            let item = item.transpose().map_err(|e| Error::tree("looking for a neighbour", e))?;
            Ok(item.map(|(key, _)| Bytes::copy_from_slice(key.value())))
        };
        let before = key_of(look((Bound::Unbounded, Bound::Excluded(key)))?.next_back())?;
        let after = key_of(look((Bound::Excluded(key), Bound::Unbounded))?.next())?;
        Ok((before, after))
    }

    /// Returns the pairs from `start` to before `end`.
    pub(super) fn scan<'a>(&'a self, start: &[u8], end: &[u8], order: Order) -> Result<Source<'a>> {
        let bounds = (Bound::Included(start), Bound::Excluded(end));
        let range = self.pairs.range::<&[u8]>(bounds).map_err(|e| Error::tree("starting a scan", e))?;
        let pair = |item: Item| {
            let (key, stored) = item.map_err(|e| Error::tree("scanning", e))?;
            let (key, value) = unseal(key.value(), stored.value())?;
            Ok((key, Some(value)))
        };
        Ok(match order {
            Order::Up => Box::new(range.map(pair)),
            Order::Down => Box::new(range.rev().map(pair)),
        })
    }

    /// Writes `table` over the tree and moves the mark, in one durable transaction, and returns the new snapshot.
    pub(super) fn apply(&self, table: &Memtable, mark: &Mark) -> Result<Self> {
        let doing = "moving a table into the tree";
        let mut write = self.db.begin_write().map_err(|e| Error::tree(doing, e))?;
        // An opening after a crash must not walk the whole tree.
        write.set_quick_repair(true);
        {
            let mut pairs = write.open_table(PAIRS).map_err(|e| Error::tree(doing, e))?;
            let mut sealed = Vec::new();
            for (key, value) in &table.map {
                match value {
                    Some(value) => {
                        let stored = seal(key, value, &mut sealed);
                        pairs.insert(&**key, stored).map_err(|e| Error::tree(doing, e))?;
                    }
                    None => drop(pairs.remove(&**key).map_err(|e| Error::tree(doing, e))?),
                }
            }
            let mut about = write.open_table(ABOUT).map_err(|e| Error::tree(doing, e))?;
            about.insert(MARK, &*mark.encode()).map_err(|e| Error::tree(doing, e))?;
        }
        write.commit().map_err(|e| Error::tree(doing, e))?;
        Self::at(self.db.clone(), self.file.clone(), self.link.clone(), self.cache)
    }
}

fn open(backend: Backend, cache: usize) -> Result<Arc<Database>> {
    let mut builder = Database::builder();
    builder.set_cache_size(cache);
    Ok(Arc::new(builder.create_with_backend(backend).map_err(|e| Error::tree("opening the tree", e))?))
}

/// redb writes its magic last, so a file without it was never a finished tree.
fn has_magic(file: &dyn File) -> std::io::Result<bool> {
    let mut magic = [0; 9];
    if file.len()? >= 9 {
        file.read_at(&mut magic, 0)?;
    }
    Ok(magic == *MAGIC)
}

/// Reads format and mark; `None` when the tree has none yet.
fn read_about(db: &Database) -> Result<Option<Mark>> {
    let doing = "reading how far the tree goes";
    let read = db.begin_read().map_err(|e| Error::tree(doing, e))?;
    let about = match read.open_table(ABOUT) {
        Ok(about) => about,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(Error::tree(doing, error)),
    };
    let damaged = |what: &str| Error::Corrupt { what: format!("the tree's {what} cannot be read") };
    let format = about.get(FORMAT).map_err(|e| Error::tree(doing, e))?.ok_or_else(|| damaged("format version"))?;
    let found = Reader::new(format.value()).u32().map_err(|_| damaged("format version"))?;
    if found > VERSION {
        return Err(Error::Newer { what: "the metadata tree".to_owned(), found, known: VERSION });
    }
    let mark = about.get(MARK).map_err(|e| Error::tree(doing, e))?.ok_or_else(|| damaged("mark"))?;
    Mark::decode(mark.value()).map(Some).map_err(|_| damaged("mark"))
}

fn write_about(db: &Database, mark: &Mark) -> Result<()> {
    let doing = "making the tree";
    let mut write = db.begin_write().map_err(|e| Error::tree(doing, e))?;
    write.set_quick_repair(true);
    {
        let mut about = write.open_table(ABOUT).map_err(|e| Error::tree(doing, e))?;
        about.insert(FORMAT, &VERSION.to_be_bytes()[..]).map_err(|e| Error::tree(doing, e))?;
        about.insert(MARK, &*mark.encode()).map_err(|e| Error::tree(doing, e))?;
        write.open_table(PAIRS).map_err(|e| Error::tree(doing, e))?;
    }
    write.commit().map_err(|e| Error::tree(doing, e))
}

/// Eight bytes find every accident; a forger who can write the file is met elsewhere (signed history).
fn checksum(pair: &[u8]) -> [u8; SUM] {
    let mut sum = [0; SUM];
    sum.copy_from_slice(&blake3::hash(pair).as_bytes()[..SUM]);
    sum
}

/// Leaves what is stored under `key` in `out`: the value, then the checksum of key and value together.
fn seal<'a>(key: &[u8], value: &[u8], out: &'a mut Vec<u8>) -> &'a [u8] {
    out.clear();
    out.extend_from_slice(key);
    out.extend_from_slice(value);
    let sum = checksum(out);
    out.extend_from_slice(&sum);
    &out[key.len()..]
}

/// Returns key and value in one allocation, which is also what is verified.
fn unseal(key: &[u8], stored: &[u8]) -> Result<(Bytes, Bytes)> {
    let damaged = || Error::Corrupt { what: format!("the value of key {} does not verify", key.escape_ascii()) };
    let (value, sum) = stored.split_at_checked(stored.len().wrapping_sub(SUM)).ok_or_else(damaged)?;
    let mut pair = Bytes::from([key, value].concat());
    if sum != checksum(&pair) {
        return Err(damaged());
    }
    let key = pair.split_to(key.len());
    Ok((key, pair))
}
