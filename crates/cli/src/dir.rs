//! The server's directory: who owns it, which format it has, and the small files that tell clients about the server.
//!
//! One process owns a directory, by a lock on `DIR/lock` held for its whole life. Every file here is written beside and renamed, so
//! that a reader never sees half of one.

use crate::failure::{Failure, Result};
use mw_env::Env;
use mw_http::types::Secret;
use mw_model::ErrorKind;
use mw_world::{Put, RootFile, SealingKey};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The file with the root key: `{"id":…,"secret":…}`, for its owner alone.
pub const ROOT_KEY: &str = "root-key.json";
const SERVER: &str = "server.json";
const LOCK: &str = "lock";
const FORMAT: &str = "format";
/// The file with the key under which the secrets of keys are sealed, in hexadecimal, for its owner alone.
const SEALING: &str = "sealing-key";
/// The format that this program writes, and the newest it reads.
pub const VERSION: u64 = 3;
/// The first format whose secrets are sealed.
pub const SEALED: u64 = 2;
/// How long a server in the background waits for its predecessor to leave, in steps of a hundredth of a second.
const PATIENCE: u32 = 3_000;

/// What a running server says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// The process.
    pub pid: u32,
    /// The address, as a URL.
    pub endpoint: String,
    /// Where programs of this machine reach the same server without TLS, when `endpoint` is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// This life of the server; `/-/healthz` answers with the same.
    pub instance: String,
}

/// Reads what the server of `dir` said about itself.
pub fn announced(dir: &Path) -> Option<Announcement> {
    serde_json::from_slice(&fs::read(dir.join(SERVER)).ok()?).ok()
}

/// Makes `dir`, for its owner alone, when it is missing.
///
/// # Errors
/// Those of the operating system.
pub fn make(dir: &Path) -> Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|e| Failure::io(dir.display(), e))
}

/// Opens a file to be locked.
///
/// # Errors
/// Those of the operating system.
pub fn open_lock(path: &Path) -> Result<fs::File> {
    fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|e| Failure::io(path.display(), e))
}

/// The ownership of a directory; given up when dropped.
#[derive(Debug)]
pub struct Owned {
    lock: Arc<fs::File>,
}

impl Owned {
    /// Takes `dir`, making it when it is missing, and checks its format. With `wait` a predecessor may take half a minute to
    /// leave.
    ///
    /// # Errors
    /// `Busy` when another server owns it, naming its process; `Unsupported` when a newer version wrote it.
    pub fn take(dir: &Path, wait: bool, env: &Env) -> Result<Self> {
        make(dir)?;
        let path = dir.join(LOCK);
        let mut lock = open_lock(&path)?;
        let mut tries = if wait { PATIENCE } else { 0 };
        while let Err(error) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK {
                return Err(Failure::io(path.display(), error));
            }
            if tries == 0 {
                return Err(taken(dir, &mut lock));
            }
            tries -= 1;
            env.sleep(Duration::from_millis(10));
        }
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(|e| Failure::io(path.display(), e))?;
        check_format(dir, env)?;
        Ok(Self { lock: Arc::new(lock) })
    }

    /// Goes on with the ownership of `dir` that the program had which this process was, and checks its format.
    ///
    /// # Errors
    /// `Unsupported` when a newer version wrote it.
    pub fn inherit(dir: &Path, lock: &fs::File, env: &Env) -> Result<Self> {
        check_format(dir, env)?;
        let lock = lock.try_clone().map_err(|e| Failure::io(dir.join(LOCK).display(), e))?;
        Ok(Self { lock: Arc::new(lock) })
    }

    /// Returns the lock.
    pub fn lock(&self) -> Arc<fs::File> {
        self.lock.clone()
    }
}

/// Returns the process that took `dir` last, if it says so.
pub fn owner(dir: &Path) -> Option<u32> {
    fs::read_to_string(dir.join(LOCK)).ok()?.trim().parse().ok()
}

fn taken(dir: &Path, lock: &mut fs::File) -> Failure {
    let mut pid = String::new();
    // Without the pid the message is only less helpful.
    let _ = lock.read_to_string(&mut pid);
    let pid = pid.trim();
    let owner = if pid.is_empty() { "another server".to_owned() } else { format!("the server with pid {pid}") };
    let message = format!(
        "the directory {} is in use by {owner}; use that one (unset MW_ENDPOINT, or see server.json), stop it first, or give another --data",
        dir.display()
    );
    Failure::new(ErrorKind::Busy, message)
}

fn parse_format(path: &Path, text: &str) -> Result<u64> {
    text.trim().strip_prefix("manyworlds ").and_then(|n| n.parse::<u64>().ok()).ok_or_else(|| {
        let message = format!("{} is not the format file of a store; is this the right directory?", path.display());
        Failure::new(ErrorKind::Corrupt, message)
    })
}

fn check_format(dir: &Path, env: &Env) -> Result<()> {
    let path = dir.join(FORMAT);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let found = parse_format(&path, &text)?;
            if found > VERSION {
                let message = format!(
                    "the directory {} has format {found}, and this version of mw reads up to {VERSION}; use a newer mw, or another --data",
                    dir.display()
                );
                return Err(Failure::new(ErrorKind::Unsupported, message));
            }
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            write(dir, FORMAT, format!("manyworlds {VERSION}\n").as_bytes(), env)
        }
        Err(error) => Err(Failure::io(path.display(), error)),
    }
}

/// Writes `dir/name`, readable by its owner alone, whole or not at all; durable on return.
///
/// # Errors
/// Those of the operating system.
pub fn write(dir: &Path, name: &str, bytes: &[u8], env: &Env) -> Result<()> {
    Beside::write(dir, name, bytes, env)?.put()
}

