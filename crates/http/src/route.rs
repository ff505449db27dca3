//! From a method, a path and a query to a verb, without I/O. Everything that is not a verb is refused here, by name.

use crate::types::Spot;
use crate::{Error, Result, uri};
use bytes::Bytes;
use hyper::Method;
use mw_model::ErrorKind;

/// The prefix of all that is not a world.
pub const PREFIX: &str = "/-/";

/// A place in a world, from a path and a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At {
    /// The world and the instant.
    pub spot: Spot,
    /// The path in it.
    pub path: Bytes,
}

/// A verb with what its path and query say.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each name is that of its command")]
pub enum Verb {
    Health,
    Schema,
    Status,
    Fsck,
    Gc,
    Restart,
    LastRestart,
    Worlds,
    CreateWorld,
    ShowWorld { world: String },
    DeleteWorld { world: String, force: bool },
    Fork { base: String },
    Snapshots { world: String },
    TakeSnapshot { world: String },
    DeleteSnapshot { world: String, version: String },
    Usage { spot: Spot },
    Quota { world: String },
    SetQuota { world: String },
    Retention { world: String },
    SetRetention { world: String },
    Log { spot: Spot, path: Option<Bytes>, limit: usize, before: Option<u64> },
    Diff { from: Spot, to: Spot },
    Promote { fork: String, watch: bool },
    Rebase { fork: String, watch: bool },
    StopMerge { fork: String },
    Revert { world: String },
    Restore { world: String },
    Discard { fork: String },
    Keys,
    CreateKey,
    DeleteKey { id: String },
    RotateKey { id: String },
    CreateTemporaryKey,
    Mounts,
    Mount,
    Unmount,
    Exports,
    Export,
    Unexport { port: u16 },
    Runs,
    StartRun,
    ShowRun { id: String },
    CancelRun { id: String },
    WatchRun { id: String },
    TypeToRun { id: String, end: bool, size: Option<(u16, u16)> },
    List { at: At, recursive: bool, hidden: bool },
    Content { at: At },
    Get { at: At },
    Put { at: At, name: Option<Bytes> },
    Remove { world: String },
    Copy,
    Move,
}

/// Reads a number that travels as a string.
///
/// # Errors
/// `Invalid`, naming `what`.
pub fn number(what: &str, text: &str) -> Result<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(|| Error::invalid(format!("{what} {text:?} is not a number from 0 to {}", u64::MAX)))
}

/// The pairs of a query; each may be taken once, and none may be left.
struct Query(Vec<(Vec<u8>, Vec<u8>)>);

impl Query {
    fn bytes(&mut self, name: &str) -> Result<Option<Bytes>> {
        let mut found = None;
        while let Some(at) = self.0.iter().position(|(given, _)| given == name.as_bytes()) {
            if found.replace(Bytes::from(self.0.swap_remove(at).1)).is_some() {
                return Err(Error::invalid(format!("the parameter {name} is given twice")));
            }
        }
        Ok(found)
    }

    fn text(&mut self, name: &str) -> Result<Option<String>> {
        let Some(value) = self.bytes(name)? else { return Ok(None) };
        String::from_utf8(value.into())
            .map(Some)
            .map_err(|_| Error::invalid(format!("the parameter {name} is not UTF-8")))
    }

    fn flag(&mut self, name: &str) -> Result<bool> {
        match self.text(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("" | "true") => Ok(true),
            Some(other) => Err(Error::invalid(format!("{name}={other:?} is neither true nor false"))),
        }
    }

    fn spot(&mut self, name: &str) -> Result<Spot> {
        let text = self
            .text(name)?
            .ok_or_else(|| Error::invalid(format!("the parameter {name} is missing; give WORLD or WORLD@VERSION")))?;
        Ok(Spot::parse(&text))
    }

    fn end(self) -> Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(Error::invalid(format!("unknown parameter {:?}", String::from_utf8_lossy(name)))),
        }
    }
}

/// How many log entries are returned when none are asked for, and at most.
const LOG: (usize, usize) = (100, 10_000);

