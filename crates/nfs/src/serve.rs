//! Connections: a listener on loopback, a few threads for each client, and a bound on everything that a client can make grow.

use crate::handle::Realm;
use crate::mount::{self, MOUNT, PORTMAP};
use crate::openings::Openings;
use crate::procedures::{self, NFS};
use crate::replay::{self, Replay};
use crate::rpc::{self, Head, Refusal};
use crate::shared::{MAX_DATA, Shared};
use crate::xdr::{Reader, Writer};
use bytes::Bytes;
use mw_world::Session;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest call: a write and its head.
const MAX_CALL: usize = MAX_DATA + 4096;
/// How many calls of one client are worked on at the same time.
const WORKERS: usize = 4;
/// How many clients are served at the same time.
const MAX_CLIENTS: usize = 64;
/// Marks the last fragment of a record (RFC 5531, section 11).
const LAST: u32 = 1 << 31;

/// How a world is exported.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// Refuse every change.
    pub read_only: bool,
    /// Names this life of the server: clients send again what they had not had committed in another one.
    pub life: u64,
}

/// An exported world. Dropping it ends the export and cuts its clients off.
#[derive(Debug)]
pub struct Export {
    shared: Arc<Shared>,
    address: SocketAddr,
    listener: TcpListener,
    /// The thread that accepts clients.
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How long nothing is done between two looks at clients that are to leave.
const LOOK: Duration = Duration::from_millis(1);

/// Exports a world to this machine. Whoever reaches the port acts with the session's key.
///
/// # Errors
/// The port is taken, or no thread can be started.
pub fn export(session: Session, options: &Options) -> io::Result<Export> {
    export_on(TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?, session, options)
}

/// Exports a world on a port that is listened on already, whatever the options say of one: [`Export::listener`] of another server.
///
/// # Errors
/// No thread can be started.
pub fn export_on(listener: TcpListener, session: Session, options: &Options) -> io::Result<Export> {
    let address = listener.local_addr()?;
    let version = session.version();
    let shared = Arc::new(Shared {
        realm: Realm { world: session.world_id(), version: version.map_or(0, |version| version.0) },
        read_only: options.read_only || version.is_some(),
        session,
        port: address.port(),
        life: options.life,
        replay: Replay::default(),
        openings: Openings::default(),
        closed: AtomicBool::new(false),
        clients: Mutex::new(HashMap::new()),
    });
    let export = Export { shared, address, listener, thread: Mutex::default() };
    export.begin()?;
    Ok(export)
}

impl Export {
    /// Returns where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether clients can only read.
    pub fn is_read_only(&self) -> bool {
        self.shared.read_only
    }

    fn begin(&self) -> io::Result<()> {
        let (listener, shared) = (self.listener.try_clone()?, self.shared.clone());
        let thread = std::thread::Builder::new().name("nfs".to_owned()).spawn(move || accept(&listener, &shared))?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// Accepts nobody any more, and has the calls under way answered, for at most `limit`; then connections end. Clients connect
    /// again, and wait until somebody accepts.
    pub fn pause(&self, limit: Duration) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.wake();
        if let Some(thread) = self.thread.lock().take() {
            // It cannot panic over a client, who has a thread of his own.
            let _ = thread.join();
        }
        self.end_clients(Shutdown::Read);
        let env = self.shared.session.store().env();
        let until = env.monotonic() + u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        while self.clients() > 0 && env.monotonic() < until {
            env.sleep(LOOK);
        }
        self.end_clients(Shutdown::Both);
    }

    /// Undoes [`Export::pause`].
    ///
    /// # Errors
    /// No thread can be started.
    pub fn go_on(&self) -> io::Result<()> {
        self.shared.closed.store(false, Ordering::SeqCst);
        self.begin()
    }

    /// Returns another descriptor of what it listens on.
    ///
    /// # Errors
    /// Those of the system.
    pub fn listener(&self) -> io::Result<TcpListener> {
        self.listener.try_clone()
    }

    fn end_clients(&self, how: Shutdown) {
        for client in self.shared.clients.lock().values() {
            // One that is gone already needs no end.
            let _ = client.shutdown(how);
        }
    }