/// A file, whole and durable, beside the place where it is to be. Dropped, it is removed.
#[derive(Debug)]
pub struct Beside {
    dir: PathBuf,
    place: PathBuf,
    path: Option<PathBuf>,
}

impl Beside {
    /// Writes what is to become `dir/name`, readable by its owner alone.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn write(dir: &Path, name: &str, bytes: &[u8], env: &Env) -> Result<Self> {
        let path = dir.join(format!(".{name}.{}", env.token(8)));
        let beside = Self { dir: dir.to_owned(), place: dir.join(name), path: Some(path.clone()) };
        let outcome = (|| {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        })();
        outcome.map_err(|e| Failure::io(beside.place.display(), e))?;
        Ok(beside)
    }

    /// Puts it in its place; durable on return.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn put(mut self) -> Result<()> {
        let wrong = |e| Failure::io(self.place.display(), e);
        if let Some(path) = &self.path {
            fs::rename(path, &self.place).map_err(wrong)?;
        }
        self.path = None;
        let synced = fs::File::open(&self.dir).and_then(|dir| dir.sync_all());
        synced.map_err(|e| Failure::io(self.place.display(), e))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What is left of it is of no use to anybody.
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the format that the directory says it has.
///
/// # Errors
/// Those of the operating system; the file does not say.
pub fn format(dir: &Path) -> Result<u64> {
    let path = dir.join(FORMAT);
    let text = fs::read_to_string(&path).map_err(|e| Failure::io(path.display(), e))?;
    parse_format(&path, &text)
}

/// Says that the directory has the format of this program.
///
/// # Errors
/// Those of the operating system.
pub fn set_format(dir: &Path, env: &Env) -> Result<()> {
    write(dir, FORMAT, format!("manyworlds {VERSION}\n").as_bytes(), env)
}

/// Returns the key under which secrets are sealed. It is made with the store, or with the upgrade of one that had none.
///
/// # Errors
/// `Corrupt` when it is missing or damaged: without it no key of the store works.
pub fn sealing_key(dir: &Path, env: &Env) -> Result<SealingKey> {
    let path = dir.join(SEALING);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let damaged = || {
                Failure::new(ErrorKind::Corrupt, format!("{} is damaged; put back the one of a backup", path.display()))
            };
            let bytes = parse_hex(text.trim()).ok_or_else(damaged)?;
            Ok(SealingKey::new(bytes))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if format(dir)? >= SEALED && dir.join("meta").exists() {
                let message = format!(
                    "{} is missing, and the secrets of this store's keys are sealed with it; put back the one of a backup",
                    path.display()
                );
                return Err(Failure::new(ErrorKind::Corrupt, message));
            }
            let mut bytes = [0; 32];
            env.fill(&mut bytes);
            let text: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            write(dir, SEALING, format!("{text}\n").as_bytes(), env)?;
            Ok(SealingKey::new(bytes))
        }
        Err(error) => Err(Failure::io(path.display(), error)),
    }
}

fn parse_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

fn shown(id: &str, secret: &str) -> Result<Vec<u8>> {
    let key = Secret { id: id.to_owned(), secret: secret.to_owned() };
    serde_json::to_vec(&key).map_err(|e| Failure::new(ErrorKind::Io, e.to_string()))
}

/// Writes the root key as the store has it, unless the file says the same, and removes what a rotation that broke off left beside it.
///
/// # Errors
/// Those of the operating system.
pub fn write_key(dir: &Path, key: &mw_world::Secret, env: &Env) -> Result<()> {
    let beside = format!(".{ROOT_KEY}.");
    for entry in fs::read_dir(dir).map_err(|e| Failure::io(dir.display(), e))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&beside) {
            fs::remove_file(entry.path()).map_err(|e| Failure::io(entry.path().display(), e))?;
        }
    }
    let bytes = shown(&key.id, &key.secret)?;
    if fs::read(dir.join(ROOT_KEY)).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    write(dir, ROOT_KEY, &bytes, env)
}

/// The file with the root key, as the store replaces it.
struct KeyFile {
    dir: PathBuf,
    env: Env,
}

/// Returns the file of `dir` with the root key, for its store.
pub fn key_file(dir: &Path, env: &Env) -> Arc<dyn RootFile> {
    Arc::new(KeyFile { dir: dir.to_owned(), env: env.clone() })
}

impl RootFile for KeyFile {
    fn prepare(&self, id: &str, secret: &str) -> mw_world::Result<Put> {
        let failed = |e: Failure| mw_world::Error::new(ErrorKind::Io, e.to_string());
        let file =
            Beside::write(&self.dir, ROOT_KEY, &shown(id, secret).map_err(failed)?, &self.env).map_err(failed)?;
        Ok(Box::new(move || file.put().map_err(failed)))
    }
}

/// Tells clients where the server is.
///
/// # Errors
/// Those of the operating system.
pub fn announce(dir: &Path, announcement: &Announcement, env: &Env) -> Result<()> {
    let bytes = serde_json::to_vec(announcement).map_err(|e| Failure::new(ErrorKind::Io, e.to_string()))?;
    write(dir, SERVER, &bytes, env)
}

/// Takes back what [`announce`] said, if nobody else has said something since.
pub fn withdraw(dir: &Path, instance: &str) {
    if announced(dir).is_some_and(|there| there.instance == instance) {
        // A client that finds it all the same sees that nobody answers.
        let _ = fs::remove_file(dir.join(SERVER));
    }
}
