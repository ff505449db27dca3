//! The half of a sandbox that is a process of its own. Outside it becomes the builder (`stage`); inside, as process 1, it opens what the outside serves, starts the command, reaps whoever
//! loses a parent, reports how the command ended, and ends. With process 1 the kernel ends every other process of the
//! sandbox, so that nothing can outlive the command.
//!
//! It does not carry a byte of traffic: the listeners and the terminal are opened here, where the namespaces are the
//! sandbox's, and handed out.

use crate::stage;
use crate::wire::{self, Order, Report, Task};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions};
use rustix::pty::OpenptFlags;
use std::ffi::OsStr;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

/// The status with which process 1 ends when it could not do its work; the outside goes by the report, not by this.
const BROKEN: u8 = 125;

/// Serves as the builder's stage and as process 1 of a sandbox. A program that starts sandboxes through [`crate::Bubblewrap`] must call this first
/// thing when it is started with the arguments it named there. The orders come over standard input.
pub fn init_main() -> ExitCode {
    let inside = rustix::process::getpid().is_init();
    let served = if inside { serve() } else { stage::become_builder().map(|never| match never {}) };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            use std::io::Write;
            // Standard error leads to the outer half, which quotes it.
            let _ = writeln!(io::stderr(), "sandbox: {why}");
            ExitCode::from(BROKEN)
        }
    }
}

fn serve() -> io::Result<()> {
    // The command runs under the same user: without this it could attach to process 1 and speak in its name.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    stage::only_standard_files_are_inherited();
    let control = Arc::new(io::stdin().as_fd().try_clone_to_owned()?);
    let gone = || io::Error::new(io::ErrorKind::UnexpectedEof, "nobody is outside");

    let Some(wire::Received { message: Order::Prepare { port, proxy, tty }, .. }) = wire::receive(&control)? else {
        return Err(gone());
    };
    let terminal = prepare(&control, port, proxy, tty)?;

    let Some(wire::Received { message: Order::Start, files, .. }) = wire::receive(&control)? else {
        return Err(gone());
    };
    let main = match start(files, terminal.as_ref()) {
        Ok(main) => main,
        Err((what, source)) => {
            return wire::send(
                &control,
                &Report::Failed { what, errno: source.raw_os_error().unwrap_or(libc::EIO) },
                &[],
            );
        }
    };
    // Opened before anybody can reap it, so that it never names another process.
    let handle = rustix::process::pidfd_open(main, PidfdFlags::empty())?;
    wire::send(&control, &Report::Started, &[])?;
    obey(Arc::clone(&control), handle)?;
    let (code, signal) = reap_until(main)?;
    wire::send(&control, &Report::Exited { code, signal }, &[])
}

/// Opens the listeners and the terminal, and hands their outer ends out. Returns the terminal's inner end.
fn prepare(control: &OwnedFd, port: Option<u16>, proxy: bool, tty: bool) -> io::Result<Option<OwnedFd>> {
    let listen = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let store = port.map(listen).transpose()?;
    let proxy = proxy.then(|| listen(0)).transpose()?;
    let proxy_port = proxy.as_ref().map(TcpListener::local_addr).transpose()?.map_or(0, |a| a.port());
    let terminal = tty.then(open_terminal).transpose()?;

    let mut files = Vec::new();
    files.extend(store.as_ref().map(AsFd::as_fd));
    files.extend(proxy.as_ref().map(AsFd::as_fd));
    files.extend(terminal.as_ref().map(|(outer, _)| outer.as_fd()));
    wire::send(control, &Report::Ready { proxy_port }, &files)?;
    Ok(terminal.map(|(_, inner)| inner))
}

/// Opens a terminal in the sandbox's own devpts and makes it the controlling one. The builder has made this process the
/// leader of a session without a terminal, so the caller's own is out of reach.
fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let outer = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&outer)?;
    let inner = rustix::pty::ioctl_tiocgptpeer(&outer, flags)?;
    rustix::process::ioctl_tiocsctty(&inner)?;
    Ok((outer, inner))
}

/// Starts the command; an error names the step.
fn start(files: Vec<OwnedFd>, terminal: Option<&OwnedFd>) -> Result<Pid, (String, io::Error)> {
    let at = |step: &'static str| move |e: io::Error| (String::from(step), e);
    let mut files = files.into_iter();
    let missing = || (String::from("the order to start"), io::Error::from_raw_os_error(libc::EPROTO));
    let task: Task = wire::read_file(files.next().ok_or_else(missing)?).map_err(at("the task"))?;
    let (program, arguments) = task.command.split_first().ok_or_else(missing)?;

    limit(&task).map_err(at("the limits"))?;
    let workdir = OsStr::from_bytes(&task.workdir);
    std::env::set_current_dir(workdir).map_err(|e| (workdir.to_string_lossy().into_owned(), e))?;

    let mut command = Command::new(OsStr::from_bytes(program));
    command.args(arguments.iter().map(|a| OsStr::from_bytes(a)));
    command.env_clear().envs(task.env);
    let mut stream = || match terminal {
        Some(terminal) => terminal.try_clone().map(Stdio::from).map_err(at("the terminal")),
        None => files.next().map(Stdio::from).ok_or_else(missing),
    };
    command.stdin(stream()?).stdout(stream()?).stderr(stream()?);
    let child = command.spawn().map_err(|e| (String::from_utf8_lossy(program).into_owned(), e))?;
    Pid::from_raw(child.id().cast_signed()).ok_or_else(missing)
}

/// Takes on the limits that the command inherits.
fn limit(task: &Task) -> io::Result<()> {
    let set = |resource, n: u64| {
        rustix::process::setrlimit(resource, Rlimit { current: Some(n), maximum: Some(n) }).map_err(io::Error::from)
    };
    set(Resource::Core, 0)?;
    if task.data > 0 {
        // Data, not address space, is what stands for memory: runtimes reserve far more addresses than they use. The
        // wide bound on addresses is for shared mappings, which data leaves out.
        set(Resource::Data, task.data)?;
        set(Resource::As, task.data.saturating_mul(8))?;
    }
    if task.processes > 0 {
        set(Resource::Nproc, task.processes)?;
    }
    Ok(())
}

/// Passes signals on to the command, from a thread of its own. When the outside is gone, ends the sandbox.
fn obey(control: Arc<OwnedFd>, main: OwnedFd) -> io::Result<()> {
    let work = move || {
        while let Ok(Some(wire::Received { message: Order::Signal(number), .. })) = wire::receive(&control) {
            if let Some(signal) = Signal::from_named_raw(number) {
                let _ = rustix::process::pidfd_send_signal(&main, signal);
            }
        }
        std::process::exit(i32::from(BROKEN));
    };
    std::thread::Builder::new().name(String::from("orders")).spawn(work).map(drop)
}

/// Reaps every child until `main` is one of them; returns its status and the signal that ended it, or 0.
fn reap_until(main: Pid) -> io::Result<(i32, i32)> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == main => {
                return Ok((status.exit_status().unwrap_or(0), status.terminating_signal().unwrap_or(0)));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}
