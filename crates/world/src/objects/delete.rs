//! DELETE, of one key or of many in one commit. An absent key is no error.

use super::conditions::Conditions;
use super::versions::Deleted;
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::session::Session;
use bytes::Bytes;
use mw_meta::Durability;
use mw_model::policy::Action;

pub(crate) fn need_some_key(key: &[u8]) -> Result<()> {
    if key.is_empty() { Err(Error::invalid("a key has at least one byte")) } else { Ok(()) }
}

impl Session {
    /// Deletes an object, durable on return; false when there was none. The implicit directories that it alone kept go too,
    /// unless a mount uses them. See [`Session::delete_object`] for what becomes of it in a world with versions.
    ///
    /// `d/` deletes the marker of `d`, which is implicit from then on, or an explicit `d` that is empty; a `d` that holds
    /// something and has no marker is no object, and stays.
    ///
    /// # Errors
    /// `Precondition`, `NotFound` as the conditions say; `Invalid` for the empty key.
    pub fn delete(&self, key: &[u8], conditions: &Conditions) -> Result<bool> {
        Ok(self.delete_object(key, conditions)?.existed)
    }

    /// Deletes many objects in one commit, durable on return. The outcomes are in the order of the keys; a key that is named
    /// twice existed the first time.
    ///
    /// # Errors
    /// Those of the commit, for all; `Invalid` for an empty key and `Denied` for one that may not be deleted, for itself.
    pub fn delete_many(&self, keys: &[Bytes]) -> Result<Vec<Result<Deleted>>> {
        let permit = self.may_delete()?;
        let outcomes = self.change_with(permit, Verb::Delete, Durability::Durable, |txn| {
            let mut outcomes = Vec::with_capacity(keys.len());
            let mut gone = 0usize;
            for key in keys {
                outcomes.push(match need_some_key(key).and_then(|()| self.may(Action::DeleteObject, key)) {
                    Ok(_) => Ok(txn.delete_key(key)?),
                    Err(e) => Err(e),
                });
                gone += usize::from(matches!(outcomes.last(), Some(Ok(Deleted { existed: true, .. }))));
            }
            if let [key] = keys {
                txn.path = Some(key.clone());
            }
            txn.note = format!("{gone} keys");
            Ok(outcomes)
        })?;
        let lasting = |outcome: &Result<Deleted>| matches!(outcome, Ok(d) if d.existed || d.version.is_some());
        self.absence_is_durable(outcomes.iter().all(lasting))?;
        Ok(outcomes)
    }

    /// Whoever is told that a key is absent may rely on it: the removal that a mount did just before becomes durable too.
    pub(crate) fn absence_is_durable(&self, changed: bool) -> Result<()> {
        if changed { Ok(()) } else { self.sync() }
    }
}
