//! Policies that have a name, and are attached to keys. A key whose policy is not there may do nothing.

use crate::error::{Error, Result};
use crate::key_record::KeyRecord;
use crate::layout::{self, Tag};
use crate::mutate::require_key;
use crate::policy;
use crate::policy_record::{PolicyInfo, place};
use crate::principal::Principal;
use crate::store::Store;
use mw_meta::{Batch, Durability, Expect, Order};
use mw_model::ErrorKind;

/// How many policies one key has at most (AWS: 10).
const MAX_ATTACHED: usize = 10;

fn need_name(name: &str) -> Result<()> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"+=,.@_-".contains(&b);
    if (1..=128).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(());
    }
    Err(Error::invalid("a policy's name has 1 to 128 of letters, digits and +=,.@_-"))
}

fn missing(name: &str) -> Error {
    Error::not_found(format!("policy {name:?} does not exist"))
}

impl Store {
    /// Makes a policy.
    ///
    /// # Errors
    /// `Denied` unless one is admin of everything; `Invalid` for a name or a document out of the rules; `AlreadyExists`.
    pub fn create_policy(&self, who: &Principal, name: &str, description: &str, document: &str) -> Result<PolicyInfo> {
        self.need_everything(who)?;
        need_name(name)?;
        if description.len() > 1000 {
            return Err(Error::invalid("a policy's description has at most 1,000 bytes"));
        }
        policy::parse(document)?;
        let now = self.env.now();
        let info = PolicyInfo {
            name: name.to_owned(),
            description: description.to_owned(),
            document: document.to_owned(),
            created: now,
            updated: now,
        };
        let mut batch = Batch::new();
        batch.require(place(name), Expect::Absent);
        require_key(&mut batch, Some(who));
        batch.put(place(name), info.encode());
        match self.meta.commit(batch, Durability::Durable) {
            Ok(()) => Ok(info),
            Err(e) if e.kind() == ErrorKind::Conflict && self.meta.get(&place(name))?.is_some() => {
                Err(Error::new(ErrorKind::AlreadyExists, format!("policy {name} already exists; update it")))
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Replaces a policy's document: it counts with the next request of every key that it is attached to.
    ///
    /// # Errors
    /// As for [`Store::create_policy`]; `NotFound`.
    pub fn update_policy(&self, who: &Principal, name: &str, document: &str) -> Result<PolicyInfo> {
        self.need_everything(who)?;
        policy::parse(document)?;
        let old = self.meta.get(&place(name))?.ok_or_else(|| missing(name))?;
        let mut info = PolicyInfo::decode(name, &old)?;
        info.document = document.to_owned();
        info.updated = self.env.now();
        let mut batch = Batch::new();
        batch.require(place(name), Expect::Value(old));
        require_key(&mut batch, Some(who));
        batch.put(place(name), info.encode());
        self.commit_key(batch)?;
        Ok(info)
    }

    /// Returns a policy.
    ///
    /// # Errors
    /// `Denied` unless one is admin of everything or it is attached to one's key; `NotFound`.
    pub fn policy(&self, who: &Principal, name: &str) -> Result<PolicyInfo> {
        let own = who.key.stands_on.iter().any(|(at, _)| *at == place(name));
        if !own {
            self.need_everything(who)?;
        }
        let bytes = self.meta.get(&place(name))?.ok_or_else(|| missing(name))?;
        PolicyInfo::decode(name, &bytes)
    }

    /// Returns the policies, by name.
    ///
    /// # Errors
    /// `Denied` unless one is admin of everything.
    pub fn policies(&self, who: &Principal) -> Result<Vec<PolicyInfo>> {
        self.need_everything(who)?;
        let (start, end) = layout::all(Tag::Policy);
        let all = self.meta.scan(&start, &end, usize::MAX, Order::Up)?;
        all.iter().map(|(at, value)| PolicyInfo::decode(&String::from_utf8_lossy(layout::rest(at)), value)).collect()
    }

    /// Deletes a policy. With `force` it is detached first, from all keys, in the same commit.
    ///
    /// # Errors
    /// `Denied` unless one is admin of everything; `NotFound`; `NotEmpty` while it is attached to a key.
    pub fn delete_policy(&self, who: &Principal, name: &str, force: bool) -> Result<()> {
        self.need_everything(who)?;
        let old = self.meta.get(&place(name))?.ok_or_else(|| missing(name))?;
        let mut batch = Batch::new();
        batch.require(place(name), Expect::Value(old));
        require_key(&mut batch, Some(who));
        batch.delete(place(name));
        let (start, end) = layout::all(Tag::Key);
        for (at, bytes) in self.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let mut record = KeyRecord::decode(&bytes)?;
            if !record.policies.iter().any(|n| n == name) {
                continue;
            }
            if !force {
                return Err(Error::new(
                    ErrorKind::NotEmpty,
                    format!(
                        "policy {name} is attached to key {}; detach it first",
                        String::from_utf8_lossy(layout::rest(&at))
                    ),
                ));
            }
            record.policies.retain(|n| n != name);
            batch.require(at.clone(), Expect::Value(bytes));
            batch.put(at, record.encode());
        }
        self.commit_key(batch)
    }

    /// Attaches a policy to a key, or detaches it. Doing what is done already is no error.
    ///
    /// # Errors
    /// `Denied` unless one is admin of everything; `NotFound` for the key or the policy; `Invalid` for the root key, for a temporary
    /// one, and for more than ten policies.
    pub fn attach_policy(&self, who: &Principal, key: &str, name: &str, attached: bool) -> Result<()> {
        self.need_everything(who)?;
        let (bytes, mut record) = self.own_key(who, key)?;
        if record.root || record.acting.is_some() {
            return Err(Error::invalid("policies cannot be attached to the root key or to a temporary one"));
        }
        let mut batch = Batch::new();
        let there = record.policies.iter().any(|n| n == name);
        if attached {
            let policy = self.meta.get(&place(name))?.ok_or_else(|| missing(name))?;
            batch.require(place(name), Expect::Value(policy));
        } else if !there {
            return Err(Error::not_found(format!("policy {name:?} is not attached to key {key}")));
        }
        if there == attached {
            return Ok(());
        }
        match attached {
            true => record.policies.push(name.to_owned()),
            false => record.policies.retain(|n| n != name),
        }
        if record.policies.len() > MAX_ATTACHED {
            return Err(Error::invalid(format!("a key has at most {MAX_ATTACHED} policies")));
        }
        self.replace_key(who, key, bytes, &record, batch)
    }

    /// Returns the names of the policies attached to a key.
    ///
    /// # Errors
    /// As for [`Store::delete_key`].
    pub fn policies_of(&self, who: &Principal, key: &str) -> Result<Vec<String>> {
        Ok(self.own_key(who, key)?.1.policies)
    }
}
