//! The way in: the MOUNT protocol (RFC 1813, appendix I), and a portmapper that knows one port (RFC 1833), for clients that ask.

use crate::handle::Realm;
use crate::rpc::{Call, Refusal};
use crate::shared::Shared;
use crate::xdr::{Reader, Writer};
use mw_model::FileType;

pub(crate) const MOUNT: u32 = 100_005;
pub(crate) const PORTMAP: u32 = 100_000;

/// The longest path of an export, in bytes.
const MAX_PATH: usize = 1024;
const TCP: u32 = 6;
/// AUTH_SYS: the client says who its user is.
const AUTH_SYS: u32 = 1;

/// Answers a call of the MOUNT protocol.
pub(crate) fn mount(shared: &Shared, call: &Call, r: &mut Reader, w: &mut Writer) -> Result<(), Refusal> {
    match (call.version, call.procedure) {
        (3, 0 | 3 | 4) => {}
        (3, 1) => {
            let path = r.opaque(MAX_PATH)?;
            match root(shared, &path) {
                Ok(ino) => {
                    w.u32(0);
                    let realm: Realm = shared.realm;
                    realm.write(w, ino);
                    w.u32(1).u32(AUTH_SYS);
                }
                Err(status) => {
                    w.u32(status);
                }
            }
        }
        (3, 2) => {
            w.bool(false);
        }
        (3, 5) => {
            w.bool(true).opaque(b"/").bool(false).bool(false);
        }
        (3, _) => return Err(Refusal::NoProcedure),
        _ => return Err(Refusal::Version(3)),
    }
    Ok(())
}

/// Finds the directory that a client mounts: `/` is the world's root.
fn root(shared: &Shared, path: &[u8]) -> Result<mw_model::Ino, u32> {
    const NOT_FOUND: u32 = 2;
    const NOT_DIRECTORY: u32 = 20;
    let start = path.iter().position(|b| *b != b'/').unwrap_or(path.len());
    let path = path[start..].strip_suffix(b"/").unwrap_or(&path[start..]);
    let attr = shared.session.resolve(path).map_err(|_| NOT_FOUND)?;
    if attr.kind == FileType::Directory { Ok(attr.ino) } else { Err(NOT_DIRECTORY) }
}

/// Answers a call of the portmapper: everything is at this port.
pub(crate) fn portmap(shared: &Shared, call: &Call, r: &mut Reader, w: &mut Writer) -> Result<(), Refusal> {
    match (call.version, call.procedure) {
        (2, 0) => {}
        (2, 3) => {
            let (program, _, protocol, _) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
            let known = protocol == TCP && matches!(program, MOUNT | crate::procedures::NFS);
            w.u32(if known { u32::from(shared.port) } else { 0 });
        }
        (2, _) => return Err(Refusal::NoProcedure),
        _ => return Err(Refusal::Version(2)),
    }
    Ok(())
}
