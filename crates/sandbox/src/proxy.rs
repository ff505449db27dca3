//! The one way out of a sandbox that is not the store: an HTTP proxy (RFC 9110 section 9.3.6 for `CONNECT`, RFC 9112
//! section 3.2.2 for plain requests) that goes to the destinations it was given and nowhere else.
//!
//! A name is resolved once, outside, and its address is pinned for the life of the sandbox: a name that later turns to
//! another address leads nowhere new. An address inside the operator's own network is refused, whatever its name.

pub(crate) mod address;
mod request;

use crate::relay::{Answer, CONNECT, Open};
use crate::spec::Destination;
use parking_lot::Mutex;
use request::{Request, Target};
use std::collections::HashMap;
use std::fmt::Debug;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(30);

/// Turns names into addresses, and says which addresses a sandbox may reach.
pub trait Resolve: Send + Sync + Debug {
    /// Looks `host` up, a name or a literal address.
    ///
    /// # Errors
    /// Those of the resolver.
    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;

    /// Says whether a sandbox may reach `address`. Tests that run their own server open its address here; anything else
    /// keeps to [`crate::is_public`].
    fn permits(&self, address: IpAddr) -> bool {
        address::is_public(address)
    }
}

/// The machine's own resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok((host, 0).to_socket_addrs()?.map(|a| a.ip()).collect())
    }
}

/// The proxy of one sandbox.
#[derive(Debug)]
pub(crate) struct Proxy {
    allow: Vec<Destination>,
    resolve: Arc<dyn Resolve>,
    pinned: Mutex<HashMap<Destination, SocketAddr>>,
}

/// What the proxy answers when it does not connect.
#[derive(Debug)]
struct Refusal {
    status: &'static str,
    why: String,
}

impl Refusal {
    fn new(status: &'static str, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }
}

impl Proxy {
    /// Makes a proxy that goes to `allow` alone.
    pub(crate) fn new(allow: Vec<Destination>, resolve: Arc<dyn Resolve>) -> Self {
        Self { allow, resolve, pinned: Mutex::default() }
    }

    /// Returns the address of `wanted`, the same one each time.
    fn address_of(&self, wanted: &Destination) -> Result<SocketAddr, Refusal> {
        if !self.allow.contains(wanted) {
            return Err(Refusal::new("403 Forbidden", format!("{wanted} is not among the allowed destinations")));
        }
        // Held over the look-up, so that two first connections cannot pin two addresses.
        let mut pinned = self.pinned.lock();
        if let Some(address) = pinned.get(wanted) {
            return Ok(*address);
        }
        let found = self
            .resolve
            .resolve(&wanted.host)
            .map_err(|e| Refusal::new("502 Bad Gateway", format!("{wanted} cannot be resolved: {e}")))?;
        if found.is_empty() {
            return Err(Refusal::new("502 Bad Gateway", format!("{wanted} has no address")));
        }
        // A name that leads into the operator's network as well as out of it is refused whole: nobody means both.
        if let Some(inner) = found.iter().find(|a| !self.resolve.permits(**a)) {
            return Err(Refusal::new("403 Forbidden", format!("{wanted} is {inner}, which is not a public address")));
        }
        let address = SocketAddr::new(found[0], wanted.port);
        pinned.insert(wanted.clone(), address);
        Ok(address)
    }

    fn open(&self, wanted: &Destination) -> Result<TcpStream, Refusal> {
        let address = self.address_of(wanted)?;
        TcpStream::connect_timeout(&address, CONNECT)
            .map_err(|e| Refusal::new("502 Bad Gateway", format!("{wanted} does not answer: {e}")))
    }
}

impl Answer for Proxy {
    fn answer(&self, inside: &TcpStream, open: &Arc<Open>) -> io::Result<()> {
        inside.set_read_timeout(Some(PATIENCE))?;
        let parsed = match Request::read(&mut &*inside)? {
            Ok(request) => request,
            Err(why) => return refuse(inside, &Refusal::new("400 Bad Request", why)),
        };
        inside.set_read_timeout(None)?;
        let mut outside = match self.open(&parsed.destination) {
            Ok(outside) => outside,
            Err(refusal) => {
                tracing::info!(destination = %parsed.destination, why = refusal.why, "a sandbox was refused a way out");
                return refuse(inside, &refusal);
            }
        };
        match &parsed.target {
            Target::Tunnel => (&mut &*inside).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
            Target::Plain { head } => outside.write_all(head)?,
        }
        // What the client sent after its head belongs to the destination.
        outside.write_all(&parsed.rest)?;
        open.join(inside, &outside)
    }
}

fn refuse(mut inside: &TcpStream, refusal: &Refusal) -> io::Result<()> {
    let Refusal { status, why } = refusal;
    let length = why.len() + 1;
    write!(
        inside,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{why}\n"
    )?;
    inside.shutdown(std::net::Shutdown::Write)
}

#[cfg(test)]
mod tests;
