//! Starts a sandbox: the builder, the talk with process 1, the limits, the network, the command. Whatever fails on the way,
//! nothing is left running.

use crate::cgroup::Groups;
use crate::proxy::{Proxy, Resolve};
use crate::pump::{Discard, Output, Pump, Stream};
use crate::relay::{Answer, Relay, To};
use crate::spec::{Destination, Enforcer, Enforcers, Limits};
use crate::wire::{self, Blueprint, Order, Received, Report, Task};
use crate::{Error, Result};
use mw_env::Env;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, Signal};
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Once};
use std::time::Duration;

/// How long a sandbox may take to be built. The command's own time begins after that.
const PATIENCE: Duration = Duration::from_secs(60);
/// How much is kept of what the builder complains about.
const COMPLAINTS: u64 = 8 << 10;

/// Says once in a process that limits are weaker than asked for.
static WEAKER: Once = Once::new();

/// How to build the sandbox.
#[derive(Debug)]
pub(crate) struct Build {
    pub(crate) stage: PathBuf,
    pub(crate) stage_arguments: Vec<String>,
    pub(crate) blueprint: Blueprint,
}

/// Everything needed to start one sandbox.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) env: Env,
    pub(crate) build: Build,
    pub(crate) task: Task,
    pub(crate) own_env: Vec<(String, String)>,
    pub(crate) endpoint: Option<SocketAddr>,
    pub(crate) inside_port: u16,
    pub(crate) allow: Vec<Destination>,
    pub(crate) resolve: Arc<dyn Resolve>,
    pub(crate) limits: Limits,
    pub(crate) tty: bool,
    pub(crate) stdin: bool,
}

/// The processes of a sandbox: the builder, which stays as the parent of process 1, and process 1.
#[derive(Debug)]
pub(crate) struct Tree {
    builder: Child,
    /// A handle on process 1, from when it has spoken.
    init: Option<OwnedFd>,
    pub(crate) groups: Groups,
}

impl Tree {
    /// Kills every process. With process 1 the kernel kills all others of its namespace.
    pub(crate) fn kill(&mut self) {
        match &self.init {
            // Not the builder: its end is the proof that process 1, and with it all others, has been reaped.
            Some(init) => {
                let _ = rustix::process::pidfd_send_signal(init, Signal::KILL);
                self.groups.kill();
            }
            None => {
                let _ = self.builder.kill();
            }
        }
    }

    /// Waits until every process is gone.
    pub(crate) fn reap(&mut self) {
        let _ = self.builder.wait();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
        self.reap();
    }
}

/// A sandbox whose command runs.
#[derive(Debug)]
pub(crate) struct Alive {
    pub(crate) tree: Tree,
    pub(crate) control: OwnedFd,
    pub(crate) pid: Pid,
    pub(crate) enforcers: Enforcers,
    pub(crate) relays: Vec<Relay>,
    pub(crate) out: Pump,
    pub(crate) err: Option<Pump>,
    pub(crate) input: Option<File>,
    pub(crate) terminal: Option<OwnedFd>,
    /// Keeps the builder's complaints flowing, for its whole life.
    pub(crate) complaints: Pump,
}

/// The ends of the command's streams that go inside, and those that stay.
struct Streams {
    inner: Vec<OwnedFd>,
    out: OwnedFd,
    err: Option<OwnedFd>,
    input: Option<File>,
}