/// Returns the verb of a request.
///
/// # Errors
/// `NotFound` for a path that is no verb, `Unsupported` for a method that it does not take, `Invalid` for a wrong parameter.
pub fn parse(method: &Method, path: &str, query: &str) -> Result<Verb> {
    let segments: Vec<String> = path
        .trim_start_matches('/')
        .split('/')
        .map(|segment| String::from_utf8(uri::decode(segment)?).map_err(|_| Error::invalid("the path is not UTF-8")))
        .collect::<Result<_>>()?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let mut query = Query(uri::pairs(query)?);
    let verb = match segments.as_slice() {
        ["-", "healthz"] => only(method, &Method::GET, Verb::Health)?,
        ["-", "v1", rest @ ..] => v1(method, rest, &mut query)?,
        _ => return Err(unknown(path)),
    };
    let Some(verb) = verb else { return Err(unknown(path)) };
    query.end()?;
    Ok(verb)
}

fn unknown(path: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("{path:?} is no verb of the control plane; GET /-/v1/schema lists its documents"),
    )
}

fn wrong(method: &Method) -> Error {
    Error::new(ErrorKind::Unsupported, format!("this verb does not take the method {method}"))
}

fn only(method: &Method, wanted: &Method, verb: Verb) -> Result<Option<Verb>> {
    if method == wanted { Ok(Some(verb)) } else { Err(wrong(method)) }
}

fn v1(method: &Method, rest: &[&str], query: &mut Query) -> Result<Option<Verb>> {
    let (get, post, delete) = (&Method::GET, &Method::POST, &Method::DELETE);
    let either = |list: Verb, make: Verb| match *method {
        Method::GET => Ok(Some(list)),
        Method::POST => Ok(Some(make)),
        _ => Err(wrong(method)),
    };
    let owned = |text: &str| text.to_owned();
    match *rest {
        ["schema"] => only(method, get, Verb::Schema),
        ["status"] => only(method, get, Verb::Status),
        ["fsck"] => only(method, post, Verb::Fsck),
        ["gc"] => only(method, post, Verb::Gc),
        ["restart"] => either(Verb::LastRestart, Verb::Restart),
        ["diff"] => only(method, get, Verb::Diff { from: query.spot("from")?, to: query.spot("to")? }),
        ["copy"] => only(method, post, Verb::Copy),
        ["move"] => only(method, post, Verb::Move),
        ["keys"] => either(Verb::Keys, Verb::CreateKey),
        ["keys", id] => only(method, delete, Verb::DeleteKey { id: owned(id) }),
        ["keys", id, "rotate"] => only(method, post, Verb::RotateKey { id: owned(id) }),
        ["temporary-keys"] => only(method, post, Verb::CreateTemporaryKey),
        ["mounts"] => either(Verb::Mounts, Verb::Mount),
        ["exports"] => either(Verb::Exports, Verb::Export),
        ["exports", port] => {
            let number = number("port", port)?;
            let port = u16::try_from(number).map_err(|_| Error::invalid(format!("port {number} is out of range")))?;
            only(method, delete, Verb::Unexport { port })
        }
        ["unmount"] => only(method, post, Verb::Unmount),
        ["runs"] => either(Verb::Runs, Verb::StartRun),
        ["runs", id] => match *method {
            Method::GET => Ok(Some(Verb::ShowRun { id: owned(id) })),
            Method::DELETE => Ok(Some(Verb::CancelRun { id: owned(id) })),
            _ => Err(wrong(method)),
        },
        ["runs", id, "events"] => only(method, get, Verb::WatchRun { id: owned(id) }),
        ["runs", id, "input"] => {
            let (end, size) = (query.flag("end")?, size(query)?);
            only(method, post, Verb::TypeToRun { id: owned(id), end, size })
        }
        ["worlds"] => either(Verb::Worlds, Verb::CreateWorld),
        ["worlds", world, ref verb @ ..] => of_world(method, world, verb, query),
        _ => Ok(None),
    }
}

