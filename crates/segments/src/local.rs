//! The default engine: a few large files (`data-0000`, ...), preallocated and carved into segments.
//!
//! Invariants: one `fdatasync` a file covers what all owners wrote since the last; the length and the header of a file are
//! durable before a segment in it is handed out, so that a committed claim outside the files is always corruption; the
//! hot path creates, renames and unlinks nothing. It knows no worlds but as numbers in owners and headers.
//!
//! - `buddy`: free blocks, split and merged;
//! - `space`: who owns what, and how files grow (plans only);
//! - `cursor`: where each owner appends;
//! - `file`: a data file and its header;
//! - `sync`: group sync;
//! - `punch`: dead ranges inside live segments given back.
//!
//! Locks, in the order in which they may be taken: a cursor, then the space, then the table of files.

mod buddy;
mod crew;
mod cursor;
mod file;
mod punch;
mod space;
mod sync;

use crate::addr::{LAST_LOG2, UNIT, log2_for, log2_holding};
use crate::blob::{self, Codec, Flaw, HEADER, Sealed};
use crate::{Addr, BlobRef, Claim, Dead, Error, Found, MAX_BLOB, Owner, Result, SegmentId, Segments, Usage, walk};
use bytes::Bytes;
use crew::Crew;
use cursor::{Cursor, Cursors, Open};
use file::DataFile;
use mw_env::{Disk, Env};
use mw_model::Hash;
use parking_lot::{Mutex, MutexGuard, RwLock};
use space::{Growth, Space};
use std::io;
use std::sync::Arc;
use sync::GroupSync;

/// Stored blobs up to this length are read in one call and copied; of larger ones the header comes first, so that the content
/// comes straight to its place.
const SMALL: usize = 16 << 10;

/// How files are laid out. The defaults are for use, other values for tests.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// What a data file grows to at most, in bytes; at most 1 GiB. Files that are larger already are read as they are.
    pub file_size: u64,
    /// How much a file grows at a time, in bytes, as long as the disk has that much.
    pub step: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { file_size: 1 << 30, step: 64 << 20 }
    }
}

/// Segments in a few large files of a [`Disk`].
#[derive(Debug)]
pub struct Local {
    disk: Arc<dyn Disk>,
    env: Env,
    options: Options,
    files: RwLock<Vec<Arc<DataFile>>>,
    space: Mutex<Space>,
    cursors: Cursors,
    sync: GroupSync,
    crew: Crew,
}

impl Local {
    /// Opens the data files of `disk`. Reading works at once; appending after [`Segments::adopt`].
    ///
    /// # Errors
    /// `Corrupt` when a file is missing or damaged, `Unsupported` when it is of a newer version, or those of the operating system.
    pub fn open(disk: Arc<dyn Disk>, env: Env) -> Result<Arc<Self>> {
        Self::with(disk, env, Options::default())
    }

    /// Opens the data files of `disk`, which from now on grow as `options` say.
    ///
    /// # Errors
    /// Those of [`Local::open`], and `Invalid` when the options leave no room for a segment of every size.
    pub fn with(disk: Arc<dyn Disk>, env: Env, options: Options) -> Result<Arc<Self>> {
        if !(2 << LAST_LOG2..=1 << 30).contains(&options.file_size) {
            return Err(Error::invalid(format!(
                "a data file of {} bytes is not between 8 MiB and 1 GiB",
                options.file_size
            )));
        }
        let names = disk.list().map_err(|e| Error::io("listing the data files", e))?;
        let count = names.iter().filter_map(|name| file::number(name)).map(|n| usize::from(n) + 1).max().unwrap_or(0);
        let mut files = Vec::with_capacity(count);
        let mut ends = Vec::with_capacity(count);
        for number in (0..=u16::MAX).take(count) {
            let name = file::name(number);
            if !names.contains(&name) {
                return Err(Error::File { name, what: "it is missing; restore it from a copy" });
            }
            let opened = disk.open(&name).map_err(|e| Error::io(format!("opening data file {name}"), e))?;
            let data = DataFile::new(number, opened);
            let end = data.end(number)?;
            if end > 0 {
                // A killed process may have left bytes that no sync has covered, and the first sync has to cover them.
                data.touch();
            }
            ends.push(end);
            files.push(Arc::new(data));
        }
        let sync = GroupSync::default();
        sync.wrote();
        let space = Mutex::new(Space::new(ends, options.file_size));
        let (cursors, crew) = (Cursors::default(), Crew::default());
        Ok(Arc::new(Self { disk, env, options, files: RwLock::new(files), space, cursors, sync, crew }))
    }

