//! A fork's files in a directory of the host: what a run needs of a mount, without knowing what a mount is.

use mw_world::Session;
use std::path::Path;

/// Shows worlds as directories.
pub trait Workspace: Send + Sync {
    /// Shows `session`'s world (or version) in a directory of the host, private to the caller.
    ///
    /// # Errors
    /// What is missing, and the remedy.
    fn open(&self, session: Session) -> Result<Box<dyn Files>, String>;
}

/// A world shown in a directory; dropping it ends that.
pub trait Files: Send {
    /// Returns the directory.
    fn dir(&self) -> &Path;
}
