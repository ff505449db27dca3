//! The keys under a directory in byte order, in bounded portions: a call looks at so much and says where the next goes on.

use crate::error::Result;
use crate::place;
use bytes::Bytes;
use mw_world::{ListRequest, Listed, ObjectInfo, Session};

/// How many keys are asked of the store at a time.
const PAGE: usize = 1000;

/// Keys that come one after another.
pub(crate) struct Keys<'a> {
    session: &'a Session,
    prefix: Bytes,
    page: std::vec::IntoIter<Listed>,
    /// Where the next page starts; none when the last was the last.
    next: Option<Bytes>,
    /// How many keys may still be looked at.
    left: usize,
}

impl<'a> Keys<'a> {
    /// Starts behind `after` (empty: from the first) under the directory `dir`; at most `budget` keys come.
    pub(crate) fn new(session: &'a Session, dir: &[u8], after: Bytes, budget: usize) -> Self {
        Self { session, prefix: place::prefix(dir), page: Vec::new().into_iter(), next: Some(after), left: budget }
    }

    /// Returns the next object; none at the end, or when the budget is used up.
    pub(crate) fn next(&mut self) -> Result<Option<ObjectInfo>> {
        loop {
            if self.left == 0 {
                return Ok(None);
            }
            match self.page.next() {
                Some(Listed::Object(info)) => {
                    self.left -= 1;
                    return Ok(Some(info));
                }
                // Without a delimiter nothing is rolled up.
                Some(Listed::Prefix(_)) => {}
                None => {
                    let Some(after) = self.next.take() else { return Ok(None) };
                    let limit = PAGE.min(self.left);
                    let prefix = self.prefix.clone();
                    let listing = self.session.list(&ListRequest { prefix, delimiter: None, after, limit })?;
                    self.next = listing.next;
                    self.page = listing.items.into_iter();
                }
            }
        }
    }

    /// Returns whether the budget, and not the keys, came to its end.
    pub(crate) fn spent(&self) -> bool {
        self.left == 0 && (self.next.is_some() || self.page.len() > 0)
    }
}
