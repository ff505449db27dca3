//! Conditions of a write, decided in the commit that would do it (RFC 9110, 13.2.2; AWS, *Conditional requests*).

use super::find::find_object;
use crate::error::{Error, Result};
use crate::object::ObjectInfo;
use crate::view::View;
use mw_model::ErrorKind;

/// What must hold of an object for a verb to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The object exists and has one of these entity tags (without quotes; `*` is any).
    pub if_match: Option<Vec<String>>,
    /// The object has none of these entity tags; with `*` it does not exist.
    pub if_none_match: Option<Vec<String>>,
    /// Its content changed after this, in UNIX nanoseconds; whole seconds are compared.
    pub if_modified_since: Option<u64>,
    /// Its content did not change after this, in UNIX nanoseconds; whole seconds are compared.
    pub if_unmodified_since: Option<u64>,
}

/// An HTTP date has no fraction of a second, so none is compared.
const SECOND: u64 = 1_000_000_000;

impl Conditions {
    /// Checks the conditions against the object under a key; without any, nothing is looked up.
    ///
    /// # Errors
    /// Those of [`Conditions::check`].
    pub(crate) fn hold(&self, view: &View, key: &[u8]) -> Result<()> {
        if *self == Self::default() {
            return Ok(());
        }
        self.check(find_object(view, key)?.map(|found| found.info(key)).as_ref())
    }

    /// Checks the conditions against what is there.
    ///
    /// # Errors
    /// `NotFound` when `if_match` names an object that is absent; `Precondition`.
    pub(crate) fn check(&self, found: Option<&ObjectInfo>) -> Result<()> {
        let Some(found) = found else {
            return match self.if_match {
                Some(_) => Err(Error::not_found("NoSuchKey: If-Match names an object that does not exist")),
                None => Ok(()),
            };
        };
        let names = |tags: &Vec<String>| tags.iter().any(|t| t == "*" || *t == found.etag);
        let since = |at: u64| found.modified / SECOND > at / SECOND;
        match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) if !names(tags) => return Err(failed("If-Match")),
            (None, Some(at)) if since(at) => return Err(failed("If-Unmodified-Since")),
            _ => {}
        }
        match (&self.if_none_match, self.if_modified_since) {
            (Some(tags), _) if names(tags) => Err(failed("If-None-Match")),
            (None, Some(at)) if !since(at) => Err(failed("If-Modified-Since")),
            _ => Ok(()),
        }
    }
}

fn failed(which: &str) -> Error {
    Error::new(ErrorKind::Precondition, format!("the condition {which} does not hold; read the object again"))
}
