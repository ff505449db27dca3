//! `mw mcp`: MCP over standard input and output, for clients that start their servers.
//!
//! The tools are the server's (`/-/mcp`). This only carries messages: one a line in, one a line out, each a signed request of its own,
//! so that a server that was restarted in between is not noticed.

use super::Context;
use crate::client::Client;
use crate::failure::{DONE, Failure, Result};
use crate::output::Output;
use clap::Args;
use serde_json::{Value, json};
use std::io::BufRead;
use std::sync::{Condvar, Mutex, PoisonError};

/// The longest message, in bytes.
const LONGEST: u64 = 16 << 20;
/// How many requests are under way at a time.
const PARALLEL: usize = 8;
/// Where a message says which version of the protocol it follows (specification of 2026-07-28).
const VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// Serve the tools of one world to an MCP client, over standard input and output
#[derive(Debug, Args)]
pub struct Mcp {
    /// The world; left out: the only one that the key reaches
    #[arg(long, value_name = "WORLD")]
    world: Option<String>,
}

impl Mcp {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let client = context.client()?;
        let path = match &self.world {
            None => "/-/mcp".to_owned(),
            Some(world) => format!("/-/mcp/{}", mw_http::uri::encode(world.as_bytes(), false)),
        };
        // Refused here, a wrong world or key is shown to a person, and not only to a model.
        let ping = json!({"jsonrpc": "2.0", "id": 0, "method": "ping"});
        client.message(&path, ping.to_string().into_bytes(), &[])?;
        let room = Room::default();
        let mut lines = std::io::stdin().lock();
        std::thread::scope(|scope| {
            while let Some(line) = next(&mut lines)? {
                let Some(line) = line else {
                    // Whoever sent it may go on; only this one message has no answer but this.
                    show(
                        context.out,
                        &refusal(&Value::Null, -32600, &format!("a message has at most {LONGEST} bytes")),
                    );
                    continue;
                };
                let place = room.enter();
                let (client, path, out) = (&client, &path, context.out);
                scope.spawn(move || {
                    carry(client, path, &line, out);
                    drop(place);
                });
            }
            Ok(DONE)
        })
    }
}

/// Returns the next line that is not empty; none at the end, and in place of one that is too long.
fn next(lines: &mut impl BufRead) -> Result<Option<Option<Vec<u8>>>> {
    loop {
        let mut line = Vec::new();
        let limited = &mut std::io::Read::take(&mut *lines, LONGEST + 1);
        let read = limited.read_until(b'\n', &mut line).map_err(|e| Failure::io("standard input", e))?;
        if read as u64 > LONGEST {
            if line.last() != Some(&b'\n') {
                lines.skip_until(b'\n').map_err(|e| Failure::io("standard input", e))?;
            }
            return Ok(Some(None));
        }
        if read == 0 {
            return Ok(None);
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(Some(line.trim_ascii().to_vec())));
        }
    }
}

/// Carries one message to the server, and its answer back.
fn carry(client: &Client, path: &str, line: &[u8], out: &Output) {
    let message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(e) => return show(out, &refusal(&Value::Null, -32700, &format!("the line is no JSON: {e}"))),
    };
    let id = message.get("id").cloned();
    let headers = headers(&message);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    match client.message(path, line.to_vec(), &headers) {
        // A notification has no answer.
        Ok(answer) if answer.trim_ascii().is_empty() => {}
        Ok(answer) => match serde_json::from_slice::<Value>(&answer) {
            Ok(answer) => show(out, &answer),
            Err(_) => show(out, &refusal(&id.unwrap_or_default(), -32603, &String::from_utf8_lossy(&answer))),
        },
        Err(failure) => {
            if let Some(id) = id {
                show(out, &refusal(&id, -32603, &failure.to_string()));
            }
        }
    }
}

/// Returns the headers that the newest version of the protocol wants beside a message; older ones want none.
fn headers(message: &Value) -> Vec<(&'static str, String)> {
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let Some(version) = text(VERSION) else { return Vec::new() };
    let mut headers = vec![("mcp-protocol-version", version)];
    headers.extend(text("/method").map(|method| ("mcp-method", method)));
    headers.extend(text("/params/name").map(|name| ("mcp-name", name)));
    headers
}

fn refusal(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

fn show(out: &Output, message: &Value) {
    let mut line = message.to_string();
    line.push('\n');
    out.bytes(line.as_bytes());
}

/// How many requests are under way.
#[derive(Default)]
struct Room {
    taken: Mutex<usize>,
    left: Condvar,
}

impl Room {
    /// Waits for a place.
    fn enter(&self) -> Place<'_> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = self.left.wait_while(taken, |taken| *taken >= PARALLEL).unwrap_or_else(PoisonError::into_inner);
        *taken += 1;
        Place(self)
    }
}

/// One of them.
struct Place<'a>(&'a Room);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.left.notify_one();
    }
}
