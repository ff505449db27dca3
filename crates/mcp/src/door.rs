//! [`McpDoor`]: MCP over streamable HTTP (specification of 2025-11-25, *Transports*).
//!
//! There are no sessions: each request carries its key and is answered for itself, with one JSON document. So nothing is to be kept,
//! stolen or lost in a restart. The caller is verified before a request comes here.

use crate::bound::Bound;
use crate::server::Server;
use bytes::Bytes;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use hyper::{Request, Response};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::sync::Arc;

/// The largest request, in bytes: room for the largest content of a write in base64.
pub const MAX_REQUEST: usize = 16 << 20;

/// The MCP door. Cheap to clone.
#[derive(Clone)]
pub struct McpDoor(StreamableHttpService<Server, NeverSessionManager>);

impl std::fmt::Debug for McpDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("McpDoor")
    }
}

impl Default for McpDoor {
    fn default() -> Self {
        // Whoever has no key gets nothing here, so that a page of another origin has nothing to gain by a name that leads to this
        // address; hosts are the caller's to check.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .disable_allowed_hosts()
            .with_max_request_body_bytes(MAX_REQUEST);
        let server = Server::default();
        Self(StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config))
    }
}

impl McpDoor {
    /// Answers one request of a caller whose tools are bound.
    pub async fn call(&self, bound: Bound, request: Request<Bytes>) -> Response<BoxBody<Bytes, Infallible>> {
        let mut request = request.map(Full::new);
        request.extensions_mut().insert(Arc::new(bound));
        self.0.handle(request).await
    }
}
