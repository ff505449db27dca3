//! A [`Disk`] over a real directory.

use crate::disk::{Disk, File};
use crate::early::Early;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::{Errno, ReadWriteFlags};
use std::fs;
use std::io;
use std::io::IoSlice;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of the machine. Files are made readable by their owner alone (0600).
#[derive(Debug)]
pub struct LocalDisk {
    dir: PathBuf,
    early: Early,
}

impl LocalDisk {
    /// Opens `dir`, making it (0700) when it is missing.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn new(dir: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        Ok(Self { dir: dir.to_owned(), early: Early::default() })
    }

    fn sync_dir(&self) -> io::Result<()> {
        fs::File::open(&self.dir)?.sync_all()
    }
}

impl Disk for LocalDisk {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let path = self.dir.join(name);
        let fresh = !path.exists();
        let file =
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        if fresh {
            file.sync_all()?;
            self.sync_dir()?;
        }
        Ok(Arc::new(LocalFile { file: Arc::new(file), early: self.early.clone() }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.dir.join(name))?;
        self.sync_dir()
    }

    fn room(&self) -> io::Result<Option<u64>> {
        let stat = rustix::fs::statvfs(&self.dir)?;
        Ok(Some(stat.f_bavail.saturating_mul(stat.f_frsize)))
    }
}

#[derive(Debug)]
struct LocalFile {
    file: Arc<fs::File>,
    early: Early,
}

impl File for LocalFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn write_durably(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::pwritev2(&*self.file, &[IoSlice::new(bytes)], offset, ReadWriteFlags::DSYNC) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    offset += written as u64;
                }
                Err(Errno::INTR) => {}
                // A file system that knows no such writes knows how to sync.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    self.write_at(bytes, offset)?;
                    return self.sync();
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn settle(&self, offset: u64, len: u64) {
        self.early.begin(&self.file, offset, len);
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        match fallocate(&*self.file, FallocateFlags::empty(), offset, len) {
            Ok(()) => Ok(()),
            // A file system without fallocate still grows; space is then found at the write.
            Err(Errno::OPNOTSUPP) if self.len()? < offset + len => self.set_len(offset + len),
            Err(Errno::OPNOTSUPP) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        match fallocate(&*self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len) {
            Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn held(&self, offset: u64, len: u64) -> io::Result<u64> {
        // Where the file stands does not matter: all reads and writes name their place.
        let end = offset + len;
        let (mut at, mut held) = (offset, 0);
        while at < end {
            let data = match seek(&*self.file, SeekFrom::Data(at)) {
                Ok(data) if data < end => data,
                // No data up to the end of the file is this error.
                Ok(_) | Err(Errno::NXIO) => break,
                Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(len),
                Err(e) => return Err(e.into()),
            };
            at = seek(&*self.file, SeekFrom::Hole(data))?.min(end);
            held += at - data;
        }
        Ok(held)
    }

    fn allocated(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.blocks() * 512)
    }
}

#[cfg(test)]
mod tests;
