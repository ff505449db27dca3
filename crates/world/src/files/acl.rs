//! POSIX access control lists, as Linux keeps them: extended attributes of a fixed form, tied to the permission bits.
//!
//! The kernel of a mount enforces them; what is done here is what keeps list and bits one thing: setting a list sets the bits,
//! chmod changes the list, and what is made in a directory with a default list begins with one (acl(5)).

use super::xattr::MAX_VALUE;
use crate::error::{Error, Result};
use crate::record::{self, Inode, Kind};
use crate::txn::Txn;
use bytes::Bytes;
use mw_model::{FileType, Ino};

/// The list that decides.
pub(crate) const ACCESS: &[u8] = b"system.posix_acl_access";
/// A directory's list for what is made in it.
pub(crate) const DEFAULT: &[u8] = b"system.posix_acl_default";

/// The form of the attribute: `linux/posix_acl_xattr.h`.
const VERSION: u32 = 2;
const HEADER: usize = 4;
const ENTRY: usize = 8;

/// Returns whether an attribute is an access control list.
pub(crate) fn is_acl(name: &[u8]) -> bool {
    name == ACCESS || name == DEFAULT
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tag {
    Owner = 0x01,
    User = 0x02,
    OwningGroup = 0x04,
    Group = 0x08,
    Mask = 0x10,
    Other = 0x20,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    tag: Tag,
    /// Read, write, execute, as in a mode.
    perm: u32,
    id: u32,
}

/// One list, in the order that the kernel wants: owner, users, group, groups, mask, others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Acl(Vec<Entry>);

impl Acl {
    /// Reads the attribute's form.
    ///
    /// # Errors
    /// `Invalid` for what is not a whole and ordered list.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let bad = || Error::invalid("the access control list is not one: see acl(5)");
        let (version, rest) = bytes.split_first_chunk::<HEADER>().ok_or_else(bad)?;
        if u32::from_le_bytes(*version) != VERSION || rest.len() % ENTRY != 0 || bytes.len() > MAX_VALUE {
            return Err(bad());
        }
        let entries: Option<Vec<_>> = rest.chunks_exact(ENTRY).map(Entry::decode).collect();
        let list = Self(entries.ok_or_else(bad)?);
        if list.is_valid() { Ok(list) } else { Err(bad()) }
    }

    fn encode(&self) -> Bytes {
        let mut out = VERSION.to_le_bytes().to_vec();
        for entry in &self.0 {
            out.extend_from_slice(&(entry.tag as u16).to_le_bytes());
            out.extend_from_slice(&(entry.perm as u16).to_le_bytes());
            out.extend_from_slice(&entry.id.to_le_bytes());
        }
        out.into()
    }

    /// The three of the permission bits once each, the mask at most once and always beside named entries.
    fn is_valid(&self) -> bool {
        let count = |tag| self.0.iter().filter(|entry| entry.tag == tag).count();
        let named = count(Tag::User) + count(Tag::Group) > 0;
        self.0.is_sorted_by_key(|entry| entry.tag)
            && [Tag::Owner, Tag::OwningGroup, Tag::Other].into_iter().all(|tag| count(tag) == 1)
            && (count(Tag::Mask) == 1 || (count(Tag::Mask) == 0 && !named))
    }

    /// Returns whether the list says no more than permission bits can.
    fn is_bits(&self) -> bool {
        self.0.len() == 3
    }

    /// Returns the permission bits that stand for the list: the mask, where there is one, for the group.
    fn bits(&self) -> u32 {
        let group = if self.0.iter().any(|entry| entry.tag == Tag::Mask) { Tag::Mask } else { Tag::OwningGroup };
        self.0.iter().fold(0, |bits, entry| match entry.tag {
            Tag::Owner => bits | entry.perm << 6,
            tag if tag == group => bits | entry.perm << 3,
            Tag::Other => bits | entry.perm,
            _ => bits,
        })
    }

    /// Does to the list what chmod does to the bits.
    fn chmod(&mut self, mode: u32) {
        let masked = self.0.iter().any(|entry| entry.tag == Tag::Mask);
        for entry in &mut self.0 {
            match entry.tag {
                Tag::Owner => entry.perm = mode >> 6 & 7,
                Tag::Mask => entry.perm = mode >> 3 & 7,
                Tag::OwningGroup if !masked => entry.perm = mode >> 3 & 7,
                Tag::Other => entry.perm = mode & 7,
                _ => {}
            }
        }
    }
}