    /// Returns the file of a segment, if `id` can be one.
    fn file(&self, id: SegmentId) -> Option<Arc<DataFile>> {
        if !space::plausible(id) {
            return None;
        }
        self.files.read().get(usize::from(id.file())).cloned()
    }

    /// Makes sure that `len` more bytes of `owner` fit into the open segment of its cursor.
    fn make_room<'a>(&self, cursor: &'a mut Cursor, owner: Owner, len: u32) -> Result<&'a mut Open> {
        if !cursor.open.as_ref().is_some_and(|open| open.fits(len)) {
            let wanted = log2_for(cursor.log2, len);
            let (id, file) = self.take(owner, log2_holding(len), wanted)?;
            cursor.close();
            cursor.log2 = id.size().trailing_zeros() as u8;
            cursor.open = Some(Open { id, file, used: 0, settled: 0, grown: false });
        }
        cursor.open.as_mut().ok_or_else(|| Error::invalid("an owner has no segment"))
    }

    /// Takes a segment of the wanted size, or of a smaller one down to the needed, when the disk has no more.
    fn take(&self, owner: Owner, needed: u8, wanted: u8) -> Result<(SegmentId, Arc<DataFile>)> {
        let mut step = self.options.step;
        let mut full = None;
        for log2 in (needed..=wanted).rev() {
            match self.take_sized(owner, log2, &mut step) {
                Err(error @ Error::NoSpace { .. }) => full = Some(error),
                other => return other,
            }
        }
        Err(full.unwrap_or_else(|| Error::invalid("no segment holds a blob of that size")))
    }

    /// Takes a free segment of `1 << log2` bytes, growing a file by about `step` when there is none, and by less, which
    /// is noted in `step`, when the disk refuses.
    fn take_sized(&self, owner: Owner, log2: u8, step: &mut u64) -> Result<(SegmentId, Arc<DataFile>)> {
        let id = {
            let mut space = self.space.lock();
            if !space.is_adopted() {
                return Err(Error::invalid("nothing can be appended before the committed claims are adopted"));
            }
            loop {
                if let Some(id) = space.take(log2, owner) {
                    break id;
                }
                self.grow(&mut space, log2, step)?;
            }
        };
        let file = self.file(id).ok_or_else(|| Error::unowned(id))?;
        // The space may have been given back to the operating system when the segment was free: ask for it here, where a refusal
        // costs nothing, and not at a write.
        if let Err(error) = file.file.allocate(id.offset(), id.size()) {
            let mut space = self.space.lock();
            space.disown(&[id])?;
            space.release(id);
            return Err(refused(id.size(), &file.name, error));
        }
        Ok((id, file))
    }

    /// Grows a file so that a segment of `1 << log2` bytes can be taken.
    fn grow(&self, space: &mut Space, log2: u8, step: &mut u64) -> Result<()> {
        loop {
            let growth = space.plan_growth(log2, *step).ok_or_else(|| {
                let full = io::Error::new(io::ErrorKind::StorageFull, "there are as many data files as there can be");
                Error::NoSpace { need: 1 << log2, source: Arc::new(full) }
            })?;
            let data = self.file_to_grow(space, growth.file)?;
            match reserve(&data, growth) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull && growth.shrinkable => {
                    *step /= 2;
                    continue;
                }
                Err(error) => return Err(refused(1 << log2, &data.name, error)),
            }
            // The length must be on disk before a claim can be: see the invariants of this module. In a file that is in use the last
            // byte brings it there: unlike a sync it does not wait for all that was appended lately.
            let settled =
                if growth.from == 0 { data.file.sync() } else { data.file.write_durably(&[0], growth.to - 1) };
            settled.map_err(|error| self.sync.stop(error))?;
            space.grow(growth);
            tracing::debug!(file = data.name, from = growth.from, to = growth.to, "a data file has grown");
            return Ok(());
        }
    }

    /// Returns data file `number`, making it when it is one past the last.
    fn file_to_grow(&self, space: &mut Space, number: u16) -> Result<Arc<DataFile>> {
        if let Some(data) = self.files.read().get(usize::from(number)) {
            return Ok(data.clone());
        }
        let name = file::name(number);
        let opened = self.disk.open(&name).map_err(|e| refused(UNIT, &name, e))?;
        let data = Arc::new(DataFile::new(number, opened));
        self.files.write().push(data.clone());
        space.add_file();
        Ok(data)
    }

    fn sync_files(&self) -> io::Result<bool> {
        let start = self.env.monotonic();
        let files = self.files.read().clone();
        let mut synced = 0;
        for data in files {
            synced += u64::from(data.sync()?);
        }
        tracing::trace!(
            files = synced,
            nanoseconds = self.env.monotonic().saturating_sub(start),
            "synced the data files"
        );
        Ok(synced > 0)
    }

    /// Writes a sealed blob behind the last one of its owner.
    fn place(
        &self,
        mut cursor: MutexGuard<'_, Cursor>,
        owner: Owner,
        (hash, sealed): (Hash, Sealed<'_>),
    ) -> Result<BlobRef> {
        let [head, tail] = sealed.parts();
        let len = (head.len() + tail.len()) as u32;
        let open = self.make_room(&mut cursor, owner, blob::padded(len))?;
        let offset = open.used;
        // When the write fails, the range is still unused, and the next append writes over it.
        let at = open.id.offset() + u64::from(offset);
        let mut outcome = open.file.file.write_at(head, at);
        if outcome.is_ok() && !tail.is_empty() {
            outcome = open.file.file.write_at(tail, at + head.len() as u64);
        }
        open.file.touch();
        self.sync.wrote();
        outcome.map_err(|error| refused(u64::from(len), &open.file.name, error))?;
        open.used += blob::padded(len);
        open.grown = true;
        let (segment, file, ready) = (open.id, open.file.clone(), open.ready());
        drop(cursor);
        if let Some((from, to)) = ready {
            file.file.settle(segment.offset() + u64::from(from), u64::from(to - from));
        }
        Ok(BlobRef { addr: Addr { segment, offset, len }, hash })
    }

    /// Returns the file that a blob lies in, and where.
    fn whereabouts(&self, blob: &BlobRef) -> Result<(Arc<DataFile>, u64)> {
        let Addr { segment, offset, len } = blob.addr;
        let fits = u64::from(offset) + u64::from(len) <= segment.size() && len as usize <= HEADER + MAX_BLOB;
        let Some(data) = self.file(segment).filter(|_| fits && len as usize >= HEADER) else {
            return Err(self.blame(blob, Flaw::Address));
        };
        Ok((data, segment.offset() + u64::from(offset)))
    }

    /// Reads stored bytes of a blob.
    fn fetch(&self, data: &DataFile, out: &mut [u8], at: u64, blob: &BlobRef) -> Result<()> {
        match data.file.read_at(out, at) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Err(self.blame(blob, Flaw::Address)),
            Err(e) => Err(Error::io(format!("reading blob {} at {}", blob.hash, blob.addr), e)),
        }
    }

    /// Returns why a blob that does not verify does not.
    fn blame(&self, blob: &BlobRef, flaw: Flaw) -> Error {
        let space = self.space.lock();
        let freed = space.is_adopted() && space.owner(blob.addr.segment).is_none() && flaw != Flaw::Address;
        Error::Blob { blob: *blob, flaw: if freed { Flaw::Freed } else { flaw } }
    }
}

