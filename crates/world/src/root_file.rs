//! Where the root key is kept outside the store, for programs of the same machine: how a new secret comes to both places.
//!
//! The store is the truth. The file is prepared before the commit and put in its place after it, so that whatever breaks off in between
//! leaves a file that is old and whole; whoever opens the store writes it anew from what the store has.

use crate::error::Result;

/// What puts a prepared file in its place; dropped instead, it leaves nothing behind.
pub type Put = Box<dyn FnOnce() -> Result<()> + Send>;

/// A place for the root key.
pub trait RootFile: Send + Sync {
    /// Prepares a file that says this key, so that little can go wrong any more.
    ///
    /// # Errors
    /// It cannot be written.
    fn prepare(&self, id: &str, secret: &str) -> Result<Put>;
}
