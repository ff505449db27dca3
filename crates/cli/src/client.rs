//! The client of the control plane: one signed request a call, over HTTP, or HTTPS where the endpoint says so.
//!
//! A server that was found by its directory may leave between two commands; then it is looked for again, once, and only
//! before anything was sent. Proxies of the environment are not used: the server is this machine's, or named outright.

use crate::endpoint::{self, Found};
use crate::failure::{Failure, Result};
use crate::transport::{broken, dial, send};
use crate::trust::Connection;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use mw_env::Env;
use mw_http::body::{self, Body, Sink};
use mw_http::sigv4;
use mw_http::types::ErrorReply;
use mw_http::uri;
use mw_model::ErrorKind;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use tokio::runtime::Runtime;

/// The largest JSON answer, in bytes.
const MAX_ANSWER: usize = 1 << 30;

/// Names and values of a query.
pub type Query<'a> = &'a [(&'a str, Vec<u8>)];

/// A connection to a server, made anew for each call.
#[derive(Debug)]
pub struct Client {
    /// Gone only while it is dropped.
    runtime: Option<Runtime>,
    env: Env,
    found: Mutex<Found>,
    /// The directory whose server this is; `None` when it was named outright.
    dir: Option<PathBuf>,
}

/// What goes into a request beside its address.
struct Content {
    body: Body,
    hash: String,
    kind: &'static str,
    idempotency: Option<String>,
    /// Other headers, which are not signed.
    headers: Vec<(String, String)>,
}

impl Content {
    fn nothing() -> Self {
        Self::of(Vec::new())
    }

    fn of(bytes: Vec<u8>) -> Self {
        let hash = sigv4::sha256_hex(&bytes);
        Self { body: body::full(bytes), hash, kind: "application/json", idempotency: None, headers: Vec::new() }
    }

    fn json(document: &impl Serialize, idempotency: Option<&str>) -> Result<Self> {
        let bytes =
            serde_json::to_vec(document).map_err(|e| Failure::new(ErrorKind::Io, format!("the request: {e}")))?;
        Ok(Self { idempotency: idempotency.map(str::to_owned), ..Self::of(bytes) })
    }
}

impl Client {
    /// Finds the server of this command: the one that `$MW_ENDPOINT` names, else that of the directory, which is started when
    /// it does not run.
    ///
    /// # Errors
    /// No server can be reached or started, or there is no key for it.
    pub fn connect(dir: PathBuf) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|e| Failure::io("cannot start", e))?;
        let env = Env::real();
        let named = endpoint::named(&dir)?;
        let (found, dir) = match named {
            Some(found) => (found, None),
            None => (endpoint::of_dir(&dir, &runtime, &env)?, Some(dir)),
        };
        Ok(Self { runtime: Some(runtime), env, found: Mutex::new(found), dir })
    }

    /// Returns the server's address and the key in use.
    pub fn found(&self) -> Found {
        self.found.lock().clone()
    }

    /// Returns the runtime on which streams are read.
    pub fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap_or_else(|| unreachable!("the runtime goes last"))
    }

    /// Asks for a document.
    ///
    /// # Errors
    /// The server refused or cannot be reached.
    pub fn get<T: DeserializeOwned>(&self, path: &str, query: Query<'_>) -> Result<T> {
        self.document(Method::GET, path, query, Content::nothing())
    }

    /// Sends a document.
    ///
    /// # Errors
    /// The server refused or cannot be reached.
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        document: &impl Serialize,
        idempotency: Option<&str>,
    ) -> Result<T> {
        self.document(Method::POST, path, &[], Content::json(document, idempotency)?)
    }

    /// Sends plain bytes.
    ///
    /// # Errors
    /// The server refused or cannot be reached.
    pub fn post_bytes<T: DeserializeOwned>(&self, path: &str, query: Query<'_>, bytes: Vec<u8>) -> Result<T> {
        let hash = sigv4::sha256_hex(&bytes);
        let content = Content {
            body: body::full(bytes),
            hash,
            kind: "application/octet-stream",
            idempotency: None,
            headers: Vec::new(),
        };
        self.document(Method::POST, path, query, content)
    }

    /// Deletes a thing.
    ///
    /// # Errors
    /// The server refused or cannot be reached.
    pub fn delete<T: DeserializeOwned>(&self, path: &str, query: Query<'_>) -> Result<T> {
        self.document(Method::DELETE, path, query, Content::nothing())
    }

    /// Sends a document and returns the answer with its status, also when it is a refusal.
    ///
    /// # Errors
    /// The server cannot be reached, or the answer is no document of this kind.
    pub fn post_raw<T: DeserializeOwned>(&self, path: &str, document: &impl Serialize) -> Result<T> {
        let response = self.exchange(&Method::POST, path, &[], Content::json(document, None)?)?;
        let refused = !response.status().is_success();
        let bytes = self.whole(response)?;
        serde_json::from_slice(&bytes).map_err(|e| match serde_json::from_slice::<ErrorReply>(&bytes) {
            Ok(reply) if refused => Failure::told(reply.error),
            _ => Failure::new(
                ErrorKind::Io,
                format!("the server's answer is not understood ({e}); use one version of mw on both sides"),
            ),
        })
    }

    /// Sends a message of MCP to `path`, with `headers` beside it, and returns the answer, which is empty when there is none.
    ///
    /// # Errors
    /// The server refused or cannot be reached. A refusal in MCP's own terms is an answer.
    pub fn message(&self, path: &str, message: Vec<u8>, headers: &[(&str, &str)]) -> Result<Bytes> {
        let mut content = Content::of(message);
        content.headers = vec![("accept".to_owned(), "application/json, text/event-stream".to_owned())];
        content.headers.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let response = self.request(&Method::POST, path.to_owned(), &[], content)?;
        let status = response.status();
        let bytes = self.whole(response)?;
        match serde_json::from_slice::<ErrorReply>(&bytes) {
            Ok(reply) if !status.is_success() => Err(Failure::told(reply.error)),
            _ => Ok(bytes),
        }
    }

    /// Asks for a stream.
    ///
    /// # Errors
    /// The server refused or cannot be reached.
    pub fn stream(&self, method: &Method, path: &str, query: Query<'_>) -> Result<Reading<'_>> {
        let response = self.exchange(method, path, query, Content::nothing())?;
        let response = self.fine(response)?;
        Ok(Reading { client: self, body: response.into_body(), current: Bytes::new() })
    }

    /// Posts a document and asks for a stream.
    ///
    /// # Errors
    /// The server refused or cannot be reached.
    pub fn stream_of(&self, path: &str, query: Query<'_>, document: &impl Serialize) -> Result<Reading<'_>> {
        let response = self.exchange(&Method::POST, path, query, Content::json(document, None)?)?;
        let response = self.fine(response)?;
        Ok(Reading { client: self, body: response.into_body(), current: Bytes::new() })
    }

    /// Sends what `producer` makes, as it makes it, and returns the answer.
    ///
    /// # Errors
    /// The server refused or cannot be reached.
    pub fn upload<T: DeserializeOwned>(
        &self,
        path: &str,
        query: Query<'_>,
        producer: impl FnOnce(Sink) + Send + 'static,
    ) -> Result<T> {
        let body = {
            let _inside = self.runtime().enter();
            body::produce(producer)
        };
        let content = Content {
            body,
            hash: sigv4::UNSIGNED.to_owned(),
            kind: "application/x-manyworlds-tree",
            idempotency: None,
            headers: Vec::new(),
        };
        self.document(Method::PUT, path, query, content)
    }

    fn document<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: Query<'_>,
        content: Content,
    ) -> Result<T> {
        let response = self.exchange(&method, path, query, content)?;
        let response = self.fine(response)?;
        let bytes = self.whole(response)?;
        serde_json::from_slice(&bytes).map_err(|e| {
            Failure::new(
                ErrorKind::Io,
                format!("the server's answer is not understood ({e}); use one version of mw on both sides"),
            )
        })
    }

    fn whole(&self, response: Response<Incoming>) -> Result<Bytes> {
        let limited = http_body_util::Limited::new(response.into_body(), MAX_ANSWER);
        let body = self.runtime().block_on(limited.collect()).map_err(|e| broken(&*e))?;
        Ok(body.to_bytes())
    }

    /// Lets a success through, and makes a failure of everything else.
    fn fine(&self, response: Response<Incoming>) -> Result<Response<Incoming>> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let bytes = self.whole(response)?;
        Err(match serde_json::from_slice::<ErrorReply>(&bytes) {
            Ok(reply) => Failure::told(reply.error),
            Err(_) => strange(status),
        })
    }

    fn exchange(&self, method: &Method, path: &str, query: Query<'_>, content: Content) -> Result<Response<Incoming>> {
        self.request(method, format!("/-/v1/{path}"), query, content)
    }

    fn request(&self, method: &Method, path: String, query: Query<'_>, content: Content) -> Result<Response<Incoming>> {
        let stream = self.open()?;
        let found = self.found();
        let query: Vec<(&str, &[u8])> = query.iter().map(|(name, value)| (*name, value.as_slice())).collect();
        let query = uri::query(&query);
        let signed = sigv4::sign(
            &found.credentials,
            "auto",
            sigv4::Request { method: method.as_str(), path: &path, query: &query },
            &[("host", &found.authority)],
            &content.hash,
            self.env.now(),
        )?;
        let target = if query.is_empty() { path } else { format!("{path}?{query}") };
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header("host", &found.authority)
            .header("content-type", content.kind)
            .header("user-agent", concat!("mw/", env!("CARGO_PKG_VERSION")));
        for (name, value) in signed {
            request = request.header(name, value);
        }
        for (name, value) in &content.headers {
            request = request.header(name, value);
        }
        if let Some(key) = &content.idempotency {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(content.body).map_err(|e| Failure::usage(format!("this cannot be sent: {e}")))?;
        self.runtime().block_on(send(stream, request))
    }

    /// Returns the server with the root key as its directory has it now: it may have got a new secret since the last call.
    fn fresh(&self) -> Found {
        let mut found = self.found.lock();
        if let Some(key) = self.dir.as_deref().and_then(|dir| endpoint::key(dir).ok()) {
            found.credentials = key;
        }
        found.clone()
    }

    /// Opens a connection. The server of a directory that has left is started again.
    fn open(&self) -> Result<Connection> {
        let found = self.fresh();
        match self.runtime().block_on(dial(&found.authority, found.trust.as_ref())) {
            Err(Failure::Unreachable(_)) if self.dir.is_some() => {
                let dir = self.dir.clone().unwrap_or_default();
                let found = endpoint::of_dir(&dir, self.runtime(), &self.env)?;
                let stream = self.runtime().block_on(dial(&found.authority, found.trust.as_ref()))?;
                *self.found.lock() = found;
                Ok(stream)
            }
            other => other,
        }
    }
}

