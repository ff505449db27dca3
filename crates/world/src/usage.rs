//! How much there is: in one world, and in the store.

use crate::error::Result;
use crate::layout::{self, Tag};
use crate::principal::Role;
use crate::record::{Inode, Kind};
use crate::session::Session;
use crate::store::Store;
use bytes::Bytes;
use mw_meta::Order;
use mw_model::{FileType, Ino};
use serde::Serialize;
use std::sync::atomic::Ordering;

/// What a world holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Files, links and special files.
    pub files: u64,
    /// Directories, the root not counted.
    pub directories: u64,
    /// Inodes in all.
    pub inodes: u64,
    /// What S3 lists: files and links.
    pub objects: u64,
    /// Bytes of content, holes not counted.
    pub bytes: u64,
    /// Bytes stored in segments that the world owns, without what was given back in them; what it shares with its base is the base's.
    pub own: u64,
}

/// What a world holds, roughly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// What S3 lists.
    pub objects: u64,
    /// Bytes of content.
    pub bytes: u64,
}

/// A world of at most so many records is counted; of a larger one the tree tells how much there was at its last fold.
const COUNTED: u64 = 20_000;
/// The records of an object: inode, object, entry, parent, and one extent.
const RECORDS: u64 = 5;

/// What the store holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Worlds.
    pub worlds: u64,
    /// Worlds that are open in memory.
    pub open: u64,
    /// Keys.
    pub keys: u64,
    /// Bytes in segments that some world owns.
    pub claimed: u64,
    /// Bytes free for reuse in the segment files.
    pub free: u64,
    /// Bytes of disk that the segment files take: less than both together, since dead ranges and free segments are given back.
    pub disk: u64,
    /// Bytes that sweeps have given back since the start: whole segments, and dead ranges inside others.
    pub swept: u64,
    /// Bytes that the disk has left beyond that, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<u64>,
    /// Syncs of the log so far.
    pub log_syncs: u64,
    /// Syncs of the segment files so far.
    pub segment_syncs: u64,
    /// Bytes in the caches.
    pub cached: u64,
}

impl Session {
    /// Counts what the world holds; costs a walk over its inodes.
    ///
    /// # Errors
    /// The store failed.
    pub fn du(&self) -> Result<Usage> {
        self.need(Role::Reader)?;
        let mut usage = Usage::default();
        let mut next = Bytes::from_static(&[0; 8]);
        let end = Bytes::from(vec![u8::MAX; 10]);
        let view = self.view();
        for item in view.scan(std::mem::take(&mut next), end) {
            let (key, value) = item?;
            if key.len() != 9 || key[8] != Kind::Inode as u8 {
                continue;
            }
            let inode = Inode::decode(&value)?;
            usage.inodes += 1;
            usage.bytes += inode.allocated;
            if inode.retained {
                continue;
            }
            match inode.kind {
                FileType::Directory => usage.directories += u64::from(key[..8] != Ino::ROOT.0.to_be_bytes()),
                FileType::File | FileType::Symlink => {
                    usage.files += 1;
                    usage.objects += u64::from(inode.nlink);
                }
                _ => usage.files += 1,
            }
        }
        let (start, end) = layout::all_of(Tag::Segment, self.world.id);
        for (key, _) in self.store.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            usage.own += self.store.segments.held(mw_segments::SegmentId(layout::number(&key)))?;
        }
        Ok(usage)
    }
}

impl Session {
    /// Says how much the world holds: exactly while it is small, else by what the tree knows of itself. Costs little in either case.
    ///
    /// # Errors
    /// The store failed.
    pub fn estimate(&self) -> Result<Estimate> {
        self.need(Role::Reader)?;
        let view = self.view();
        let overlays = view.overlay.len() + view.frozen.as_ref().map_or(0, |frozen| frozen.len());
        let records = view.root.entries() + overlays as u64;
        if records > COUNTED {
            return Ok(Estimate { objects: records / RECORDS, bytes: view.root.weight() });
        }
        let usage = self.du()?;
        Ok(Estimate { objects: usage.objects, bytes: usage.bytes })
    }
}

impl Store {
    /// Counts what the store holds.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn status(&self) -> Result<Status> {
        let count = |tag| -> Result<u64> {
            let (start, end) = layout::all(tag);
            Ok(self.meta.scan(&start, &end, usize::MAX, Order::Up)?.len() as u64)
        };
        let usage = self.segments.usage();
        Ok(Status {
            worlds: count(Tag::Name)?,
            open: self.open.lock().len() as u64,
            keys: count(Tag::Key)?,
            claimed: usage.claimed,
            free: usage.free,
            disk: self.segments.footprint()?,
            swept: self.swept.load(Ordering::Relaxed),
            room: usage.room,
            log_syncs: self.meta.syncs(),
            segment_syncs: self.segments.syncs(),
            cached: (self.cache.used() + self.content.used()) as u64,
        })
    }
}
