//! READ, WRITE and COMMIT. A write that is not asked to be stable survives a killed server at once, and a power cut once it was
//! committed, as NFS has it.

use super::Door;
use crate::access::{READ, WRITE};
use crate::handle;
use crate::shared::MAX_DATA;
use crate::status::Status;
use crate::xdr::{Garbage, Reader, Result, Writer};
use mw_model::FileType;
use mw_world::WriteAt;

/// How durable a write is: `UNSTABLE` is 0, `DATA_SYNC` 1.
const FILE_SYNC: u32 = 2;

impl Door<'_> {
    pub(super) fn read(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let (handle, offset, count) = (handle::read(r)?, r.u64()?, r.u32()? as usize);
        let attr = self.attr(&handle);
        let bytes = attr.and_then(|attr| {
            match attr.kind {
                FileType::File => {}
                FileType::Directory => return Err(Status::IsDirectory),
                _ => return Err(Status::Invalid),
            }
            self.caller.need_content(&attr, READ)?;
            Ok(self.shared.session.read(attr.ino, offset, count.min(MAX_DATA))?)
        });
        Self::status(w, bytes.as_ref().err().copied().unwrap_or(Status::Ok));
        self.after(w, attr.ok().as_ref());
        if let (Ok(bytes), Ok(attr)) = (bytes, attr) {
            let end = offset.saturating_add(bytes.len() as u64) >= attr.size;
            w.u32(bytes.len() as u32).bool(end).opaque(&bytes);
        }
        Ok(())
    }

    pub(super) fn write(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let (handle, offset, count, stable) = (handle::read(r)?, r.u64()?, r.u32()? as usize, r.u32()?);
        let data = r.opaque(MAX_DATA)?;
        if data.len() < count {
            return Err(Garbage);
        }
        let before = self.attr(&handle);
        let written = before.and_then(|before| {
            self.writable()?;
            match before.kind {
                FileType::File => {}
                FileType::Directory => return Err(Status::IsDirectory),
                _ => return Err(Status::Invalid),
            }
            self.caller.need_content(&before, WRITE)?;
            if count > 0 {
                self.shared.session.write(before.ino, WriteAt::Offset(offset), &data[..count])?;
            }
            if stable > 0 {
                self.shared.session.sync()?;
            }
            Ok(())
        });
        Self::status(w, written.err().unwrap_or(Status::Ok));
        self.change(w, before.ok().as_ref());
        if written.is_ok() {
            w.u32(count as u32).u32(if stable > 0 { FILE_SYNC } else { 0 }).u64(self.shared.life);
        }
        Ok(())
    }

    pub(super) fn commit(&self, r: &mut Reader, w: &mut Writer) -> Result<()> {
        let (handle, _, _) = (handle::read(r)?, r.u64()?, r.u32()?);
        let attr = self.attr(&handle);
        let outcome = attr.and_then(|_| Ok(self.shared.session.sync()?));
        Self::status(w, outcome.err().unwrap_or(Status::Ok));
        self.change(w, attr.ok().as_ref());
        if outcome.is_ok() {
            w.u64(self.shared.life);
        }
        Ok(())
    }
}