fn strange(status: StatusCode) -> Failure {
    Failure::new(ErrorKind::Io, format!("the server answered {status} without a reason; is it a manyworlds server?"))
}

impl Drop for Client {
    fn drop(&mut self) {
        // A producer that waits for standard input would be waited for, although nobody wants its bytes any more.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A stream that is being read.
#[derive(Debug)]
pub struct Reading<'a> {
    client: &'a Client,
    body: Incoming,
    current: Bytes,
}

impl Reading<'_> {
    /// Waits for the next piece; `None` at the end.
    ///
    /// # Errors
    /// The stream broke off.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(broken(&error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Reads line after line of JSON, and hands each to `each`.
    ///
    /// # Errors
    /// The stream broke off, a line is not understood, or `each` failed.
    pub fn lines<T: DeserializeOwned>(mut self, mut each: impl FnMut(T) -> Result<()>) -> Result<()> {
        let mut rest = Vec::new();
        while let Some(piece) = self.client.runtime().block_on(self.next())? {
            take_lines(&mut rest, &piece, &mut each)?;
        }
        Ok(())
    }
}

/// Adds `piece` to the `rest` of a line and hands each whole line to `each`.
pub fn take_lines<T: DeserializeOwned>(
    rest: &mut Vec<u8>,
    piece: &[u8],
    each: &mut impl FnMut(T) -> Result<()>,
) -> Result<()> {
    rest.extend_from_slice(piece);
    let mut start = 0;
    while let Some(at) = rest[start..].iter().position(|&b| b == b'\n') {
        let line = &rest[start..start + at];
        start += at + 1;
        let document = serde_json::from_slice(line)
            .map_err(|e| Failure::new(ErrorKind::Io, format!("the server's stream is not understood ({e})")))?;
        each(document)?;
    }
    rest.drain(..start);
    Ok(())
}

impl std::io::Read for Reading<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.current.is_empty() {
            let client = self.client;
            match client.runtime().block_on(self.next()).map_err(std::io::Error::other)? {
                None => return Ok(0),
                Some(piece) => self.current = piece,
            }
        }
        let n = out.len().min(self.current.len());
        out[..n].copy_from_slice(&self.current.split_to(n));
        Ok(n)
    }
}
