//! One data file: its handle, its format header, and whether it holds bytes that no sync has covered.
//!
//! The first 64 KiB of a file are its header: the magic `MWDATA\r\n`, a format version (u32), the file's number (u32), the key
//! id (u32, 0: no encryption yet), and the first eight bytes of the BLAKE3 of all that; the rest is zeros. The header is durable
//! before the first segment of the file is handed out, so that a file without one holds nothing. It does not know segments.

use crate::addr::UNIT;
use crate::{Error, Result};
use mw_env::File;
use mw_model::Hash;
use mw_model::codec::{DecodeError, Reader, Writer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const MAGIC: &[u8; 8] = b"MWDATA\r\n";
const VERSION: u32 = 1;
const HEADER: usize = 28;

/// An open data file.
#[derive(Debug)]
pub(super) struct DataFile {
    pub(super) name: String,
    pub(super) file: Arc<dyn File>,
    dirty: AtomicBool,
}

/// Returns the name of data file `number`.
pub(super) fn name(number: u16) -> String {
    format!("data-{number:04}")
}

/// Returns the number of a data file, if `name` is that of one.
pub(super) fn number(name: &str) -> Option<u16> {
    name.strip_prefix("data-")?.parse().ok().filter(|&n| self::name(n) == name)
}

impl DataFile {
    /// Wraps an open file.
    pub(super) fn new(number: u16, file: Arc<dyn File>) -> Self {
        Self { name: name(number), file, dirty: AtomicBool::new(false) }
    }

    /// Returns where the file ends, in whole units; 0 when it was never formatted.
    pub(super) fn end(&self, number: u16) -> Result<u64> {
        let io = |e| Error::io(format!("reading the header of data file {}", self.name), e);
        let len = self.file.len().map_err(io)?;
        if len < UNIT {
            return Ok(0);
        }
        let mut header = [0; HEADER];
        self.file.read_at(&mut header, 0).map_err(io)?;
        if header == [0; HEADER] {
            return Ok(0);
        }
        self.check(&header, number)?;
        Ok(len / UNIT * UNIT)
    }

    fn check(&self, header: &[u8; HEADER], number: u16) -> Result<()> {
        let damaged = |what| Error::File { name: self.name.clone(), what };
        let short = |_: DecodeError| damaged("its header is damaged; restore the file from a copy");
        let (body, sum) = header.split_at(HEADER - 8);
        let mut r = Reader::new(body);
        if r.take(8).map_err(short)? != MAGIC {
            return Err(damaged("it is not a data file of this store"));
        }
        if Hash::of(body).prefix() != Reader::new(sum).u64().map_err(short)? {
            return Err(damaged("its header is damaged; restore the file from a copy"));
        }
        let version = r.u32().map_err(short)?;
        if version != VERSION {
            return Err(Error::Newer { name: self.name.clone(), version });
        }
        if r.u32().map_err(short)? != u32::from(number) {
            return Err(damaged("its header names another file; was it renamed?"));
        }
        match r.u32().map_err(short)? {
            0 => Ok(()),
            _ => Err(damaged("it is encrypted, which this program does not know; upgrade it")),
        }
    }

    /// Writes the header. Not durable before the next sync.
    pub(super) fn format(&self, number: u16) -> std::io::Result<()> {
        let mut w = Writer(Vec::with_capacity(HEADER));
        w.raw(MAGIC).u32(VERSION).u32(u32::from(number)).u32(0);
        let sum = Hash::of(&w.0).prefix();
        w.u64(sum);
        self.file.write_at(&w.0, 0)
    }

    /// Notes that bytes were written.
    pub(super) fn touch(&self) {
        self.dirty.store(true, Ordering::Release);
    }

    /// Syncs the file if bytes were written since the last time; returns whether it did.
    ///
    /// The mark is taken off first: what is written meanwhile sets it again.
    pub(super) fn sync(&self) -> std::io::Result<bool> {
        let dirty = self.dirty.swap(false, Ordering::AcqRel);
        if dirty {
            self.file.sync()?;
        }
        Ok(dirty)
    }
}
