//! Idempotency keys: the same key with the same request gives the same result; with another request it is a conflict.

use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::principal::Principal;
use crate::store::Store;
use bytes::Bytes;
use mw_meta::{Batch, Expect};
use mw_model::{ErrorKind, Hash};

/// A request that may have been made before.
pub(crate) struct Once {
    place: Bytes,
    request: Hash,
}

impl Once {
    /// Names a request; `request` says all of it that matters.
    pub(crate) fn new(who: &Principal, key: Option<&str>, request: &str) -> Result<Option<Self>> {
        let Some(key) = key else { return Ok(None) };
        if key.is_empty() || key.len() > 255 {
            return Err(Error::invalid("an idempotency key has 1 to 255 bytes"));
        }
        let scope = Hash::of(format!("{}\0{key}", who.key_id()).as_bytes());
        Ok(Some(Self { place: layout::raw(Tag::Idempotency, &scope.0), request: Hash::of(request.as_bytes()) }))
    }

    /// Returns the result of the first time.
    pub(crate) fn before(&self, store: &Store) -> Result<Option<String>> {
        let Some(value) = store.meta.get(&self.place)? else { return Ok(None) };
        let (hash, result) =
            value.split_at_checked(32).ok_or_else(|| Error::corrupt("an idempotency record is short"))?;
        if hash != self.request.0 {
            return Err(Error::new(
                ErrorKind::Conflict,
                "this idempotency key was used for another request; use a fresh key for a new request",
            ));
        }
        Ok(Some(String::from_utf8_lossy(result).into_owned()))
    }

    /// Adds the record of the result to the batch that makes it.
    pub(crate) fn record(&self, batch: &mut Batch, result: &str) {
        let mut value = self.request.0.to_vec();
        value.extend_from_slice(result.as_bytes());
        batch.require(self.place.clone(), Expect::Absent);
        batch.put(self.place.clone(), value);
    }
}
