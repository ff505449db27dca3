//! The talk between the two halves of a sandbox, over a pair of sockets that keep message boundaries.
//!
//! A command that took over process 1 could say anything here: messages are bounded, files are counted, and what arrives
//! can only end the sandbox that it came from.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::MemfdFlags;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Seek, Write};
use std::mem::MaybeUninit;

/// The longest message. What can be longer travels as a file.
const LONGEST: usize = 4096;
/// The most files in one message.
const MOST_FILES: usize = 4;

/// What the outer half says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Become the builder of the sandbox. File: the [`Blueprint`]. Answered from inside only, once it is built.
    Build,
    /// Open what the outside will serve: answered by `Ready`.
    Prepare { port: Option<u16>, proxy: bool, tty: bool },
    /// Run the command. Files: the [`Task`], then standard input, output and error, unless there is a terminal.
    Start,
    /// Send the command a signal.
    Signal(i32),
}

/// What the inner half says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// Files, each if it was asked for: the store's listener, the proxy's listener, the terminal's outer end.
    Ready { proxy_port: u16 },
    /// The command runs.
    Started,
    /// The command cannot run.
    Failed { what: String, errno: i32 },
    /// The command ended with a status, or by a signal.
    Exited { code: i32, signal: i32 },
}

/// The builder's program and arguments.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Blueprint {
    pub(crate) program: Vec<u8>,
    pub(crate) steps: Vec<Step>,
}

/// One argument of the builder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// This text.
    Text(Vec<u8>),
    /// The number of an open file with these bytes.
    Data(Vec<u8>),
    /// The number of `rest`, opened beneath `base` without following a symbolic link. With `by_path` the path that this
    /// led to, for builders that take no number.
    Beneath { base: Vec<u8>, rest: Vec<u8>, by_path: bool },
}

/// The command and its environment: a file of its own, because it may be long and holds secrets that belong neither on a
/// command line nor in the environment of process 1.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) command: Vec<Vec<u8>>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) workdir: Vec<u8>,
    /// Bytes of data each process may hold, where no control group bounds the sandbox. 0: no limit.
    pub(crate) data: u64,
    /// Processes the user may have, where no control group bounds the sandbox. 0: no limit.
    pub(crate) processes: u64,
}

/// A message with the files that came with it, and the sender as the receiver numbers it, if asked for.
#[derive(Debug)]
pub(crate) struct Received<T> {
    pub(crate) message: T,
    pub(crate) files: Vec<OwnedFd>,
    pub(crate) sender: Option<rustix::process::Pid>,
}

/// Writes `value` to a file in memory, to be sent along.
pub(crate) fn file<T: Serialize>(value: &T) -> io::Result<OwnedFd> {
    memory_file(&serde_json::to_vec(value)?)
}

/// Makes a file in memory with `bytes`, positioned at its start.
pub(crate) fn memory_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("sandbox", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// Reads a value that was sent along as a file.
pub(crate) fn read_file<T: for<'a> Deserialize<'a>>(file: OwnedFd) -> io::Result<T> {
    Ok(serde_json::from_reader(io::BufReader::new(File::from(file)))?)
}

/// Makes the pair: the outer and the inner end. The outer learns who sends.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (outer, inner) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    rustix::net::sockopt::set_socket_passcred(&outer, true)?;
    Ok((outer, inner))
}

/// Sends one message.
pub(crate) fn send<T: Serialize>(socket: impl AsFd, message: &T, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many files in one message"));
    }
    rustix::io::retry_on_intr(|| {
        // A peer that is gone is an error here, never a SIGPIPE.
        sendmsg(&socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)
    })?;
    Ok(())
}

/// Waits for one message. `None`: the other half is gone.
pub(crate) fn receive<T: for<'a> Deserialize<'a>>(socket: impl AsFd) -> io::Result<Option<Received<T>>> {
    let mut bytes = [0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES), ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::io::retry_on_intr(|| {
        recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)
    });
    let got = match got {
        Ok(got) => got,
        Err(rustix::io::Errno::CONNRESET) => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    let mut files = Vec::new();
    let mut sender = None;
    for part in control.drain() {
        match part {
            RecvAncillaryMessage::ScmRights(these) => files.extend(these),
            RecvAncillaryMessage::ScmCredentials(who) => sender = Some(who.pid),
            _ => {}
        }
    }
    if got.bytes == 0 {
        return Ok(None);
    }
    Ok(Some(Received { message: serde_json::from_slice(&bytes[..got.bytes])?, files, sender }))
}
