//! The listener: a bounded number of connections, each with bounds on what a slow client can hold.
//!
//! It knows neither S3 nor the control plane; what a request means is the router's to say.
//!
//! When the program is about to be another one, connections between two requests are kept for that ([`Kept`]).

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use mw_http::Body;
use parking_lot::Mutex;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;

/// How many connections are served at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 4_096;
/// How long a client may take for the head of a request.
const HEAD: Duration = Duration::from_secs(30);
/// How long a client may take to agree on TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may take to receive what is ready for it.
const STALL: Duration = Duration::from_secs(120);
/// The most that is received at once, and the longest head of a request, in bytes.
const BUFFER: usize = 256 << 10;
/// How much of what a client still sends is read and forgotten after its request was refused, and for how long: a socket that is closed
/// over unread bytes resets, and the client loses the answer that says why.
const LINGER: u64 = 64 << 20;
const LINGER_TIME: Duration = Duration::from_secs(5);

/// Answers a request.
pub trait Router: Clone + Send + Sync + Unpin + 'static {
    /// Answers a request; failures are answers too.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;
}

/// Who is at the other end of the connection that a request came on; every request has it among its extensions.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stop {
    /// Go on.
    #[default]
    No,
    /// The server leaves.
    Leave,
    /// Another program is about to take over.
    Restart,
}

/// A connection between two requests, for whoever answers the next one.
#[derive(Debug)]
pub struct Kept {
    pub stream: TcpStream,
    /// It came to the listener that speaks TLS, and has not begun to.
    pub tls: bool,
    /// What was read of the next request.
    pub read: Bytes,
}

/// The connections that there are.
#[derive(Debug, Clone, Default)]
pub struct Open(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    count: AtomicUsize,
    kept: Mutex<Vec<Kept>>,
}

impl Open {
    /// Returns how many connections there are.
    pub fn count(&self) -> usize {
        self.0.count.load(Ordering::SeqCst)
    }

    /// Returns the connections that were kept.
    pub fn kept(&self) -> &Mutex<Vec<Kept>> {
        &self.0.kept
    }
}

/// One of them, counted until it is dropped.
struct Counted(Open);

impl Counted {
    fn new(open: &Open) -> Self {
        open.0.count.fetch_add(1, Ordering::SeqCst);
        Self(open.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.count.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Serves the connections that were kept and those that come, until `stop` says so; then accepts no more and returns the listener. Those there are
/// finish their request and end, or are kept.
///
/// With an acceptor they are encrypted.
pub async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: impl Router,
    open: Open,
    mut stop: watch::Receiver<Stop>,
) -> TcpListener {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut kept: Vec<_> = open.kept().lock().extract_if(.., |kept| kept.tls == tls.is_some()).collect();
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return listener };
        let (stream, read) = match kept.pop() {
            Some(kept) => (kept.stream, kept.read),
            None => {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    _ = stop.changed() => return listener,
                };
                match accepted {
                    Ok((stream, _)) => (stream, Bytes::new()),
                    Err(error) => {
                        // Out of descriptors, most likely: wait for some to come back instead of spinning.
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                }
            }
        };
        // One that is gone already has no address.
        let Ok(address) = stream.peer_addr() else { continue };
        let (peer, tls) = (Peer { address, tls: tls.is_some() }, tls.clone());
        let counted = Counted::new(&open);
        let (router, stop) = (router.clone(), stop.clone());
        tokio::spawn(async move {
            if let Some(kept) = connect(stream, read, tls, peer, router, stop).await {
                counted.0.kept().lock().push(kept);
            }
            drop((counted, place));
        });
    }
}

/// Serves a connection; returns it when it is to be kept.
async fn connect(
    stream: TcpStream,
    read: Bytes,
    tls: Option<TlsAcceptor>,
    peer: Peer,
    router: impl Router,
    mut stop: watch::Receiver<Stop>,
) -> Option<Kept> {
    // Answers are often small; where it cannot be set they are only slower.
    let _ = stream.set_nodelay(true);
    let signs = Signs::default();
    let Some(tls) = tls else {
        let (patient, read) = serve(Patient::new(stream, read, signs.clone()), peer, router, signs, stop).await?;
        return Some(Kept { stream: patient.stream, tls: false, read });
    };
    tokio::select! {
        _ = stream.readable() => {}
        _ = stop.changed() => return (*stop.borrow() == Stop::Restart).then_some(Kept { stream, tls: true, read }),
    }
    match tokio::time::timeout(HANDSHAKE, secure(stream, signs.clone(), &tls)).await {
        // What is agreed on with this program is of no use to another.
        Ok(Ok(stream)) => {
            if let Some((mut stream, _)) = serve(stream, peer, router, signs, stop).await {
                let _ = stream.shutdown().await;
            }
        }
        Ok(Err(error)) => tracing::debug!(%error, "a connection did not come to TLS"),
        Err(_) => tracing::debug!("a client took too long to agree on TLS"),
    }
    None
}