/// Reserves the space that a file is to grow by, and formats the file when it is new.
fn reserve(data: &DataFile, growth: Growth) -> io::Result<()> {
    data.file.allocate(growth.from, growth.to - growth.from)?;
    if growth.from == 0 {
        data.format(growth.file)?;
    }
    Ok(())
}

/// Tells a full disk from other refusals.
fn refused(need: u64, name: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull => Error::NoSpace { need, source: Arc::new(error) },
        _ => Error::io(format!("writing data file {name}"), error),
    }
}

impl Segments for Local {
    fn append(&self, owner: Owner, content: &[u8]) -> Result<BlobRef> {
        if content.len() > MAX_BLOB {
            return Err(Error::TooLarge { len: content.len() });
        }
        self.sync.alive()?;
        let sealed = blob::seal(owner.world, content);
        let cursor = self.cursors.of(owner);
        self.place(cursor.lock(), owner, sealed)
    }

    fn append_all(&self, owner: Owner, contents: &[&[u8]]) -> Result<Vec<BlobRef>> {
        if let Some(content) = contents.iter().find(|content| content.len() > MAX_BLOB) {
            return Err(Error::TooLarge { len: content.len() });
        }
        self.sync.alive()?;
        let sealed = self.crew.seal(owner.world, contents);
        let cursor = self.cursors.of(owner);
        sealed.into_iter().map(|sealed| self.place(cursor.lock(), owner, sealed)).collect()
    }

    fn read(&self, blob: &BlobRef) -> Result<Bytes> {
        let (data, at) = self.whereabouts(blob)?;
        let mut stored = vec![0; blob.addr.len as usize];
        self.fetch(&data, &mut stored, at, blob)?;
        blob::open(&Bytes::from(stored), blob).map_err(|flaw| self.blame(blob, flaw))
    }

