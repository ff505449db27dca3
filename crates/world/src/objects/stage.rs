//! Content on its way in: streamed to segments as it arrives, seen by nobody until a verb names it.
//!
//! Invariant: what is dropped before a verb took it is garbage of the world's own segments, and nothing else.

use crate::content::{Content, RIDE};
use crate::error::{Error, Result};
use crate::record::{Extent, Piece};
use crate::session::Session;
use crate::store::Store;
use crate::world::{Staging, World};
use mw_model::ErrorKind;
use mw_segments::chunk::Chunker;
use std::sync::Arc;

/// The largest object, in bytes (AWS: 5 TiB).
const MAX_OBJECT: u64 = 5 << 40;

/// Content that arrives in pieces. At most one piece (512 KiB) is in memory. Dropped before it was put: forgotten.
pub struct Staged {
    store: Arc<Store>,
    world: Arc<World>,
    /// Keeps the sweep away from bytes that no entry refers to yet.
    staging: Staging,
    /// All of it while it is small enough to ride in the entry; empty after that.
    small: Vec<u8>,
    chunker: Chunker,
    pieces: Vec<Piece>,
    len: u64,
    /// The bytes that go when this content takes their place: a quota has room for them.
    over: u64,
}

/// Content that has arrived whole, as extents from offset 0.
pub(crate) struct Whole {
    pub extents: Vec<(u64, Extent)>,
    pub len: u64,
    /// Held until an entry refers to the bytes.
    pub _staging: Staging,
}

impl Session {
    /// Starts to take in content for this world.
    ///
    /// # Errors
    /// `Denied` below editor; `ReadOnly` for a version.
    pub fn stage(&self) -> Result<Staged> {
        // For whom this depends on the key, the verb that takes the content asks.
        if self.is_limited() {
            self.need_now()?
        } else {
            self.need_writable()?
        }
        self.world.count_left()?;
        Ok(Staged {
            store: self.store.clone(),
            world: self.world.clone(),
            staging: Staging::begin(&self.world),
            small: Vec::new(),
            chunker: Chunker::new(),
            pieces: Vec::new(),
            len: 0,
            over: 0,
        })
    }

    /// Starts to take in content that will take the place of the object `key`, if there is one.
    ///
    /// # Errors
    /// Those of [`Session::stage`].
    pub fn stage_over(&self, key: &[u8]) -> Result<Staged> {
        let mut staged = self.stage()?;
        if self.world.has_limit()
            && let Ok(object) = self.head(key)
        {
            staged.over = self.view().find_inode(object.ino)?.map_or(0, |inode| inode.allocated);
        }
        Ok(staged)
    }
}

impl Staged {
    /// Takes in the next bytes.
    ///
    /// # Errors
    /// `NoSpace`; `Quota`; `TooLarge` past 5 TiB; `NotFound` when the world was deleted meanwhile.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.world.need_alive()?;
        self.len += bytes.len() as u64;
        if self.len > MAX_OBJECT {
            return Err(Error::new(ErrorKind::TooLarge, format!("an object has at most {MAX_OBJECT} bytes")));
        }
        self.world.left.need(&self.world, self.len.saturating_sub(self.over))?;
        if self.len <= RIDE as u64 {
            self.small.extend_from_slice(bytes);
            return Ok(());
        }
        let small = std::mem::take(&mut self.small);
        self.cut(&small)?;
        self.cut(bytes)
    }

    fn cut(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in self.chunker.push(bytes) {
            self.pieces.push(self.store.content.store(self.world.owner, &piece)?);
        }
        Ok(())
    }

    /// Returns how many bytes have arrived.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Ends the content for a verb of `session`; what lies in segments is synced, as it must be before an entry refers to it.
    pub(crate) fn finish(mut self, session: &Session) -> Result<Whole> {
        if !Arc::ptr_eq(&self.world, &session.world) {
            return Err(Error::invalid("the content was staged for another world"));
        }
        if let Some(piece) = self.chunker.finish() {
            self.pieces.push(self.store.content.store(self.world.owner, &piece)?);
        }
        if !self.pieces.is_empty() {
            self.store.segments.sync()?;
        } else if !self.small.is_empty() {
            self.pieces.push(Content::ride(&self.small));
        }
        let mut at = 0;
        let extents = std::mem::take(&mut self.pieces).into_iter().map(|piece| {
            let here = at;
            at += u64::from(piece.len);
            (here, Extent::whole(piece))
        });
        Ok(Whole { extents: extents.collect(), len: self.len, _staging: self.staging })
    }
}

impl std::fmt::Debug for Staged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Staged({} bytes)", self.len)
    }
}
