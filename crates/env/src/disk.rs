//! The disk as the store sees it: a flat folder of files, read and written at offsets, synced by name.
//!
//! It does not know what it stores. Promises, as those of a POSIX file system: what was written is read back at once; what
//! was synced survives power loss; what was not synced may be lost, torn or reordered, in units of 512 bytes.

use std::io;
use std::sync::Arc;

/// A folder of files.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Opens `name`, making it when it is missing. A new file's name is durable on return.
    ///
    /// # Errors
    /// Those of the operating system.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Lists the names, in no order.
    ///
    /// # Errors
    /// Those of the operating system.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Removes `name`; durable on return.
    ///
    /// # Errors
    /// Those of the operating system.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns the bytes that the disk has left for us, where that is known.
    ///
    /// # Errors
    /// Those of the operating system.
    fn room(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }
}

/// One open file. All methods may be called from many threads at once.
#[allow(clippy::len_without_is_empty, reason = "no caller asks whether a file is empty")]
pub trait File: Send + Sync + std::fmt::Debug {
    /// Fills `out` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` past the end; otherwise those of the operating system.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`, growing the file where needed.
    ///
    /// # Errors
    /// `StorageFull` when the disk is full; otherwise those of the operating system.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Writes as [`File::write_at`] does, and makes these bytes durable with all that it takes to find them again, the length of
    /// the file above all (`O_DSYNC`). Of other bytes nothing is promised, and none are waited for.
    ///
    /// # Errors
    /// Those of [`File::write_at`] and [`File::sync`].
    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        self.sync()
    }

    /// Says that no more is written to `offset..offset + len` for now, so that the disk may begin with it: a later sync then finds less
    /// to do. Returns at once; nothing is promised by it, and nothing can go wrong.
    fn settle(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// Makes everything written before the call durable (`fdatasync`).
    ///
    /// # Errors
    /// After an error nothing may be assumed about what is on disk, and the sync must not be tried again.
    fn sync(&self) -> io::Result<()>;

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// Those of the operating system.
    fn len(&self) -> io::Result<u64>;

    /// Cuts the file, or grows it with zeros.
    ///
    /// # Errors
    /// Those of the operating system.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reserves space for `offset..offset + len` and grows the file to hold it; the new bytes read as zeros.
    ///
    /// # Errors
    /// `StorageFull` when there is no room.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Gives the space of `offset..offset + len` back; it then reads as zeros. May do nothing.
    ///
    /// # Errors
    /// Those of the operating system.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Returns how many bytes of `offset..offset + len` hold data: neither a hole nor space that was only reserved. All of them where
    /// the file system does not tell.
    ///
    /// # Errors
    /// Those of the operating system.
    fn held(&self, offset: u64, len: u64) -> io::Result<u64>;

    /// Returns how many bytes of disk the file takes, reserved ones included.
    ///
    /// # Errors
    /// Those of the operating system.
    fn allocated(&self) -> io::Result<u64>;
}
