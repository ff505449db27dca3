//! LIST: keys in byte order, a page at a time, rolled up at a delimiter.
//!
//! Invariant: objects and rolled-up prefixes are one sorted stream, each once, and count together; a page names where the next goes on
//! exactly when something is left. Nothing is kept between pages, so a page costs what it shows, wherever it starts.

use super::walk::{Step, Walk, holds_key, past};
use crate::error::{Error, Result};
use crate::object::{Brief, Known, ObjectInfo};
use crate::record::{self, Inode, Kind};
use crate::session::Session;
use crate::view::View;
use bytes::Bytes;
use mw_model::Ino;
use mw_model::policy::Action;
use mw_tree::Value;

/// What to list.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// Only keys that start with this.
    pub prefix: Bytes,
    /// Keys that have this behind the prefix are rolled up to where it ends. Empty: as none.
    pub delimiter: Option<Bytes>,
    /// Where to go on, exclusive: a key, existing or not, or a rolled-up prefix, under which nothing more is returned. Empty: from the
    /// start.
    pub after: Bytes,
    /// The most items to return; with 0 there is nothing, and nothing left.
    pub limit: usize,
}

/// One item of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all items are objects; a box for each would cost more than it saves"
)]
pub enum Listed {
    /// An object.
    Object(ObjectInfo),
    /// Everything that starts like this.
    Prefix(Bytes),
}

/// A page of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the byte order of keys and prefixes.
    pub items: Vec<Listed>,
    /// Where the next page goes on ([`ListRequest::after`]); none when this was the last.
    pub next: Option<Bytes>,
}

/// An item before its inode was looked up.
pub(crate) enum Item {
    Object { key: Bytes, ino: Ino },
    Prefix(Bytes),
}

impl Item {
    pub(crate) fn name(&self) -> &Bytes {
        match self {
            Self::Object { key, .. } | Self::Prefix(key) => key,
        }
    }
}

impl Session {
    /// Lists objects. Keys are raw bytes, also those that S3 could not create: not UTF-8, or over 1,024 bytes.
    ///
    /// An explicit directory in which nothing is is the object `d/`; one that is not empty is listed only by its marker. A directory is
    /// a prefix when there is a key in it. Pipes, sockets and devices are not listed.
    ///
    /// # Errors
    /// The store failed.
    pub fn list(&self, request: &ListRequest) -> Result<Listing> {
        let BriefListing { items, stored, next } = self.list_briefly(request)?;
        let mut near = 0;
        let described = |item| match item {
            Item::Prefix(prefix) => Ok(Listed::Prefix(prefix)),
            Item::Object { key, ino } => {
                let (inode, known) = stored.of(ino, &mut near)?;
                Ok(Listed::Object(Known::fresh(known, &inode)?.info(key, ino, &inode)))
            }
        };
        Ok(Listing { items: items.into_iter().map(described).collect::<Result<_>>()?, next })
    }

    /// Lists as [`Session::list`] does, for whoever looks at each item once.
    ///
    /// # Errors
    /// The store failed.
    pub fn list_briefly(&self, request: &ListRequest) -> Result<BriefListing> {
        self.may_list(Action::ListBucket, &request.prefix)?;
        let view = self.view();
        let (items, next) = page(&view, request)?;
        let stored = Stored::of_all(&view, &items)?;
        Ok(BriefListing { items, stored, next })
    }
}

/// A page of a listing whose objects still lie in their records.
pub struct BriefListing {
    items: Vec<Item>,
    stored: Stored,
    /// Where the next page goes on; none when this was the last.
    pub next: Option<Bytes>,
}