/// The size of a terminal: lines and columns, both or neither.
fn size(query: &mut Query) -> Result<Option<(u16, u16)>> {
    let mut side = |name: &str| -> Result<Option<u16>> {
        let Some(text) = query.text(name)? else { return Ok(None) };
        let side = number(name, &text)?;
        u16::try_from(side)
            .map(Some)
            .map_err(|_| Error::invalid(format!("{name} {side} is out of range; use 0 to 65535")))
    };
    match (side("rows")?, side("columns")?) {
        (None, None) => Ok(None),
        (Some(rows), Some(columns)) => Ok(Some((rows, columns))),
        _ => Err(Error::invalid("a terminal's size is given by both rows and columns")),
    }
}

fn of_world(method: &Method, world: &str, verb: &[&str], query: &mut Query) -> Result<Option<Verb>> {
    let (get, post) = (&Method::GET, &Method::POST);
    let name = || world.to_owned();
    let place = |query: &mut Query| -> Result<At> {
        let spot = Spot { world: name(), at: query.text("at")? };
        Ok(At { spot, path: query.bytes("path")?.unwrap_or_default() })
    };
    match *verb {
        [] => match *method {
            Method::GET => Ok(Some(Verb::ShowWorld { world: name() })),
            Method::DELETE => Ok(Some(Verb::DeleteWorld { world: name(), force: query.flag("force")? })),
            _ => Err(wrong(method)),
        },
        ["forks"] => only(method, post, Verb::Fork { base: name() }),
        ["snapshots"] => match *method {
            Method::GET => Ok(Some(Verb::Snapshots { world: name() })),
            Method::POST => Ok(Some(Verb::TakeSnapshot { world: name() })),
            _ => Err(wrong(method)),
        },
        ["snapshots", version] => {
            only(method, &Method::DELETE, Verb::DeleteSnapshot { world: name(), version: version.to_owned() })
        }
        ["usage"] => only(method, get, Verb::Usage { spot: Spot { world: name(), at: query.text("at")? } }),
        ["quota"] => match *method {
            Method::GET => Ok(Some(Verb::Quota { world: name() })),
            Method::POST => Ok(Some(Verb::SetQuota { world: name() })),
            _ => Err(wrong(method)),
        },
        ["retention"] => match *method {
            Method::GET => Ok(Some(Verb::Retention { world: name() })),
            Method::POST => Ok(Some(Verb::SetRetention { world: name() })),
            _ => Err(wrong(method)),
        },
        ["log"] => {
            let limit = query.text("limit")?.map(|text| number("limit", &text)).transpose()?;
            let limit = limit.map_or(LOG.0, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
            if !(1..=LOG.1).contains(&limit) {
                return Err(Error::invalid(format!("limit {limit} is out of range; use 1 to {}", LOG.1)));
            }
            let before = query.text("before")?.map(|text| number("before", &text)).transpose()?;
            let spot = Spot { world: name(), at: query.text("at")? };
            only(method, get, Verb::Log { spot, path: query.bytes("path")?, limit, before })
        }
        ["promote"] => only(method, post, Verb::Promote { fork: name(), watch: query.flag("watch")? }),
        ["rebase"] => only(method, post, Verb::Rebase { fork: name(), watch: query.flag("watch")? }),
        ["promote" | "rebase", "stop"] => only(method, post, Verb::StopMerge { fork: name() }),
        ["revert"] => only(method, post, Verb::Revert { world: name() }),
        ["restore"] => only(method, post, Verb::Restore { world: name() }),
        ["discard"] => only(method, post, Verb::Discard { fork: name() }),
        ["files"] => {
            let (recursive, hidden) = (query.flag("recursive")?, query.flag("hidden")?);
            only(method, get, Verb::List { at: place(query)?, recursive, hidden })
        }
        ["content"] => only(method, get, Verb::Content { at: place(query)? }),
        ["tree"] => match *method {
            Method::GET => Ok(Some(Verb::Get { at: place(query)? })),
            Method::PUT => Ok(Some(Verb::Put { name: query.bytes("name")?, at: place(query)? })),
            _ => Err(wrong(method)),
        },
        ["remove"] => only(method, post, Verb::Remove { world: name() }),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests;