impl Launch {
    /// Starts the sandbox. The calling thread must live as long as the sandbox: the kernel ties the builder's life to it.
    pub(crate) fn run(mut self, output: &Arc<dyn Output>) -> Result<Alive> {
        let deadline = self.env.monotonic().saturating_add(nanoseconds(PATIENCE));
        let (control, inner) = wire::pair().map_err(Error::io("make a socket pair"))?;
        let (mut tree, complaints) = self.build(inner)?;

        self.order_build(&control)?;

        let ready = self.hear(&control, deadline)?;
        let Some(Received { message: Report::Ready { proxy_port }, files, sender: Some(pid) }) = ready else {
            return Err(last_words(tree, complaints));
        };
        // The builder has not reaped its child, so the number still means process 1.
        let init = rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(Error::io("watch process 1"))?;
        tree.init = Some(init);

        let enforcers = self.limit(&tree.groups, pid)?;
        let mut files = files.into_iter();
        let relays = self.connect(&mut files, proxy_port)?;
        let terminal = if self.tty { Some(files.next().ok_or_else(nonsense)?) } else { None };
        let Streams { inner, out, err, input } = self.streams(terminal.as_ref())?;

        self.task.env.append(&mut self.own_env);
        let task = wire::file(&self.task).map_err(Error::io("write the task"))?;
        let handed: Vec<_> = std::iter::once(task.as_fd()).chain(inner.iter().map(AsFd::as_fd)).collect();
        wire::send(&control, &Order::Start, &handed).map_err(Error::io("order the start"))?;
        // The command must hold the last copies, or its output would never end.
        drop(inner);
        match self.hear(&control, deadline)?.map(|r| r.message) {
            Some(Report::Started) => {}
            Some(Report::Failed { what, errno }) => {
                return Err(Error::Command { what, source: io::Error::from_raw_os_error(errno) });
            }
            Some(_) => return Err(nonsense()),
            None if tree.groups.ran_out_of_memory() => {
                return Err(Error::Invalid(String::from("the memory limit is too small to start anything")));
            }
            None => return Err(last_words(tree, complaints)),
        }
        let kept = self.limits.output;
        let pump = |from, stream| {
            Pump::start(from, stream, Arc::clone(output), kept).map_err(Error::io("start a thread for the output"))
        };
        let out = pump(out, Stream::Out)?;
        let err = err.map(|from| pump(from, Stream::Err)).transpose()?;
        Ok(Alive { tree, control, pid, enforcers, relays, out, err, input, terminal, complaints })
    }

    /// Tells the builder what to make, and process 1 what to open. A builder that is gone is found out by its silence.
    fn order_build(&self, control: &OwnedFd) -> Result<()> {
        let blueprint = wire::file(&self.build.blueprint).map_err(Error::io("write the blueprint"))?;
        let prepare = Order::Prepare {
            port: self.endpoint.map(|_| self.inside_port),
            proxy: !self.allow.is_empty(),
            tty: self.tty,
        };
        match wire::send(control, &Order::Build, &[blueprint.as_fd()]).and_then(|()| wire::send(control, &prepare, &[]))
        {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(Error::io("order the building")),
        }
    }

    /// Starts the builder, by way of the stage.
    fn build(&self, inner: OwnedFd) -> Result<(Tree, Pump)> {
        let (heard, said) = pipe()?;
        let builder = Command::new(&self.build.stage)
            .args(&self.build.stage_arguments)
            .env_clear()
            .stdin(Stdio::from(inner))
            .stdout(Stdio::null())
            .stderr(Stdio::from(said))
            .current_dir("/")
            // A ^C at the store's terminal is for the store to answer, not for the walls.
            .process_group(0)
            .spawn()
            .map_err(Error::io("start the sandbox's builder"))?;
        let groups = Groups::new(&self.limits, &self.env);
        let tree = Tree { builder, init: None, groups };
        let complaints = Pump::start(heard, Stream::Err, Arc::new(Discard), COMPLAINTS)
            .map_err(Error::io("start a thread for the builder's words"))?;
        Ok((tree, complaints))
    }

    /// Waits for the next report. `None`: nobody is left to send one.
    fn hear(&self, control: &OwnedFd, deadline: u64) -> Result<Option<Received<Report>>> {
        let left = deadline.saturating_sub(self.env.monotonic());
        let mut fds = [PollFd::new(control, PollFlags::IN)];
        let heard = rustix::io::retry_on_intr(|| rustix::event::poll(&mut fds, Some(&timespec(left))));
        if heard.map_err(Error::io("wait for process 1"))? == 0 {
            return Err(Error::Slow(String::from("a directory it is given may be on a mount that does not answer")));
        }
        wire::receive(control).map_err(Error::io("hear process 1"))
    }