/// An item of a page, lent while it is looked at.
#[derive(Debug, Clone)]
pub enum Shown<'a> {
    /// An object.
    Object(Brief<'a>),
    /// Everything that starts like this.
    Prefix(&'a [u8]),
}

impl std::fmt::Debug for BriefListing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BriefListing")
            .field("items", &self.items.len())
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl BriefListing {
    /// Returns how many items there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there is nothing on the page.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Shows the items, in the byte order of keys and prefixes.
    ///
    /// # Errors
    /// A record is broken.
    pub fn show(&self, mut see: impl FnMut(Shown<'_>)) -> Result<()> {
        let (mut sums, mut near) = (Vec::new(), 0);
        for item in &self.items {
            match item {
                Item::Prefix(prefix) => see(Shown::Prefix(prefix)),
                Item::Object { key, ino } => {
                    let (inode, known) = self.stored.of(*ino, &mut near)?;
                    see(Shown::Object(Brief::of((key, *ino), &inode, known, &mut sums)?));
                }
            }
        }
        Ok(())
    }
}

/// Collects the items of a page.
pub(crate) fn page(view: &View, request: &ListRequest) -> Result<(Vec<Item>, Option<Bytes>)> {
    let mut items: Vec<Item> = Vec::new();
    let delimiter = request.delimiter.as_deref().filter(|d| !d.is_empty());
    let roll = |key: &Bytes| delimiter.and_then(|d| rolled_up(key, request.prefix.len(), d));
    let Some(start) = start(request, &roll) else { return Ok((items, None)) };
    if request.limit == 0 {
        return Ok((items, None));
    }
    let mut walk = Walk::new(view, &request.prefix)?;
    walk.seek(&start)?;
    while let Some(step) = walk.next()? {
        let (item, whole) = match step {
            Step::Object { key, ino } => match roll(&key) {
                None => (Item::Object { key, ino }, true),
                Some(prefix) => (Item::Prefix(prefix), false),
            },
            Step::Dir { path, ino } => match roll(&path) {
                None => {
                    walk.enter(path, ino);
                    continue;
                }
                Some(_) if !holds_key(view, ino)? => continue,
                // All that starts like this is in this directory, which is not entered.
                Some(prefix) => {
                    let whole = prefix == path;
                    (Item::Prefix(prefix), whole)
                }
            },
        };
        if items.len() == request.limit {
            let next = items.last().map(|last| last.name().clone());
            return Ok((items, next));
        }
        let over = if whole { None } else { Some(past(item.name())) };
        items.push(item);
        match over {
            None => {}
            Some(None) => break,
            Some(Some(past)) => walk.seek(&past)?,
        }
    }
    Ok((items, None))
}

/// Returns the least key that the page may show; none when there is none.
fn start(request: &ListRequest, roll: &dyn Fn(&Bytes) -> Option<Bytes>) -> Option<Vec<u8>> {
    let after = &request.after;
    if after.is_empty() {
        return Some(Vec::new());
    }
    if after.starts_with(&request.prefix) && roll(after).is_some_and(|prefix| prefix == *after) {
        return past(after);
    }
    Some([&after[..], b"\0"].concat())
}

/// Returns the prefix up to the end of the first delimiter behind the first `skip` bytes.
pub(crate) fn rolled_up(key: &Bytes, skip: usize, delimiter: &[u8]) -> Option<Bytes> {
    let at = key.get(skip..)?.windows(delimiter.len()).position(|w| w == delimiter)?;
    Some(key.slice(..skip + at + delimiter.len()))
}

/// What is stored of the objects of a page.
struct Stored {
    /// In order, each once.
    inos: Vec<Ino>,
    /// Of each its inode and what S3 knows.
    pairs: Vec<Option<Value>>,
}

impl Stored {
    /// Looks up what the items are, all inodes at once.
    fn of_all(view: &View, items: &[Item]) -> Result<Self> {
        let ino = |item: &Item| match item {
            Item::Object { ino, .. } => Some(*ino),
            Item::Prefix(_) => None,
        };
        let mut inos: Vec<Ino> = items.iter().filter_map(ino).collect();
        inos.sort_unstable();
        inos.dedup();
        let kinds = [Kind::Inode, Kind::Object];
        let keys: Vec<_> = inos.iter().flat_map(|ino| kinds.map(|kind| record::single_key(*ino, kind))).collect();
        Ok(Self { pairs: view.get_many(&keys)?, inos })
    }

    /// Returns an inode, and what S3 knows of it. `near` is where it is looked for first, behind the one that was asked for last: what
    /// was put in the order of names is numbered so.
    fn of(&self, ino: Ino, near: &mut usize) -> Result<(Inode, Option<&Value>)> {
        let (pairs, _) = self.pairs.as_chunks::<2>();
        let at = match self.inos.get(*near) {
            Some(next) if *next == ino => *near,
            _ => self.inos.binary_search(&ino).unwrap_or(usize::MAX - 1),
        };
        *near = at + 1;
        let pair = pairs.get(at);
        let Some([Some(inode), known]) = pair else {
            return Err(Error::corrupt(format!("inode {ino} has a name and no record; run `mw fsck`")));
        };
        Ok((Inode::decode(inode)?, known.as_ref()))
    }
}
