//! redb over our own [`File`]: the whole of what redb may do to a disk.
//!
//! Invariant: redb's calls reach the file unchanged and in order, until the backend is fenced; then nothing is written any
//! more. A backend with a shadow writes to memory alone: with it the tree can be read after the disk stopped taking writes.

use mw_env::File;
use parking_lot::Mutex;
use redb::StorageBackend;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the store and the backend tell each other.
#[derive(Debug, Default)]
pub(super) struct Link {
    fenced: AtomicBool,
    sync_failed: AtomicBool,
}

impl Link {
    /// Ends all writing through the backend: a tree that failed must not touch the file when it is closed.
    pub(super) fn fence(&self) {
        self.fenced.store(true, Ordering::Release);
    }

    /// Returns whether a sync failed, after which the file may not be written again.
    pub(super) fn sync_failed(&self) -> bool {
        self.sync_failed.load(Ordering::Acquire)
    }
}

/// A file as redb sees it.
#[derive(Debug)]
pub(super) struct Backend {
    file: Arc<dyn File>,
    link: Arc<Link>,
    shadow: Option<Mutex<Shadow>>,
}

impl Backend {
    /// Makes a backend that reads and writes `file`.
    pub(super) fn new(file: Arc<dyn File>, link: Arc<Link>) -> Self {
        Self { file, link, shadow: None }
    }

    /// Makes a backend that reads `file` and keeps what is written in memory.
    pub(super) fn shadowed(file: Arc<dyn File>, link: Arc<Link>) -> io::Result<Self> {
        let shadow = Shadow { len: file.len()?, blocks: BTreeMap::new() };
        Ok(Self { file, link, shadow: Some(Mutex::new(shadow)) })
    }

    fn open_for_writing(&self) -> io::Result<()> {
        if self.link.fenced.load(Ordering::Acquire) {
            return Err(io::Error::other("the tree was closed after an earlier failure"));
        }
        Ok(())
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> Result<u64, io::Error> {
        match &self.shadow {
            Some(shadow) => Ok(shadow.lock().len),
            None => self.file.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        match &self.shadow {
            Some(shadow) => shadow.lock().read(&*self.file, offset, out),
            None => self.file.read_at(out, offset),
        }
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.open_for_writing()?;
        match &self.shadow {
            Some(shadow) => {
                shadow.lock().set_len(len);
                Ok(())
            }
            None => self.file.set_len(len),
        }
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.open_for_writing()?;
        if self.shadow.is_some() {
            return Ok(());
        }
        self.file.sync().inspect_err(|_| self.link.sync_failed.store(true, Ordering::Release))
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.open_for_writing()?;
        match &self.shadow {
            Some(shadow) => shadow.lock().write(&*self.file, offset, data),
            None => self.file.write_at(data, offset),
        }
    }
}

const BLOCK: u64 = 4096;

/// Blocks that were written over a file that must not be written.
#[derive(Debug)]
struct Shadow {
    len: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Shadow {
    fn set_len(&mut self, len: u64) {
        // What is cut off must read as zeros when the file grows again: blank blocks of its own hide the file's.
        for index in len / BLOCK..self.len.div_ceil(BLOCK) {
            if index * BLOCK >= len {
                self.blocks.insert(index, vec![0; BLOCK as usize]);
            }
        }
        self.len = len;
    }

    fn read(&self, file: &dyn File, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if offset + out.len() as u64 > self.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        pieces(offset, out.len()).try_for_each(|(index, within, place)| {
            let out = &mut out[place];
            match self.blocks.get(&index) {
                Some(block) => out.copy_from_slice(&block[within..within + out.len()]),
                None => read_zeroed(file, out, index * BLOCK + within as u64)?,
            }
            Ok(())
        })
    }

    fn write(&mut self, file: &dyn File, offset: u64, data: &[u8]) -> io::Result<()> {
        for (index, within, place) in pieces(offset, data.len()) {
            let block = match self.blocks.entry(index) {
                Entry::Occupied(block) => block.into_mut(),
                Entry::Vacant(place) => {
                    let mut block = vec![0; BLOCK as usize];
                    read_zeroed(file, &mut block, index * BLOCK)?;
                    place.insert(block)
                }
            };
            block[within..within + place.len()].copy_from_slice(&data[place]);
        }
        self.len = self.len.max(offset + data.len() as u64);
        Ok(())
    }
}

/// Cuts a range at the borders of blocks: block, offset in it, place in the buffer.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % BLOCK) as usize;
        let take = (len - done).min(BLOCK as usize - within);
        let place = done..done + take;
        done += take;
        (take > 0).then_some((at / BLOCK, within, place))
    })
}

/// Reads what the file has; the rest is zeros.
fn read_zeroed(file: &dyn File, out: &mut [u8], offset: u64) -> io::Result<()> {
    let have = file.len()?.saturating_sub(offset).min(out.len() as u64) as usize;
    out[have..].fill(0);
    if have > 0 { file.read_at(&mut out[..have], offset) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
