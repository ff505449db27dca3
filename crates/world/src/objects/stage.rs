//! Content on its way in: streamed to segments as it arrives, seen by nobody until a verb names it.
//!
//! Invariant: what is dropped before a verb took it is garbage of the world's own segments, and nothing else.

use super::find::need_object;
use crate::content::{Content, PIECE, RIDE};
use crate::error::{Error, Result};
use crate::record::{Extent, Piece};
use crate::session::Session;
use crate::store::Store;
use crate::txn::Txn;
use crate::view::View;
use crate::world::{Staging, World};
use bytes::Bytes;
use mw_model::{ErrorKind, FileType, Hash, Ino, Version};
use mw_segments::chunk::Chunker;
use std::collections::HashMap;
use std::sync::Arc;

/// The largest object, in bytes (AWS: 5 TiB).
const MAX_OBJECT: u64 = 5 << 40;

/// Content that arrives in pieces. At most one piece (1 MiB) is in memory. Dropped before it was put: forgotten.
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
    /// The object whose place it is to take, looked for when that begins to matter.
    key: Option<Bytes>,
    former: Option<Former>,
    /// Whether any piece is the former object's.
    borrowed: bool,
}

/// Content that has arrived whole, as extents from offset 0.
pub(crate) struct Whole {
    pub extents: Vec<(u64, Extent)>,
    pub len: u64,
    former: Option<Former>,
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
            key: None,
            former: None,
            borrowed: false,
        })
    }

    /// Starts to take in content that will take the place of the object `key`, if there is one: pieces that it has are not stored
    /// again, and a quota counts the difference.
    ///
    /// # Errors
    /// Those of [`Session::stage`].
    pub fn stage_over(&self, key: &[u8]) -> Result<Staged> {
        let mut staged = self.stage()?;
        if self.world.left.is_limited() {
            staged.former = Former::find(&self.view(), key, false)?;
        }
        staged.key = Some(Bytes::copy_from_slice(key));
        Ok(staged)
    }
}

/// The object whose place new content is to take.
struct Former {
    ino: Ino,
    /// Of which change its content is. While that stands in the world, nothing frees its pieces.
    content: Version,
    allocated: u64,
    pieces: HashMap<Hash, Piece>,
}

/// The most pieces of a former object that are looked at.
const MAX_FORMER: u64 = 1 << 15;

impl Former {
    fn find(view: &View, key: &[u8], pieces: bool) -> Result<Option<Self>> {
        let Ok(object) = need_object(view, key) else { return Ok(None) };
        let inode = object.inode;
        let mut former =
            Self { ino: object.ino, content: inode.content, allocated: inode.allocated, pieces: HashMap::new() };
        if pieces && inode.kind == FileType::File && inode.size / PIECE as u64 <= MAX_FORMER {
            for (_, extent) in view.extents(object.ino, 0, inode.size)? {
                if extent.piece.blob().is_some() {
                    former.pieces.insert(extent.piece.hash, extent.piece);
                }
            }
        }
        Ok(Some(former))
    }

    fn stands(&self, view: &View) -> Result<bool> {
        Ok(view.find_inode(self.ino)?.is_some_and(|inode| inode.content == self.content))
    }
}

impl Whole {
    /// Makes sure, in the commit's own plan, that borrowed pieces cannot be freed: the object that has them still stands, or they are
    /// stored again.
    pub(crate) fn settle(&mut self, txn: &Txn<'_>) -> Result<()> {
        let Some(former) = self.former.take() else { return Ok(()) };
        if former.stands(&txn.view)? {
            return Ok(());
        }
        for (_, extent) in &mut self.extents {
            if former.pieces.contains_key(&extent.piece.hash) {
                let bytes = txn.store.content.read(extent)?;
                *extent = Extent::whole(txn.store.content.store(txn.world.owner, &bytes)?);
            }
        }
        txn.store.segments.sync()?;
        Ok(())
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
        let room = self.former.as_ref().map_or(0, |former| former.allocated);
        self.world.need_room(self.len.saturating_sub(room))?;
        if self.len <= RIDE as u64 {
            self.small.extend_from_slice(bytes);
            return Ok(());
        }
        if let Some(key) = self.key.take() {
            self.former = Former::find(&self.world.view(), &key, true)?;
        }
        let small = std::mem::take(&mut self.small);
        self.cut(&small)?;
        self.cut(bytes)
    }

    fn cut(&mut self, bytes: &[u8]) -> Result<()> {
        let mut chunker = std::mem::take(&mut self.chunker);
        let done = chunker.push(bytes, |piece| self.keep(piece));
        self.chunker = chunker;
        done
    }

    /// Stores a piece, unless the former object has it.
    fn keep(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(former) = self.former.as_ref().filter(|former| !former.pieces.is_empty())
            && let Some(piece) = former.pieces.get(&Hash::of(bytes)).filter(|piece| piece.len as usize == bytes.len())
        {
            self.pieces.push(piece.clone());
            self.borrowed = true;
            return Ok(());
        }
        self.pieces.push(self.store.content.store(self.world.owner, bytes)?);
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
    /// With `lists`, those of a large object are lists; what is to become a part of one is not.
    pub(crate) fn finish(mut self, session: &Session, lists: bool) -> Result<Whole> {
        if !Arc::ptr_eq(&self.world, &session.world) {
            return Err(Error::invalid("the content was staged for another world"));
        }
        if let Some(piece) = self.chunker.finish() {
            self.keep(&piece)?;
        }
        let placed = !self.pieces.is_empty();
        if !placed && !self.small.is_empty() {
            self.pieces.push(Content::ride(&self.small));
        }
        let mut at = 0;
        let extents = std::mem::take(&mut self.pieces).into_iter().map(|piece| {
            let here = at;
            at += u64::from(piece.len);
            (here, Extent::whole(piece))
        });
        let mut extents = extents.collect();
        let former = self.former.take().filter(|_| self.borrowed);
        // Borrowed pieces may have to be stored again, which a list would not know of.
        if lists && former.is_none() {
            extents = self.store.content.listed(self.world.owner, extents)?;
        }
        if placed {
            self.store.segments.sync()?;
        }
        Ok(Whole { extents, len: self.len, former, _staging: self.staging })
    }
}

impl std::fmt::Debug for Staged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Staged({} bytes)", self.len)
    }
}