    /// Puts process 1 under the limits, and leaves to it what no group holds.
    fn limit(&mut self, groups: &Groups, pid: Pid) -> Result<Enforcers> {
        groups.add(pid).map_err(Error::io("limit the sandbox"))?;
        let enforcers = groups.enforcers();
        if enforcers.memory == Enforcer::Rlimit {
            self.task.data = self.limits.memory;
        }
        if enforcers.processes == Enforcer::Rlimit {
            self.task.processes = u64::from(self.limits.processes);
        }
        let weak = |by, wanted: bool| wanted && matches!(by, Enforcer::Rlimit | Enforcer::Nobody);
        if weak(enforcers.memory, self.limits.memory > 0) || weak(enforcers.processes, self.limits.processes > 0) {
            WEAKER.call_once(|| {
                tracing::warn!(
                    "no control group can be made here: sandboxes are limited process by process; run the store where it \
                     may make groups, for example as a systemd service with Delegate=yes"
                );
            });
        }
        Ok(enforcers)
    }

    /// Serves the listeners that process 1 opened.
    fn connect(&mut self, files: &mut impl Iterator<Item = OwnedFd>, proxy_port: u16) -> Result<Vec<Relay>> {
        let mut relays = Vec::new();
        let mut serve = |answer: Arc<dyn Answer>| {
            let listener = files.next().ok_or_else(nonsense)?;
            let relay = Relay::start(listener, answer, self.env.clone());
            relays.push(relay.map_err(Error::io("start a thread for the network"))?);
            Ok(())
        };
        if let Some(endpoint) = self.endpoint {
            serve(Arc::new(To(endpoint)))?;
        }
        if !self.allow.is_empty() {
            serve(Arc::new(Proxy::new(self.allow.clone(), Arc::clone(&self.resolve))))?;
            let proxy = format!("http://127.0.0.1:{proxy_port}");
            for name in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"] {
                self.task.env.push((name.into(), proxy.clone()));
            }
            for name in ["NO_PROXY", "no_proxy"] {
                self.task.env.push((name.into(), String::from("127.0.0.1,localhost,::1")));
            }
        }
        Ok(relays)
    }

    fn streams(&self, terminal: Option<&OwnedFd>) -> Result<Streams> {
        if let Some(terminal) = terminal {
            let copy = || terminal.try_clone().map_err(Error::io("copy the terminal"));
            return Ok(Streams { inner: Vec::new(), out: copy()?, err: None, input: Some(File::from(copy()?)) });
        }
        let (out, inner_out) = pipe()?;
        let (err, inner_err) = pipe()?;
        let (inner_in, input) = if self.stdin {
            let (inner_in, input) = pipe()?;
            (inner_in, Some(File::from(input)))
        } else {
            let null = File::open("/dev/null").map_err(Error::io("open /dev/null"))?;
            (OwnedFd::from(null), None)
        };
        Ok(Streams { inner: vec![inner_in, inner_out, inner_err], out, err: Some(err), input })
    }
}

/// Returns what the builder and process 1 said before they ended.
fn last_words(mut tree: Tree, complaints: Pump) -> Error {
    tree.kill();
    tree.reap();
    let said = complaints.finish().to_text();
    Error::Setup(if said.trim().is_empty() { String::from("it ended without a word") } else { said.trim().into() })
}

fn nonsense() -> Error {
    Error::Setup(String::from("process 1 said something that makes no sense here"))
}

/// Makes a pipe that no other process inherits: its reading and its writing end.
fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(Error::io("make a pipe"))
}

/// Returns `time` in nanoseconds, or the longest there is.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns nanoseconds as the kernel takes them.
pub(crate) fn timespec(nanoseconds: u64) -> Timespec {
    // In range: seconds of a `u64` of nanoseconds fit any 64-bit time, and the rest is below 10^9.
    Timespec {
        tv_sec: (nanoseconds / 1_000_000_000).cast_signed(),
        tv_nsec: (nanoseconds % 1_000_000_000).cast_signed(),
    }
}
