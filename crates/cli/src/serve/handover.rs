//! What a server hands over to the program that takes its place in the same process: descriptors, and a letter that says what they are.
//!
//! Both travel in the messages of a socket that is the new program's standard input: nothing lies on the disk, no descriptor is left open in
//! anybody else, and when the new program cannot be run nothing has changed. The old standard input travels along.
//!
//! The letter has a version. A program says which it reads ([`ASK`]) before anything is handed over to it.

use super::listen::Kept;
use super::mounts::HandedMount;
use crate::failure::{Failure, Result};
use mw_http::types::Restart;
use mw_model::ErrorKind;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The first argument that makes this program say what it can take over.
pub const ASK: &str = "can-take-over";
/// The argument of `mw serve` that has it take over from the program that this process was.
pub const FLAG: &str = "--handover";
/// How many descriptors travel in one message (the kernel takes 253).
const AT_ONCE: usize = 128;

/// What the descriptors are, and what was in memory alone.
#[derive(Debug, Serialize, Deserialize)]
pub struct Letter {
    /// [`Letter::VERSION`] of who wrote it.
    pub version: u32,
    /// The life of the server, which goes on.
    pub instance: String,
    /// The life that clients of exports know: all that they wrote is on disk.
    pub life: u64,
    /// What to tell whoever asked for the restart.
    pub restart: Restart,
    /// When clients began to wait, in nanoseconds since 1970.
    pub since: u64,
    /// Whether there is a second listener, without TLS.
    pub inner: bool,
    /// The mounts.
    pub mounts: Vec<HandedMount>,
    /// The ports of the exports.
    pub exports: Vec<u16>,
    /// Connections that wait for their next request.
    pub connections: Vec<Connection>,
}

/// A connection that waits for its next request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Connection {
    /// It came to the listener that speaks TLS.
    pub tls: bool,
    /// What was read of the request.
    pub read: Vec<u8>,
}

impl Letter {
    /// The version that this program writes, and the newest it reads.
    pub const VERSION: u32 = 2;
    /// The oldest that it reads.
    pub const OLDEST: u32 = 1;
}

/// The descriptors that a letter speaks of, in order.
pub struct Bundle<'a> {
    /// The lock of the directory.
    pub lock: BorrowedFd<'a>,
    pub listener: BorrowedFd<'a>,
    pub inner: Option<BorrowedFd<'a>>,
    pub mounts: Vec<BorrowedFd<'a>>,
    pub exports: Vec<BorrowedFd<'a>>,
    pub connections: Vec<BorrowedFd<'a>>,
}

/// Standard input while it is the socket; dropped, it is again what it was.
pub struct Delivery {
    before: OwnedFd,
}

/// Puts a letter and its descriptors into what becomes standard input.
///
/// # Errors
/// There is no memory, or there are too many descriptors.
pub fn deliver(letter: &Letter, bundle: &Bundle<'_>) -> Result<Delivery> {
    let failed = |e: std::io::Error| Failure::io("the hand-over cannot be prepared", e);
    let mut paper = File::from(memfd_create("mw-handover", MemfdFlags::CLOEXEC).map_err(|e| failed(e.into()))?);
    let text = serde_json::to_vec(letter).map_err(|e| failed(e.into()))?;
    paper.write_all(&text).map_err(failed)?;
    let (ours, its) = UnixStream::pair().map_err(failed)?;
    // What does not fit is refused, not waited for: nobody reads yet.
    ours.set_nonblocking(true).map_err(failed)?;
    let before = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    send(&ours, &[paper.as_fd()]).map_err(failed)?;
    let mut all = vec![before.as_fd(), bundle.lock, bundle.listener];
    all.extend(bundle.inner);
    all.extend(bundle.mounts.iter().chain(&bundle.exports).chain(&bundle.connections));
    for some in all.chunks(AT_ONCE) {
        send(&ours, some).map_err(failed)?;
    }
    rustix::stdio::dup2_stdin(&its).map_err(|e| failed(e.into()))?;
    Ok(Delivery { before })
}

