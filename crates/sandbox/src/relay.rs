//! Serves a listener that lives in a sandbox's network namespace from outside of it: each connection is answered by a
//! thread of the host. This is the sandbox's only network.
//!
//! It does not know what the bytes mean. When it is dropped, every connection is cut.

use mw_env::Env;
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The most sockets of one sandbox at a time, two for each connection; more are closed as they come.
const MOST: usize = 512;
/// How long to let things settle when the process has no file descriptor left for the next connection.
const BREATH: Duration = Duration::from_millis(50);
/// How long a connection to outside may take.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);

/// Answers one connection from inside, to its end.
pub(crate) trait Answer: Send + Sync + 'static {
    /// Serves `inside`. The socket to outside goes through `open`, so that it can be cut.
    fn answer(&self, inside: &TcpStream, open: &Arc<Open>) -> io::Result<()>;
}

/// Carries every connection to one address.
pub(crate) struct To(pub(crate) SocketAddr);

impl Answer for To {
    fn answer(&self, inside: &TcpStream, open: &Arc<Open>) -> io::Result<()> {
        let outside = TcpStream::connect_timeout(&self.0, CONNECT)?;
        open.join(inside, &outside)
    }
}

/// The sockets of one sandbox that are open now.
#[derive(Debug, Default)]
pub(crate) struct Open {
    sockets: Mutex<(u64, HashMap<u64, TcpStream>)>,
    cut: AtomicBool,
}

impl Open {
    /// Remembers `socket` until the returned guard goes. `None`: too many, or everything is being cut.
    fn enter(self: &Arc<Self>, socket: &TcpStream) -> Option<Guard> {
        let ours = socket.try_clone().ok()?;
        let mut sockets = self.sockets.lock();
        if self.cut.load(Ordering::Relaxed) || sockets.1.len() >= MOST {
            return None;
        }
        sockets.0 += 1;
        let id = sockets.0;
        sockets.1.insert(id, ours);
        Some(Guard { open: Arc::clone(self), id })
    }

    /// Carries bytes both ways until both have ended. Each end of stream is passed on alone.
    pub(crate) fn join(self: &Arc<Self>, inside: &TcpStream, outside: &TcpStream) -> io::Result<()> {
        let _guard = self.enter(outside).ok_or(io::ErrorKind::ConnectionAborted)?;
        let _ = inside.set_nodelay(true);
        let _ = outside.set_nodelay(true);
        let (mut back_from, mut back_to) = (outside.try_clone()?, inside.try_clone()?);
        let back = std::thread::Builder::new()
            .name(String::from("sandbox-relay"))
            .spawn(move || carry(&mut back_from, &mut back_to))?;
        carry(&mut inside.try_clone()?, &mut outside.try_clone()?);
        let _ = back.join();
        Ok(())
    }

    fn cut_all(&self) {
        let sockets = self.sockets.lock();
        self.cut.store(true, Ordering::Relaxed);
        for socket in sockets.1.values() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Carries one direction, and passes its end on.
fn carry(from: &mut TcpStream, to: &mut TcpStream) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(n) if to.write_all(&bytes[..n]).is_ok() => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // One side is broken: nothing more can be said to the other, so it hears of it at once.
            Ok(_) | Err(_) => {
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.shutdown(Shutdown::Both);
                return;
            }
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Keeps one socket among those that are open.
struct Guard {
    open: Arc<Open>,
    id: u64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.open.sockets.lock().1.remove(&self.id);
    }
}

/// A listener that is being served.
#[derive(Debug)]
pub(crate) struct Relay {
    listener: Arc<TcpListener>,
    open: Arc<Open>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Serves `listener` until dropped.
    pub(crate) fn start(listener: OwnedFd, answer: Arc<dyn Answer>, env: Env) -> io::Result<Self> {
        let listener = Arc::new(TcpListener::from(listener));
        let open = Arc::new(Open::default());
        let work = {
            let (listener, open) = (Arc::clone(&listener), Arc::clone(&open));
            move || serve(&listener, &open, &answer, &env)
        };
        let thread = std::thread::Builder::new().name(String::from("sandbox-listen")).spawn(work)?;
        Ok(Self { listener, open, thread: Some(thread) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.open.cut_all();
        // A shut listener lets its `accept` go with an error.
        let _ = rustix::net::shutdown(&*self.listener, rustix::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, open: &Arc<Open>, answer: &Arc<dyn Answer>, env: &Env) {
    loop {
        let inside = match listener.accept() {
            Ok((inside, _)) => inside,
            // The connection was gone before it was taken.
            Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => continue,
            Err(e) if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                tracing::warn!(error = %e, "a connection from a sandbox has to wait");
                env.sleep(BREATH);
                continue;
            }
            Err(e) => {
                if !open.cut.load(Ordering::Relaxed) {
                    tracing::warn!(error = %e, "a sandbox lost its network");
                }
                return;
            }
        };
        let Some(guard) = open.enter(&inside) else { continue };
        let answer = Arc::clone(answer);
        let work = move || {
            if let Err(e) = answer.answer(&inside, &guard.open) {
                tracing::debug!(error = %e, "a connection from a sandbox ended early");
                let _ = inside.shutdown(Shutdown::Both);
            }
        };
        // Without a thread the connection is closed, which the command sees.
        let _ = std::thread::Builder::new().name(String::from("sandbox-relay")).spawn(work);
    }
}
