//! The program that takes the server's place: where it is, whether it can, and becoming it.

use super::handover::{self, Letter};
use crate::dir;
use crate::failure::{Failure, Result};
use mw_env::Env;
use mw_model::ErrorKind;
use nix::sys::signal::{SigSet, Signal};
use serde::{Deserialize, Serialize};
use std::ffi::{CString, OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a program may take to say what it can take over, in looks.
const LOOKS: u32 = 1_000;
const LOOK: Duration = Duration::from_millis(10);

/// What a program says that is asked whether it can take over (see [`handover::ASK`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Able {
    /// The oldest letter that it reads, and the newest.
    from: u32,
    to: u32,
    /// The device that the program lies on.
    device: (u32, u32),
    /// The newest format of a directory that it reads; a program of before format 3 does not say.
    #[serde(default)]
    format: u64,
}

/// Says what this program can take over: the life of [`handover::ASK`].
///
/// # Errors
/// The program does not find itself.
pub fn say() -> std::io::Result<String> {
    let device = std::fs::metadata("/proc/self/exe")?.dev();
    let device = (rustix::fs::major(device), rustix::fs::minor(device));
    serde_json::to_string(&Able { from: Letter::OLDEST, to: Letter::VERSION, device, format: dir::VERSION })
        .map_err(Into::into)
}

/// Where the server's program is, and will be when it has been upgraded.
#[derive(Debug, Clone)]
pub struct Program(PathBuf);

impl Program {
    /// Returns this program as it was called. A symbolic link stays one: an upgrade may point it elsewhere.
    ///
    /// # Errors
    /// The program does not find itself.
    pub fn own() -> Result<Self> {
        let itself = std::env::current_exe().map_err(|e| Failure::io("this program", e))?;
        let called = std::env::args_os().next().and_then(|name| found(&name));
        Ok(Self(called.filter(|path| is_same(path, &itself)).unwrap_or(itself)))
    }

    /// Asks the program whether it can take over from this one. `mounts` are the kernel's numbers of this server's mounts.
    ///
    /// # Errors
    /// It cannot be run, does not read what this one writes, or lies in a mount of this server, where nobody could read it.
    pub fn examine(&self, mounts: &[u32], env: &Env) -> Result<()> {
        let able = self.ask(env)?;
        let shown = self.0.display();
        if !(able.from..=able.to).contains(&Letter::VERSION) {
            let message =
                format!("{shown} cannot take over from this version of mw; stop the server and start that one");
            return Err(Failure::new(ErrorKind::Unsupported, message));
        }
        if able.format < dir::VERSION {
            let message = format!(
                "{shown} does not read a directory of format {}, which this server's has by now; use a newer mw",
                dir::VERSION
            );
            return Err(Failure::new(ErrorKind::Unsupported, message));
        }
        if able.device.0 == 0 && mounts.contains(&able.device.1) {
            let message =
                format!("{shown} lies in a mount of this server, which would wait for itself; install it elsewhere");
            return Err(Failure::new(ErrorKind::Unsupported, message));
        }
        Ok(())
    }

    fn ask(&self, env: &Env) -> Result<Able> {
        let shown = self.0.display();
        let mut child = Command::new(&self.0)
            .arg(handover::ASK)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| Failure::io(format!("{shown} cannot take over"), e))?;
        for _ in 0..LOOKS {
            if child.try_wait().is_ok_and(|ended| ended.is_some()) {
                break;
            }
            env.sleep(LOOK);
        }
        // Does nothing to one that has ended.
        let _ = child.kill();
        let mut said = Vec::new();
        let _ = child.stdout.take().map(|out| out.take(4096).read_to_end(&mut said));
        let _ = child.wait();
        serde_json::from_slice(&said).map_err(|_| {
            let message = format!("{shown} does not say that it can take over: no mw, or one of before `mw restart`; stop the server and start that one");
            Failure::new(ErrorKind::Unsupported, message)
        })
    }

    /// Becomes the program, with the arguments of this one. Returns only when that fails.
    pub fn become_it(&self) -> Failure {
        let failed = |e: std::io::Error| Failure::io(format!("{} cannot take over", self.0.display()), e);
        let text = |text: OsString| CString::new(text.into_vec()).map_err(|e| failed(e.into()));
        let arguments =
            std::env::args_os().filter(|argument| argument != handover::FLAG).chain([handover::FLAG.into()]);
        let (path, arguments) = match (text(self.0.clone().into()), arguments.map(text).collect::<Result<Vec<_>>>()) {
            (Ok(path), Ok(arguments)) => (path, arguments),
            (Err(failure), _) | (_, Err(failure)) => return failure,
        };
        // They would end the program before it has said what they mean to it.
        let signals = signals();
        let _ = signals.thread_block();
        let Err(error) = nix::unistd::execv(&path, &arguments);
        let _ = signals.thread_unblock();
        failed(error.into())
    }
}

/// Hears again of what [`Program::become_it`] had put off. To be called when there is somebody to hear.
pub fn listen() {
    let _ = signals().thread_unblock();
}

fn signals() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGUSR2].into_iter().collect()
}

/// Finds what a command line calls `name`.
fn found(name: &OsStr) -> Option<PathBuf> {
    if Path::new(name).components().count() > 1 {
        return std::path::absolute(name).ok();
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    identity(one).is_some_and(|one| Some(one) == identity(other))
}
