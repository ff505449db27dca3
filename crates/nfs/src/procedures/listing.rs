//! READDIR and READDIRPLUS. A cookie is a position in the names of the directory as it was opened, and the verifier names that
//! opening: a client that deletes while it lists is not led past entries. Openings are kept until they were listed to their end, within
//! a bound; after that, and after a restart, a cookie is a position in the names of now.

use super::Door;
use crate::handle;
use crate::status::Status;
use crate::xdr::{Reader, Result, Writer};
use mw_model::{Attr, Ino};
use mw_world::{Dir, DirEntry};

/// The most bytes of one listing, whatever the client would take.
const MAX_LISTING: usize = 256 << 10;
/// What an answer has beside its entries, in bytes: head, attributes of the directory, verifier, end.
const FRAME: usize = 24 + 4 + 4 + 84 + 8 + 8;
/// What an entry has beside its name, in bytes: three numbers, and with attributes those and the handle.
const ENTRY: usize = 4 + 8 + 4 + 8;
const PLUS: usize = 4 + 84 + 4 + 4 + 24;
/// Cookies 1 and 2 stand behind `.` and `..`; the store's own are moved past them.
const DOTS: u64 = 2;

impl Door<'_> {
    /// Lists a directory; with `plus`, entries come with attributes and handles.
    pub(super) fn list(&self, r: &mut Reader, w: &mut Writer, plus: bool) -> Result<()> {
        let (handle, cookie, verifier) = (handle::read(r)?, r.u64()?, r.u64()?);
        let most = if plus { r.u32().and(r.u32())? } else { r.u32()? } as usize;
        let dir = self.listable(&handle);
        let mut entries = Writer::default();
        let mut verifier = if cookie == 0 { 0 } else { verifier };
        let listed = dir.and_then(|dir| {
            let open = self.shared.openings.get(verifier, dir.ino);
            let open = match open {
                Some(open) => open,
                None => {
                    let (number, open) = self.shared.openings.add(self.shared.session.open_dir(dir.ino)?);
                    verifier = number;
                    open
                }
            };
            let end = self.entries(&dir, &open, cookie, most.min(MAX_LISTING), plus, &mut entries)?;
            if end {
                self.shared.openings.forget(verifier);
            }
            Ok(end)
        });
        Self::status(w, listed.err().unwrap_or(Status::Ok));
        self.after(w, dir.ok().as_ref());
        if let Ok(end) = listed {
            w.u64(verifier).raw(&entries.0).bool(false).bool(end);
        }
        Ok(())
    }

    /// Writes entries behind `cookie`; returns whether those were the last.
    fn entries(
        &self,
        dir: &Attr,
        open: &Dir,
        cookie: u64,
        most: usize,
        plus: bool,
        w: &mut Writer,
    ) -> std::result::Result<bool, Status> {
        let plus = plus && self.searchable(dir);
        let room = |w: &Writer, name: usize| {
            let entry = ENTRY + name.next_multiple_of(4) + if plus { PLUS } else { 0 };
            FRAME + w.0.len() + entry <= most
        };
        let mut full = false;
        for (at, name, ino) in [(1, &b"."[..], dir.ino), (2, b"..", open.parent())] {
            if cookie < at && !full {
                full = !room(w, name.len());
                if !full {
                    let attr = self.shared.session.attr(ino).ok();
                    self.entry(w, ino, name, at, plus, attr.as_ref());
                }
            }
        }
        if !full {
            let mut each = |entry: DirEntry, attr: Option<Attr>| {
                full = !room(w, entry.name.len());
                if !full {
                    self.entry(w, entry.ino, &entry.name, entry.cookie.saturating_add(DOTS), plus, attr.as_ref());
                }
                !full
            };
            open.read(cookie.saturating_sub(DOTS), &mut each, plus)?;
        }
        if full && w.0.is_empty() {
            // NFS3ERR_TOOSMALL has no better neighbour among what the client can act on.
            return Err(Status::Invalid);
        }
        Ok(!full)
    }

    fn entry(&self, w: &mut Writer, ino: Ino, name: &[u8], cookie: u64, plus: bool, attr: Option<&Attr>) {
        w.bool(true).u64(ino.0).opaque(name).u64(cookie);
        if plus {
            self.after(w, attr);
            w.bool(attr.is_some());
            if attr.is_some() {
                self.shared.realm.write(w, ino);
            }
        }
    }
}
