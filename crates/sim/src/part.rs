//! Several stores of files on one disk, so that one power cut hits all of them at the same instant.

use mw_env::{Disk, File};
use std::io;
use std::sync::Arc;

/// A part of a disk: the files whose names begin with a prefix.
#[derive(Debug, Clone)]
pub struct Part {
    disk: Arc<dyn Disk>,
    prefix: &'static str,
}

impl Part {
    /// Makes the part of `disk` whose names begin with `prefix`.
    #[must_use]
    pub fn of(disk: Arc<dyn Disk>, prefix: &'static str) -> Arc<Self> {
        Arc::new(Self { disk, prefix })
    }
}

impl Disk for Part {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.disk.open(&format!("{}{name}", self.prefix))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = self.disk.list()?;
        Ok(names.iter().filter_map(|name| name.strip_prefix(self.prefix)).map(str::to_owned).collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(&format!("{}{name}", self.prefix))
    }
}