/// Agrees on TLS with a client. One that speaks plain HTTP is told so.
async fn secure(
    stream: TcpStream,
    signs: Signs,
    tls: &TlsAcceptor,
) -> std::io::Result<impl AsyncRead + AsyncWrite + Unpin> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    let mut stream = Patient::new(stream, Bytes::new(), signs);
    if first[0].is_ascii_alphabetic() {
        stream.write_all(PLAIN).await?;
        stream.shutdown().await?;
        return Err(std::io::Error::other("the client speaks plain HTTP"));
    }
    tls.accept(stream).await
}

/// What a client hears that speaks plain HTTP to an encrypted listener.
const PLAIN: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nThis port speaks TLS; \
use https://\n";

/// Serves a stream to its end. One that is between two requests when another program is about to take over is returned, with what was read of the next
/// one.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    peer: Peer,
    router: impl Router,
    signs: Signs,
    mut stop: watch::Receiver<Stop>,
) -> Option<(S, Bytes)> {
    let service = {
        let signs = signs.clone();
        service_fn(move |mut request: Request<Incoming>| {
            let router = router.clone();
            // Conditions on the client's address look at this, never at what a header claims.
            request.extensions_mut().insert(peer.address);
            request.extensions_mut().insert(peer);
            let (content, signs) = (!request.body().is_end_stream(), signs.clone());
            Box::pin(async move {
                let answer = router.answer(request).await;
                let refused = answer.status().is_client_error() || answer.status().is_server_error();
                signs.0.unread.store(content && refused, Ordering::Relaxed);
                Ok::<_, Infallible>(answer)
            })
        })
    };
    let mut connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut keep = false;
    let outcome = tokio::select! {
        outcome = poll_fn(|context| connection.poll_without_shutdown(context)) => outcome,
        _ = stop.changed() => {
            signs.0.written.store(false, Ordering::Relaxed);
            Pin::new(&mut connection).graceful_shutdown();
            // A connection that waits for a request is over at once, without a word to the client.
            match poll_fn(|context| Poll::Ready(connection.poll_without_shutdown(context))).await {
                Poll::Ready(outcome) => {
                    let silent = outcome.is_ok() && !signs.0.written.load(Ordering::Relaxed);
                    keep = silent && *stop.borrow() == Stop::Restart;
                    outcome
                }
                Poll::Pending => poll_fn(|context| connection.poll_without_shutdown(context)).await,
            }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended early");
    }
    let parts = connection.into_parts();
    let mut stream = parts.io.into_inner();
    if keep {
        return Some((stream, parts.read_buf));
    }
    if let Err(error) = stream.shutdown().await {
        tracing::debug!(%error, "a connection ended early");
    }
    None
}

/// What a connection knows of its stream.
#[derive(Clone, Default)]
struct Signs(Arc<Seen>);

#[derive(Default)]
struct Seen {
    /// The last request was refused and may have content that nobody read.
    unread: AtomicBool,
    /// Something was written.
    written: AtomicBool,
}

/// A stream that gives up on a peer that does not take what is written to it, and that hears a peer out whose request was refused.
struct Patient {
    stream: TcpStream,
    limit: Pin<Box<Sleep>>,
    waiting: bool,
    signs: Signs,
    /// What somebody else has read of it.
    before: Bytes,
    /// How much may still be read and forgotten, once the stream is shut down.
    lingering: Option<u64>,
}

impl Patient {
    fn new(stream: TcpStream, before: Bytes, signs: Signs) -> Self {
        Self { stream, limit: Box::pin(tokio::time::sleep(STALL)), waiting: false, signs, before, lingering: None }
    }

    /// Reads and forgets what comes, until the peer has heard and ends, or has had its time.
    fn linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 16 << 10];
        while let Some(left) = self.lingering.filter(|left| *left > 0) {
            let mut piece = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.stream).poll_read(context, &mut piece) {
                Poll::Ready(Ok(())) if !piece.filled().is_empty() => {
                    self.lingering = Some(left.saturating_sub(piece.filled().len() as u64));
                }
                Poll::Ready(_) => break,
                Poll::Pending => {
                    std::task::ready!(self.limit.as_mut().poll(context));
                    break;
                }
            }
        }
        Poll::Ready(())
    }

    /// Starts the clock at the first write that must wait, and stops it at one that need not.
    fn judge<T>(&mut self, context: &mut Context<'_>, outcome: Poll<std::io::Result<T>>) -> Poll<std::io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = false;
            return outcome;
        }
        if !self.waiting {
            self.waiting = true;
            self.limit.as_mut().reset(Instant::now() + STALL);
        }
        match self.limit.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(std::io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if !self.before.is_empty() {
            let len = self.before.len().min(out.remaining());
            out.put_slice(&self.before.split_to(len));
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, out)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.signs.0.written.store(true, Ordering::Relaxed);
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        self.signs.0.written.store(true, Ordering::Relaxed);
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.judge(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        if self.lingering.is_none() {
            std::task::ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            let unread = self.signs.0.unread.load(Ordering::Relaxed);
            self.lingering = Some(if unread { LINGER } else { 0 });
            self.limit.as_mut().reset(Instant::now() + LINGER_TIME);
        }
        self.linger(context).map(Ok)
    }
}
