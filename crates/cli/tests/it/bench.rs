//! A server with a directory of its own, and commands that talk to it.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// The binary under test.
pub const MW: &str = env!("CARGO_BIN_EXE_mw");

/// Makes a directory in memory, where there is one.
pub fn temp() -> TempDir {
    let fast = Path::new("/dev/shm");
    if fast.is_dir() { tempfile::tempdir_in(fast).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// Makes the command of `mw` with nothing of the environment that could lead it elsewhere.
pub fn command(dir: &Path) -> Command {
    command_of(Path::new(MW), dir)
}

/// Makes the command of another binary than the one under test, in the same way.
pub fn command_of(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    for name in ["MW_ENDPOINT", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "MW_LOG", "RUST_LOG"]
    {
        command.env_remove(name);
    }
    command.env("MW_DATA", dir).env("HOME", dir).stdin(Stdio::null());
    command
}

/// A server that is killed when dropped.
pub struct Server {
    pub dir: TempDir,
    pub endpoint: String,
    child: Child,
}

impl Server {
    /// Starts a server on a fresh directory.
    pub fn start() -> Self {
        Self::on(temp(), &[])
    }

    /// Starts a server on `dir` with more arguments.
    pub fn on(dir: TempDir, args: &[&str]) -> Self {
        Self::of(Path::new(MW), dir, args)
    }

    /// Starts a server of another binary.
    pub fn of(program: &Path, dir: TempDir, args: &[&str]) -> Self {
        let mut child = command_of(program, dir.path())
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let endpoint = line.trim().strip_prefix("ready ").unwrap_or_else(|| panic!("not ready: {line:?}")).to_owned();
        Self { dir, endpoint, child }
    }

    /// Returns the server's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Runs a command with the root key.
    pub fn mw(&self, args: &[&str]) -> Done {
        Done::of(command(self.path()).args(args))
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub fn ok(&self, args: &[&str]) -> String {
        let done = self.mw(args);
        assert_eq!(done.code, 0, "{args:?}: {}", done.err);
        done.out
    }

    /// Runs a command with `--json` that must succeed, and returns its document.
    pub fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{args:?} printed {text:?}: {e}"))
    }

    /// Runs a command with another key, and its session token if it has one.
    pub fn with_key(&self, key: &Value, args: &[&str]) -> Done {
        let mut command = command(self.path());
        command
            .env("MW_ENDPOINT", &self.endpoint)
            .env("AWS_ACCESS_KEY_ID", key["id"].as_str().unwrap())
            .env("AWS_SECRET_ACCESS_KEY", key["secret"].as_str().unwrap());
        if let Some(token) = key["token"].as_str() {
            command.env("AWS_SESSION_TOKEN", token);
        }
        Done::of(command.args(args))
    }

    /// Puts `content` at a place of a world.
    pub fn put(&self, place: &str, content: &str) {
        let file = self.path().join("put-content");
        std::fs::write(&file, content).unwrap();
        self.ok(&["put", file.to_str().unwrap(), place]);
    }

    /// Asks the server to leave, waits for it and gives the directory back.
    pub fn stop(mut self) -> TempDir {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        std::mem::replace(&mut self.dir, temp())
    }

    /// Kills the server without warning and gives the directory back.
    pub fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.dir, temp())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().unwrap();
        Self {
            code: status.code().unwrap_or(-1),
            out: String::from_utf8(stdout).unwrap(),
            err: String::from_utf8(stderr).unwrap(),
        }
    }
}

/// Kills, when dropped, the server that commands started in the background.
pub struct Background(pub TempDir);

impl Background {
    pub fn pid(&self) -> Option<i32> {
        let text = std::fs::read_to_string(self.0.path().join("server.json")).ok()?;
        serde_json::from_str::<Value>(&text).ok()?["pid"].as_i64().map(|pid| pid as i32)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(pid) = self.pid().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Writes a file and returns its path.
pub fn write(dir: &Path, name: &str, content: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path
}
