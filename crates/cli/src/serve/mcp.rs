//! `/-/mcp` and `/-/mcp/WORLD`: who calls, and which world the tools are bound to, before the MCP door answers.
//!
//! A request is signed like one of the control plane, or carries its key as a bearer token: over TLS, or from this machine.

use super::listen::Peer;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use mw_http::{Body, ControlDoor, Error, Result, bearer, body, error, sigv4, uri};
use mw_mcp::{Bound, McpDoor, Share};
use mw_model::ErrorKind;
use mw_model::text::path_text;
use mw_s3::Presign;
use mw_world::{Principal, Store};
use std::sync::Arc;

/// Where the door is.
const PATH: &str = "/-/mcp";

/// The MCP door with what stands before it.
#[derive(Clone)]
pub struct Mcp {
    store: Arc<Store>,
    control: ControlDoor,
    door: McpDoor,
    public_url: Option<String>,
    encrypted_url: Option<String>,
}

impl Mcp {
    /// Puts the door before `store`; `control` verifies signatures.
    pub fn new(
        store: Arc<Store>,
        control: ControlDoor,
        public_url: Option<String>,
        encrypted_url: Option<String>,
    ) -> Self {
        Self { store, control, door: McpDoor::default(), public_url, encrypted_url }
    }

    /// Returns whether a path is this door's.
    pub fn takes(path: &str) -> bool {
        path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Answers a request; failures are answers too.
    pub async fn call(&self, request: Request<Incoming>) -> Response<Body> {
        match self.answer(request).await {
            Ok(response) => response,
            Err((status, error)) => refuse(status, &error),
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> std::result::Result<Response<Body>, (StatusCode, Error)> {
        let judged = |error: Error| (error::status(error.kind()), error);
        let (parts, content) = request.into_parts();
        let world = world(parts.uri.path()).map_err(judged)?;
        need_own_origin(&parts).map_err(judged)?;
        let unknown = |error: Error| match error.kind() {
            ErrorKind::Denied => (StatusCode::UNAUTHORIZED, error),
            _ => judged(error),
        };
        let (who, payload) = self.identify(&parts).await.map_err(unknown)?;
        let mut content: Body = content.map_err(Into::into).boxed_unsync();
        let document = body::collect(&mut content, mw_mcp::door::MAX_REQUEST).await.map_err(judged)?;
        if let Some(payload) = payload {
            payload.check(&document).map_err(|e| judged(e.into()))?;
        }
        let share = Arc::new(Presigned { store: self.store.clone(), token: token(&parts) });
        let (store, base) = (self.store.clone(), self.base(&parts));
        let bound = tokio::task::spawn_blocking(move || Bound::new(store, who, world.as_deref(), base, share)).await;
        let bound = bound.unwrap_or_else(|e| Err(mw_world::Error::new(ErrorKind::Io, e.to_string())));
        let bound = bound.map_err(|e| judged(e.into()))?;
        let response = self.door.call(bound, Request::from_parts(parts, document)).await;
        Ok(response.map(|body| body.map_err(|never| match never {}).boxed_unsync()))
    }

    /// Returns who calls, and the payload that was signed.
    async fn identify(&self, parts: &Parts) -> Result<(Principal, Option<sigv4::Payload>)> {
        let value = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some(credentials) = value.and_then(bearer::credentials) else {
            let (who, payload) = self.control.identify(parts).await?;
            return Ok((who, Some(payload)));
        };
        let peer = parts.extensions.get::<Peer>();
        let private = peer.is_some_and(|peer| peer.tls || peer.address.ip().is_loopback());
        let proxied = self.public_url.as_ref().is_some_and(|url| url.starts_with("https://"));
        if !private && !proxied {
            return Err(Error::new(
                ErrorKind::Denied,
                "a bearer token is not taken over an open network; serve with --tls, or sign the request with AWS Signature Version 4",
            ));
        }
        let (store, credentials) = (self.store.clone(), credentials.to_owned());
        let verified = tokio::task::spawn_blocking(move || bearer::verify(&store, &credentials)).await;
        let who = verified.unwrap_or_else(|e| Err(Error::new(ErrorKind::Io, e.to_string())))?;
        Ok((who.speaking_from(peer.map(|peer| peer.address.ip())), None))
    }

    /// Returns the address under which the caller reached the server, or the encrypted one when it came beside that.
    fn base(&self, parts: &Parts) -> String {
        let tls = parts.extensions.get::<Peer>().is_some_and(|peer| peer.tls);
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        match (&self.public_url, &self.encrypted_url) {
            (Some(url), _) => url.clone(),
            (None, _) if tls => format!("https://{host}"),
            (None, Some(url)) => url.clone(),
            (None, None) => format!("http://{host}"),
        }
    }
}

/// Returns the world that a path names.
fn world(path: &str) -> Result<Option<String>> {
    let rest = path.strip_prefix(PATH).unwrap_or_default().trim_matches('/');
    if rest.is_empty() {
        return Ok(None);
    }
    // What is no name of a world is refused like one that the key may not reach.
    let name = uri::decode(rest)?;
    Ok(Some(String::from_utf8_lossy(&name).into_owned()))
}

/// Refuses a page of another site: it has no business here, even if it should know a key.
fn need_own_origin(parts: &Parts) -> Result<()> {
    let Some(origin) = parts.headers.get(ORIGIN) else { return Ok(()) };
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let own = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
    if own.is_some() && own == host {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Denied, "the request comes from a page of another origin; call from a program"))
}

fn refuse(status: StatusCode, error: &Error) -> Response<Body> {
    tracing::debug!(%status, %error, "MCP request refused");
    let mut response = Response::new(body::full(serde_json::to_vec(&error.reply()).unwrap_or_default()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"manyworlds\""));
    }
    response
}

/// Returns the session token that came with a request.
fn token(parts: &Parts) -> Option<String> {
    let value = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    match value.and_then(bearer::credentials) {
        Some(credentials) => bearer::token(credentials).map(str::to_owned),
        None => sigv4::token(&parts.headers).ok().flatten().map(str::to_owned),
    }
}

/// Presigned URLs of the S3 door, with the session token of the caller's key, where it has one.
struct Presigned {
    store: Arc<Store>,
    token: Option<String>,
}

impl Share for Presigned {
    fn url(&self, who: &Principal, base: &str, world: &str, key: &[u8], seconds: u64) -> mw_world::Result<String> {
        let id = who.key_id().to_owned();
        let secret = self.store.secret(&id)?.ok_or_else(mw_world::Error::denied)?;
        // The S3 door reads keys in the same text.
        let (key, now) = (path_text(key), self.store.env().now());
        let (method, version, token) = ("GET", None, self.token.as_deref());
        let (id, secret) = (&id, &secret);
        let ask = Presign { base, method, bucket: world, key: &key, version, id, secret, token, now, expires: seconds };
        Ok(mw_s3::presign(&ask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mw_env::Env;
    use mw_http::Hosts;
    use mw_world::Options;

    /// A bearer token is the secret itself: it is taken from this machine, over TLS, and behind a proxy that speaks TLS, and nowhere else.
    #[test]
    #[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    fn a_bearer_token_is_refused_over_an_open_network() {
        let (meta, segments) = (Arc::new(mw_meta::Memory::new()), Arc::new(mw_segments::Memory::new()));
        let options = Options { background: false, ..Options::default() };
        let store = Store::open(meta, segments, Env::seeded(1), options).unwrap();
        let key = store.root_key().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let identify = |address: &str, tls: bool, public: Option<&str>, header: &str| {
            let control = ControlDoor::new(store.clone(), Hosts::default(), "test".to_owned());
            let mcp = Mcp::new(store.clone(), control, public.map(str::to_owned), None);
            let request = Request::post("/-/mcp").header(AUTHORIZATION, header).body(()).unwrap();
            let (mut parts, ()) = request.into_parts();
            parts.extensions.insert(Peer { address: address.parse().unwrap(), tls });
            runtime.block_on(mcp.identify(&parts)).map(|(who, _)| who.key_id().to_owned())
        };
        let right = format!("Bearer {}:{}", key.id, key.secret);
        for (address, tls, public, taken) in [
            ("127.0.0.1:9", false, None, true),
            ("[::1]:9", false, None, true),
            ("192.0.2.1:9", true, None, true),
            ("192.0.2.1:9", false, Some("https://mw.example"), true),
            ("192.0.2.1:9", false, Some("http://mw.example"), false),
            ("192.0.2.1:9", false, None, false),
            ("[2001:db8::1]:9", false, None, false),
        ] {
            let who = identify(address, tls, public, &right);
            match taken {
                true => assert_eq!(who.unwrap(), key.id, "{address} {tls} {public:?}"),
                false => {
                    let error = who.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Denied);
                    assert!(error.to_string().contains("open network"), "{error}");
                    // Also a wrong one: whether it is right is not told there.
                    let wrong = identify(address, tls, public, "Bearer nobody:x").unwrap_err();
                    assert_eq!(wrong.to_string(), error.to_string());
                }
            }
        }
    }
}