    /// Wakes the thread that accepts, which then sees that it is over.
    fn wake(&self) {
        let _ = TcpStream::connect(self.address);
    }

    /// Returns how many clients are connected.
    pub fn clients(&self) -> usize {
        self.shared.clients.lock().len()
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.end_clients(Shutdown::Both);
        self.wake();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    for stream in listener.incoming() {
        if shared.closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let local = stream.peer_addr().is_ok_and(|peer| peer.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST));
        let mut clients = shared.clients.lock();
        if !local || clients.len() >= MAX_CLIENTS {
            tracing::warn!(clients = clients.len(), "an NFS client was turned away");
            continue;
        }
        let Ok(copy) = stream.try_clone() else { continue };
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        clients.insert(number, copy);
        drop(clients);
        let work = {
            let shared = shared.clone();
            move || {
                if let Err(error) = client(&shared, stream) {
                    tracing::debug!(%error, "an NFS client is gone");
                }
                shared.clients.lock().remove(&number);
            }
        };
        if std::thread::Builder::new().name("nfs-client".to_owned()).spawn(work).is_err() {
            shared.clients.lock().remove(&number);
        }
    }
}

/// Serves one client until it leaves.
fn client(shared: &Arc<Shared>, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let answers = Mutex::new(stream.try_clone()?);
    let (calls, queue) = sync_channel::<Bytes>(WORKERS);
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| work(shared, &queue, &answers));
        }
        // The sender goes with this block, and the workers with it.
        let calls = calls;
        loop {
            match read_call(&mut stream)? {
                Some(call) if !shared.closed.load(Ordering::SeqCst) => {
                    if calls.send(call).is_err() {
                        return Ok(());
                    }
                }
                _ => return Ok(()),
            }
        }
    })
}

fn work(shared: &Shared, queue: &Mutex<Receiver<Bytes>>, answers: &Mutex<TcpStream>) {
    loop {
        let call = queue.lock().recv();
        let Ok(call) = call else { return };
        let Some(answer) = answer(shared, call) else { continue };
        let mut stream = answers.lock();
        let head = (answer.len() as u32 | LAST).to_be_bytes();
        if stream.write_all(&head).and_then(|()| stream.write_all(&answer)).is_err() {
            // The reader finds out, and ends.
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

/// Reads the fragments of a call; none at the end of the connection.
fn read_call(stream: &mut TcpStream) -> io::Result<Option<Bytes>> {
    let mut call = Vec::new();
    loop {
        let mut head = [0; 4];
        match stream.read_exact(&mut head) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof && call.is_empty() => return Ok(None),
            Err(e) => return Err(e),
        }
        let head = u32::from_be_bytes(head);
        let len = (head & !LAST) as usize;
        if len > MAX_CALL - call.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a call of {len} bytes or more")));
        }
        let start = call.len();
        call.resize(start + len, 0);
        stream.read_exact(&mut call[start..])?;
        if head & LAST != 0 {
            return Ok(Some(call.into()));
        }
    }
}

/// Does a call and returns its answer; none for what is no call.
fn answer(shared: &Shared, message: Bytes) -> Option<Vec<u8>> {
    let mut r = Reader::new(message.clone());
    let call = match rpc::call(&mut r) {
        Ok(call) => call,
        Err(Head::NoCall) => return None,
        Err(Head::Version(xid)) => return Some(rpc::mismatch(xid)),
    };
    let once = (call.program == NFS && procedures::changes(call.procedure)).then(|| replay::name(call.xid, &message));
    if let Some(before) = once.and_then(|name| shared.replay.answer(name)) {
        return Some(before);
    }
    let mut w: Writer = rpc::done(call.xid);
    let done = match call.program {
        NFS => procedures::answer(shared, &call, &mut r, &mut w),
        MOUNT => mount::mount(shared, &call, &mut r, &mut w),
        PORTMAP => mount::portmap(shared, &call, &mut r, &mut w),
        _ => Err(Refusal::NoProgram),
    };
    if let Err(why) = done {
        return Some(rpc::refused(call.xid, why));
    }
    if let Some(name) = once {
        shared.replay.keep(name, &w.0);
    }
    Some(w.0)
}
