//! The listener: a bounded number of connections, each with bounds on what a slow client can hold.
//!
//! It knows neither S3 nor the control plane; what a request means is the router's to say.

use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use mw_http::Body;
use std::convert::Infallible;
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
pub trait Router: Clone + Send + Sync + 'static {
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

/// How many connections there are.
#[derive(Debug, Clone, Default)]
pub struct Open(Arc<AtomicUsize>);

impl Open {
    /// Returns how many connections there are.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// One of them, counted until it is dropped.
struct Counted(Open);

impl Counted {
    fn new(open: &Open) -> Self {
        open.0.fetch_add(1, Ordering::Relaxed);
        Self(open.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts connections until `stop` says so, then no more; those there are finish their request and end.
///
/// With an acceptor they are encrypted.
pub async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: impl Router,
    open: Open,
    mut stop: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        match accepted {
            Ok((stream, address)) => {
                let (peer, tls) = (Peer { address, tls: tls.is_some() }, tls.clone());
                let counted = Counted::new(&open);
                let (router, stop) = (router.clone(), stop.clone());
                tokio::spawn(async move {
                    connect(stream, tls, peer, router, stop).await;
                    drop((counted, place));
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: wait for some to come back instead of spinning.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connect(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    peer: Peer,
    router: impl Router,
    stop: watch::Receiver<bool>,
) {
    // Answers are often small; where it cannot be set they are only slower.
    let _ = stream.set_nodelay(true);
    let unread = Unread::default();
    let Some(tls) = tls else {
        return serve(Patient::new(stream, unread.clone()), peer, router, unread, stop).await;
    };
    match tokio::time::timeout(HANDSHAKE, secure(stream, unread.clone(), &tls)).await {
        Ok(Ok(stream)) => serve(stream, peer, router, unread, stop).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection did not come to TLS"),
        Err(_) => tracing::debug!("a client took too long to agree on TLS"),
    }
}

/// Agrees on TLS with a client. One that speaks plain HTTP is told so.
async fn secure(
    stream: TcpStream,
    unread: Unread,
    tls: &TlsAcceptor,
) -> std::io::Result<impl AsyncRead + AsyncWrite + Unpin> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    let mut stream = Patient::new(stream, unread);
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

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: Peer,
    router: impl Router,
    unread: Unread,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        let router = router.clone();
        // Conditions on the client's address look at this, never at what a header claims.
        request.extensions_mut().insert(peer.address);
        request.extensions_mut().insert(peer);
        let (content, unread) = (!request.body().is_end_stream(), unread.clone());
        async move {
            let answer = router.answer(request).await;
            let refused = answer.status().is_client_error() || answer.status().is_server_error();
            unread.0.store(content && refused, Ordering::Relaxed);
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        _ = stop.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Whether the last request on a connection was refused and may have content that nobody read.
#[derive(Clone, Default)]
struct Unread(Arc<AtomicBool>);

/// A stream that gives up on a peer that does not take what is written to it, and that hears a peer out whose request was refused.
struct Patient {
    stream: TcpStream,
    limit: Pin<Box<Sleep>>,
    waiting: bool,
    unread: Unread,
    /// How much may still be read and forgotten, once the stream is shut down.
    lingering: Option<u64>,
}

impl Patient {
    fn new(stream: TcpStream, unread: Unread) -> Self {
        Self { stream, limit: Box::pin(tokio::time::sleep(STALL)), waiting: false, unread, lingering: None }
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
        Pin::new(&mut self.stream).poll_read(context, out)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
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
            let unread = self.unread.0.load(Ordering::Relaxed);
            self.lingering = Some(if unread { LINGER } else { 0 });
            self.limit.as_mut().reset(Instant::now() + LINGER_TIME);
        }
        self.linger(context).map(Ok)
    }
}
