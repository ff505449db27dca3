//! Large immutable bytes at stable addresses, verified by hash. It does not know what the bytes mean.
//!
//! - [`Segments`]: the seam;
//! - [`addr`]: addresses, owners, claims;
//! - [`blob`]: the header and codec of one blob;
//! - [`Dead`]: what is to be given back inside segments that live on;
//! - [`local`]: the default engine: a few large files carved into segments;
//! - [`memory`]: for tests;
//! - `walk`: finding blobs by their headers alone;
//! - [`chunk`]: cutting large contents by content (FastCDC);
//! - [`conformance`]: the contract as a test suite, run against every engine.

pub mod addr;
pub mod blob;
pub mod chunk;
pub mod conformance;
mod dead;
mod error;
pub mod local;
pub mod memory;
mod walk;

pub use addr::{Addr, BlobRef, Claim, Owner, SegmentId};
pub use dead::Dead;
pub use error::Error;
pub use local::Local;
pub use memory::Memory;

use bytes::Bytes;
use std::fmt::Debug;

/// The result of this crate's calls.
pub type Result<T> = std::result::Result<T, Error>;

/// The largest content of one blob, in bytes.
pub const MAX_BLOB: usize = 1 << 20;

/// How much room there is, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// In segments that have an owner.
    pub claimed: u64,
    /// In segments free for reuse.
    pub free: u64,
    /// What the disk has left beyond that, where that is known.
    pub room: Option<u64>,
}

/// A blob as it was found by walking a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Where it lies, and the hash that its header names.
    pub blob: BlobRef,
    /// Whether the content verifies.
    pub whole: bool,
}

/// Immutable blobs at stable addresses.
///
/// A segment belongs to one [`Owner`] (world, writer incarnation). The caller commits the [`Claim`]s of an owner in the batch
/// that first refers to the new bytes, and hands all committed claims back with [`Segments::adopt`] after a restart: space
/// that no claim names is free. So an allocation needs no sync of its own.
pub trait Segments: Send + Sync + Debug {
    /// Stores `content` for `owner` and returns where it lies. Handed to the operating system on return (it survives a
    /// killed process), durable after [`Segments::sync`]. Compressed when that pays.
    ///
    /// # Errors
    /// `TooLarge` over [`MAX_BLOB`]; `NoSpace` when the disk is full (what was stored before is untouched).
    fn append(&self, owner: Owner, content: &[u8]) -> Result<BlobRef>;

    /// Stores several contents, in their order, as [`Segments::append`] does each of them.
    ///
    /// # Errors
    /// Those of [`Segments::append`]; what was stored of them before is garbage of `owner`.
    fn append_all(&self, owner: Owner, contents: &[&[u8]]) -> Result<Vec<BlobRef>> {
        contents.iter().map(|content| self.append(owner, content)).collect()
    }

    /// Returns the content of `blob`, verified against its hash.
    ///
    /// # Errors
    /// `Corrupt` when it does not verify.
    fn read(&self, blob: &BlobRef) -> Result<Bytes>;

    /// Fills `out` with the content of `blob`, verified against its hash.
    ///
    /// # Errors
    /// `Corrupt` when it does not verify or has another length; what `out` holds then is of no use.
    fn read_into(&self, blob: &BlobRef, out: &mut [u8]) -> Result<()> {
        let content = self.read(blob)?;
        if content.len() != out.len() {
            return Err(Error::Blob { blob: *blob, flaw: blob::Flaw::Length });
        }
        out.copy_from_slice(&content);
        Ok(())
    }

    /// Returns the segments whose claim has changed since the last call for this owner: new ones, and those that grew.
    fn claims(&self, owner: Owner) -> Vec<Claim>;

    /// Makes everything appended before the call durable. Threads that call at the same time share one sync; does nothing
    /// when nothing was appended since the last.
    ///
    /// # Errors
    /// The sync failed: appends and syncs fail from now on, reads go on.
    fn sync(&self) -> Result<()>;

    /// Tells, once after opening and before the first append, which segments are owned; all others are free.
    ///
    /// # Errors
    /// `Corrupt` when two claims overlap or one lies outside the files.
    fn adopt(&self, claims: &[Claim]) -> Result<()>;

    /// Ends appending for `owner`: its open segment takes no more bytes.
    fn seal(&self, owner: Owner);

    /// Frees whole segments for reuse and returns the bytes that came back. The caller has durably dropped their claims.
    ///
    /// # Errors
    /// Those of the operating system; a segment is never freed twice.
    fn free(&self, segments: &[SegmentId]) -> Result<u64>;

    /// Gives the disk space of dead ranges inside live segments of `owner` back, where the engine can; returns the bytes that came
    /// back now, so that a range given back before counts for nothing. The caller has made durable that nothing refers to the
    /// ranges. A segment that is not the owner's (it was freed meanwhile) is passed over.
    ///
    /// # Errors
    /// `Invalid` for a range in which no blobs can lie; those of the operating system.
    fn punch(&self, owner: Owner, dead: &[Dead]) -> Result<u64>;

    /// Walks the blobs of a segment by their headers (fsck).
    ///
    /// # Errors
    /// Those of the operating system; a broken blob is reported in the list, not as an error.
    fn walk(&self, claim: &Claim) -> Result<Vec<Found>>;

    /// Returns how much room there is.
    fn usage(&self) -> Usage;

    /// Returns how many bytes of a segment hold data: what was given back, and what was never written, does not count.
    ///
    /// # Errors
    /// Those of the operating system.
    fn held(&self, segment: SegmentId) -> Result<u64>;

    /// Returns how many bytes of disk, or of memory, the engine takes for all segments, free ones included.
    ///
    /// # Errors
    /// Those of the operating system.
    fn footprint(&self) -> Result<u64>;

    /// Returns the number of syncs since the start.
    fn syncs(&self) -> u64;
}
