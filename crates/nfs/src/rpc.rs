//! Remote procedure calls (RFC 5531): whom a call is for, who makes it, and the head of its answer.

use crate::xdr::{Garbage, Reader, Result, Writer};

/// The longest credential, in bytes (RFC 5531, section 8.2).
const MAX_AUTH: usize = 400;
/// The most groups of a caller beside the first (RFC 5531, appendix A).
const MAX_GROUPS: usize = 16;
/// Who calls without saying who.
const NOBODY: u32 = 65_534;

/// Who makes a call, as the client says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
}

/// A call: its parameters are what is left in the reader.
#[derive(Debug)]
pub(crate) struct Call {
    pub xid: u32,
    pub program: u32,
    pub version: u32,
    pub procedure: u32,
    pub caller: Caller,
}

/// Why a call was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    NoProgram,
    /// Another version than this one is spoken.
    Version(u32),
    NoProcedure,
    Garbage,
}

impl From<Garbage> for Refusal {
    fn from(_: Garbage) -> Self {
        Self::Garbage
    }
}

/// What is wrong with the head of a call.
#[derive(Debug)]
pub(crate) enum Head {
    /// It is no call: nobody waits for an answer.
    NoCall,
    /// It is one of another version of the protocol.
    Version(u32),
}

/// Reads the head of a call.
pub(crate) fn call(r: &mut Reader) -> std::result::Result<Call, Head> {
    let none = |_: Garbage| Head::NoCall;
    let xid = r.u32().map_err(none)?;
    if r.u32().map_err(none)? != 0 {
        return Err(Head::NoCall);
    }
    if r.u32().map_err(none)? != 2 {
        return Err(Head::Version(xid));
    }
    let mut read = || -> Result<Call> {
        let (program, version, procedure) = (r.u32()?, r.u32()?, r.u32()?);
        let (flavor, body) = (r.u32()?, r.opaque(MAX_AUTH)?);
        let (_, _) = (r.u32()?, r.opaque(MAX_AUTH)?);
        let caller = match flavor {
            1 => unix(&mut Reader::new(body))?,
            _ => Caller { uid: NOBODY, gid: NOBODY, groups: Vec::new() },
        };
        Ok(Call { xid, program, version, procedure, caller })
    };
    read().map_err(none)
}

fn unix(r: &mut Reader) -> Result<Caller> {
    r.u32()?;
    r.opaque(255)?;
    let (uid, gid, count) = (r.u32()?, r.u32()?, r.u32()? as usize);
    if count > MAX_GROUPS {
        return Err(Garbage);
    }
    Ok(Caller { uid, gid, groups: (0..count).map(|_| r.u32()).collect::<Result<_>>()? })
}

/// Begins the answer to a call that was done.
pub(crate) fn done(xid: u32) -> Writer {
    let mut w = Writer::default();
    // A reply, accepted, without a verifier, successful.
    w.u32(xid).u32(1).u32(0).u32(0).u32(0).u32(0);
    w
}

/// Makes the answer to a call that was not done.
pub(crate) fn refused(xid: u32, why: Refusal) -> Vec<u8> {
    let mut w = Writer::default();
    w.u32(xid).u32(1).u32(0).u32(0).u32(0);
    match why {
        Refusal::NoProgram => w.u32(1),
        Refusal::Version(ours) => w.u32(2).u32(ours).u32(ours),
        Refusal::NoProcedure => w.u32(3),
        Refusal::Garbage => w.u32(4),
    };
    w.0
}

/// Makes the answer to a call of another version of the protocol.
pub(crate) fn mismatch(xid: u32) -> Vec<u8> {
    let mut w = Writer::default();
    w.u32(xid).u32(1).u32(1).u32(0).u32(2).u32(2);
    w.0
}