    fn read_into(&self, blob: &BlobRef, out: &mut [u8]) -> Result<()> {
        let (data, at) = self.whereabouts(blob)?;
        let flawed = |flaw| self.blame(blob, flaw);
        if blob.addr.len as usize <= SMALL {
            return blob::scratch(blob.addr.len as usize, |stored| {
                self.fetch(&data, stored, at, blob)?;
                blob::open_into(stored, blob, out).map_err(flawed)
            });
        }
        let mut head = [0; HEADER];
        self.fetch(&data, &mut head, at, blob)?;
        let header = blob::header(&head, blob).map_err(flawed)?;
        let at = at + HEADER as u64;
        match header.codec {
            Codec::Hole => return Err(flawed(Flaw::Freed)),
            _ if header.content as usize != out.len() => return Err(flawed(Flaw::Length)),
            Codec::Raw => self.fetch(&data, out, at, blob)?,
            Codec::Lz4 => blob::scratch(header.stored as usize, |stored| {
                self.fetch(&data, stored, at, blob)?;
                blob::expand(stored, out).map_err(flawed)
            })?,
        }
        blob::verify(out, blob).map_err(flawed)
    }

    fn claims(&self, owner: Owner) -> Vec<Claim> {
        self.cursors.with(owner, |cursor| cursor.drain(owner))
    }

    fn sync(&self) -> Result<()> {
        self.sync.wait(|| self.sync_files())
    }

    fn adopt(&self, claims: &[Claim]) -> Result<()> {
        self.space.lock().adopt(claims)
    }

    fn seal(&self, owner: Owner) {
        self.cursors.with(owner, Cursor::close);
    }

    fn free(&self, segments: &[SegmentId]) -> Result<u64> {
        self.sync.alive()?;
        let gone = self.space.lock().disown(segments)?;
        for (id, owner) in &gone {
            self.cursors.with(*owner, |cursor| cursor.forget(*id));
        }
        // Nobody can be given this space before it is released, so that a hole never swallows new bytes.
        for hole in Hole::cover(segments) {
            if let Some(data) = self.files.read().get(usize::from(hole.file)).cloned()
                && let Err(error) = data.file.punch(hole.from, hole.to - hole.from)
            {
                tracing::warn!(?hole, %error, "the space of freed segments is not given back, only reused");
            }
        }
        let mut space = self.space.lock();
        segments.iter().for_each(|id| space.release(*id));
        Ok(segments.iter().map(|id| id.size()).sum())
    }

    fn punch(&self, owner: Owner, dead: &[Dead]) -> Result<u64> {
        self.punch_dead(owner, dead)
    }

    fn walk(&self, claim: &Claim) -> Result<Vec<Found>> {
        let id = claim.segment;
        let data = self.file(id).filter(|_| u64::from(claim.used) <= id.size()).ok_or_else(|| Error::Claims {
            what: format!("segment {id} is no segment of a data file, or used beyond its size"),
        })?;
        let mut used = vec![0; claim.used as usize];
        data.file.read_at(&mut used, id.offset()).map_err(|e| Error::io(format!("reading segment {id}"), e))?;
        Ok(walk::blobs(id, &Bytes::from(used)))
    }

    fn usage(&self) -> Usage {
        let usage = self.space.lock().usage();
        Usage { room: self.disk.room().ok().flatten(), ..usage }
    }

    fn held(&self, segment: SegmentId) -> Result<u64> {
        let data = self.file(segment).ok_or_else(|| Error::unowned(segment))?;
        data.file
            .held(segment.offset(), segment.size())
            .map_err(|e| Error::io(format!("looking at segment {segment}"), e))
    }

    fn footprint(&self) -> Result<u64> {
        let files = self.files.read().clone();
        let of = |data: &Arc<DataFile>| {
            data.file.allocated().map_err(|e| Error::io(format!("looking at data file {}", data.name), e))
        };
        files.iter().map(of).sum()
    }

    fn syncs(&self) -> u64 {
        self.sync.rounds()
    }
}

/// A range of a file, in bytes, that is to be given back.
#[derive(Debug)]
struct Hole {
    file: u16,
    from: u64,
    to: u64,
}

impl Hole {
    /// Returns the fewest holes that cover `segments`: each costs the file system a transaction.
    fn cover(segments: &[SegmentId]) -> Vec<Self> {
        let mut sorted = segments.to_vec();
        sorted.sort_unstable();
        let mut holes: Vec<Self> = Vec::new();
        for id in sorted {
            match holes.last_mut().filter(|hole| hole.file == id.file() && hole.to == id.offset()) {
                Some(hole) => hole.to += id.size(),
                None => holes.push(Self { file: id.file(), from: id.offset(), to: id.offset() + id.size() }),
            }
        }
        holes
    }
}
