//! One connection to a server, and one request over it.

use crate::failure::{Failure, Result};
use crate::trust::{Connection, Trust};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use mw_http::body::Body;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// Connects to `HOST:PORT`, encrypted when there is something to trust.
pub async fn dial(authority: &str, trust: Option<&Trust>) -> Result<Connection> {
    let unreachable = |why: &str| {
        Failure::Unreachable(format!("cannot reach the server at {authority}: {why}; is `mw serve` running there?"))
    };
    let stream = tokio::time::timeout(CONNECT, TcpStream::connect(authority))
        .await
        .map_err(|_| unreachable("no answer"))?
        .map_err(|e| unreachable(&e.to_string()))?;
    // Small requests must not wait for each other's acknowledgements; where that cannot be set it is only slower.
    let _ = stream.set_nodelay(true);
    let Some(trust) = trust else { return Ok(Box::new(stream)) };
    tokio::time::timeout(CONNECT, trust.secure(stream, authority))
        .await
        .map_err(|_| unreachable("no answer to TLS"))?
        .map_err(|e| untrusted(authority, &e))
}

fn untrusted(authority: &str, error: &std::io::Error) -> Failure {
    Failure::Unreachable(format!(
        "cannot speak TLS with the server at {authority}: {error}; if the certificate is from a local authority, trust it: AWS_CA_BUNDLE=DIR/tls/ca.pem, where DIR is the server's directory"
    ))
}

/// Sends a request and returns the head of the answer.
pub async fn send(stream: Connection, request: Request<Body>) -> Result<Response<Incoming>> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| broken(&e))?;
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(|e| broken(&e))
}

/// Makes a failure of a connection that broke off.
pub fn broken(error: &(dyn std::error::Error + 'static)) -> Failure {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    Failure::Unreachable(format!(
        "the connection to the server broke off ({text}); it is not known whether the command was carried out"
    ))
}