impl Drop for Delivery {
    fn drop(&mut self) {
        // The server reads nothing from it.
        let _ = rustix::stdio::dup2_stdin(&self.before);
    }
}

fn send(socket: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> std::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(std::io::Error::other("too many descriptors for one message"));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// What was handed over.
pub struct Inheritance {
    pub letter: Letter,
    /// The lock of the directory.
    pub lock: File,
    /// The listener that clients know, and the second one; taken once.
    pub listeners: Option<(TcpListener, Option<TcpListener>)>,
    /// The device of each mount of the letter.
    pub devices: Vec<OwnedFd>,
    pub exports: BTreeMap<u16, TcpListener>,
    /// The stream of each connection of the letter.
    streams: Vec<TcpStream>,
}

impl Inheritance {
    /// Returns the connections that wait for their next request.
    pub fn connections(&mut self) -> Vec<Kept> {
        let streams = std::mem::take(&mut self.streams).into_iter().zip(std::mem::take(&mut self.letter.connections));
        streams
            .filter_map(|(stream, Connection { tls, read })| {
                // One that cannot be used any more is gone, and its client asks again.
                let stream =
                    stream.set_nonblocking(true).and_then(|()| tokio::net::TcpStream::from_std(stream)).ok()?;
                Some(Kept { stream, tls, read: read.into() })
            })
            .collect()
    }
}

/// Takes what is in standard input, and gives the program its standard input back.
///
/// # Errors
/// It holds no hand-over, or one that this program does not read.
pub fn receive() -> Result<Inheritance> {
    let wrong = |why: &str| {
        Failure::new(
            ErrorKind::Invalid,
            format!("there is nothing to take over on standard input ({why}); leave {} out", FLAG),
        )
    };
    let stdin = std::io::stdin();
    let mut paper =
        take(&stdin, 1).map_err(|e| wrong(&e.to_string()))?.pop().map(File::from).ok_or_else(|| wrong("no letter"))?;
    let mut text = Vec::new();
    paper.rewind().and_then(|()| paper.read_to_end(&mut text)).map_err(|e| wrong(&e.to_string()))?;
    let letter: Letter = serde_json::from_slice(&text).map_err(|e| wrong(&e.to_string()))?;
    if !(Letter::OLDEST..=Letter::VERSION).contains(&letter.version) {
        return Err(wrong(&format!("version {}", letter.version)));
    }
    let count = 3 + usize::from(letter.inner) + letter.mounts.len() + letter.exports.len() + letter.connections.len();
    let mut all = take(&stdin, count).map_err(|e| wrong(&e.to_string()))?.into_iter();
    let mut next = || all.next().ok_or_else(|| wrong("a descriptor is missing"));
    let before = next()?;
    let (lock, listener) = (File::from(next()?), TcpListener::from(next()?));
    let inner = if letter.inner { Some(TcpListener::from(next()?)) } else { None };
    let devices = letter.mounts.iter().map(|_| next()).collect::<Result<_>>()?;
    let exports = letter.exports.iter().map(|port| Ok((*port, TcpListener::from(next()?)))).collect::<Result<_>>()?;
    let streams = letter.connections.iter().map(|_| Ok(TcpStream::from(next()?))).collect::<Result<_>>()?;
    rustix::stdio::dup2_stdin(&before).map_err(|e| wrong(&e.to_string()))?;
    Ok(Inheritance { letter, lock, listeners: Some((listener, inner)), devices, exports, streams })
}

/// Takes `count` descriptors.
fn take(socket: impl AsFd, count: usize) -> std::io::Result<Vec<OwnedFd>> {
    let mut taken = Vec::with_capacity(count);
    while taken.len() < count {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(&mut byte)], &mut control, flags)?;
        let before = taken.len();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                taken.extend(descriptors);
            }
        }
        if taken.len() == before {
            return Err(std::io::Error::other("a message without descriptors"));
        }
    }
    Ok(taken)
}