impl Entry {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first_chunk::<2>()?;
        let (perm, rest) = rest.split_first_chunk::<2>()?;
        let tag = match u16::from_le_bytes(*tag) {
            0x01 => Tag::Owner,
            0x02 => Tag::User,
            0x04 => Tag::OwningGroup,
            0x08 => Tag::Group,
            0x10 => Tag::Mask,
            0x20 => Tag::Other,
            _ => return None,
        };
        let perm = u32::from(u16::from_le_bytes(*perm));
        (perm <= 7).then_some(Self { tag, perm, id: u32::from_le_bytes(rest.try_into().ok()?) })
    }
}

impl Txn<'_> {
    fn acl(&self, ino: Ino, name: &[u8]) -> Result<Option<Acl>> {
        match self.view.get(&record::key(ino, Kind::Xattr, name))? {
            None => Ok(None),
            Some(value) => Acl::decode(&value.data.slice(1..)).map(Some),
        }
    }

    fn put_acl(&mut self, ino: Ino, name: &[u8], acl: &Acl) {
        let value = [&[1][..], &acl.encode()].concat();
        self.put(record::key(ino, Kind::Xattr, name), record::plain(value));
    }

    /// Sets a list. Of an access list the bits take their part, and one that says no more than bits is not kept.
    pub(crate) fn set_acl(&mut self, ino: Ino, inode: &mut Inode, name: &[u8], value: &[u8]) -> Result<()> {
        let acl = Acl::decode(value)?;
        if name == DEFAULT {
            if inode.kind != FileType::Directory {
                return Err(Error::new(
                    mw_model::ErrorKind::Denied,
                    "only a directory has a default access control list",
                ));
            }
            self.put_acl(ino, name, &acl);
            return Ok(());
        }
        if inode.kind == FileType::Symlink {
            return Err(Error::new(mw_model::ErrorKind::Unsupported, "a link has no access control list"));
        }
        inode.mode = inode.mode & !0o777 | acl.bits();
        if acl.is_bits() {
            self.remove(record::key(ino, Kind::Xattr, name));
        } else {
            self.put_acl(ino, name, &acl);
        }
        Ok(())
    }

    /// Has the access list, where there is one, follow a chmod.
    pub(crate) fn chmod_acl(&mut self, ino: Ino, mode: u32) -> Result<()> {
        if let Some(mut acl) = self.acl(ino, ACCESS)? {
            acl.chmod(mode);
            self.put_acl(ino, ACCESS, &acl);
        }
        Ok(())
    }

    /// Gives what is made in `parent` its lists and returns its mode. Where the parent has a default list, that bounds the mode
    /// and the umask does not (acl(5), "object creation").
    pub(crate) fn inherit_acl(&mut self, parent: Ino, ino: Ino, inode: &Inode, umask: u32) -> Result<u32> {
        if inode.kind == FileType::Symlink {
            return Ok(inode.mode);
        }
        let Some(default) = self.acl(parent, DEFAULT)? else { return Ok(inode.mode & !umask) };
        if inode.kind == FileType::Directory {
            self.put_acl(ino, DEFAULT, &default);
        }
        let mut access = default;
        let mode = inode.mode & !0o777 | inode.mode & access.bits();
        access.chmod(mode);
        if !access.is_bits() {
            self.put_acl(ino, ACCESS, &access);
        }
        Ok(mode)
    }
}

#[cfg(test)]
mod tests;
