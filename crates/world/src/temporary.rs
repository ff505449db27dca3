//! Temporary keys: they act for another, within bounds, for a while, and only together with a session token.
//!
//! Invariant: at no time may a temporary key do what the key that it acts for may not. It is dead as soon as that key is, has another
//! secret, or the time is over. Every change it makes requires the records of both, unaltered.

use crate::error::{Error, Result};
use crate::key_record::{Acting, KeyRecord};
use crate::keys::{Grant, MAX_GRANTS};
use crate::layout::{self, Tag};
use crate::mutate::require_key;
use crate::policy;
use crate::principal::Principal;
use crate::sealing::Kept;
use crate::store::{Secret, Store};
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect, Order};
use mw_model::{ErrorKind, Hash};
use std::sync::Arc;
use std::time::Duration;

/// The longest policy that bounds a temporary key, in bytes (AWS: 2,048 characters).
const MAX_POLICY: usize = 2048;

/// Bounds of a temporary key.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// What people call it, 2 to 64 bytes.
    pub name: String,
    /// What it may do of what the caller may; none: no bound of this kind.
    pub grants: Vec<Grant>,
    /// A policy, as JSON; none: no bound of this kind. With neither, the key may do nothing.
    pub policy: Option<String>,
    /// How long it lives. It never outlives the key that it acts for.
    pub ttl: Duration,
}

/// A temporary key.
#[derive(Clone, PartialEq, Eq)]
pub struct Temporary {
    /// Its id and secret.
    pub secret: Secret,
    /// What must come with every request.
    pub token: String,
    /// When it dies, in UNIX nanoseconds.
    pub expires: u64,
}

impl std::fmt::Debug for Temporary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Temporary {{ id: {:?}, … }}", self.secret.id)
    }
}

impl Store {
    /// Makes a temporary key that acts for the caller's.
    ///
    /// # Errors
    /// `Denied` for a caller that is temporary itself, and for a role on a world that it does not reach; `Invalid` for bounds out of the
    /// rules.
    pub fn create_temporary(self: &Arc<Self>, who: &Principal, bounds: &Bounds) -> Result<Temporary> {
        if who.is_temporary() {
            return Err(Error::new(ErrorKind::Denied, "access denied: a temporary key makes no others"));
        }
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"+=,.@_-".contains(&b);
        if !(2..=64).contains(&bounds.name.len()) || !bounds.name.bytes().all(fits) {
            return Err(Error::invalid("a session's name has 2 to 64 of letters, digits and +=,.@_-"));
        }
        if let Some(json) = &bounds.policy {
            if json.len() > MAX_POLICY {
                return Err(Error::invalid(format!(
                    "MalformedPolicyDocument: the policy of a temporary key has at most {MAX_POLICY} bytes"
                )));
            }
            policy::parse(json)?;
        }
        let (parent, _) = self.live_key(who.key_id())?.ok_or_else(Error::denied)?;
        let mut batch = Batch::new();
        require_key(&mut batch, Some(who));
        if bounds.grants.len() > MAX_GRANTS {
            return Err(Error::invalid(format!("a key has at most {MAX_GRANTS} grants")));
        }
        // They bound what the caller may do, so that nothing is given here; but they must not tell of worlds out of reach.
        let held = |grant: &Grant| Ok(self.held(who, grant, &mut batch)?.0);
        let grants = bounds.grants.iter().map(held).collect::<Result<_>>()?;
        let now = self.env.now();
        let end = now.saturating_add(bounds.ttl.as_nanos() as u64);
        let expires = parent.expires.map_or(end, |at| at.min(end));
        let id = format!("mwt{}", self.env.token(17));
        let secret = Secret { id: id.clone(), secret: self.env.token(40) };
        let token = self.env.token(64);
        let record = KeyRecord {
            name: bounds.name.clone(),
            secret: Kept::keep(self.options.sealing.as_ref(), &self.env, &id, &secret.secret)?,
            root: false,
            grants,
            created: now,
            expires: Some(expires),
            run: who.run().map(str::to_owned),
            maker: who.key_id().to_owned(),
            generation: 0,
            forks: 0,
            policies: Vec::new(),
            policy: bounds.policy.clone(),
            acting: Some(Acting {
                parent: who.key_id().to_owned(),
                generation: parent.generation,
                token: Hash::of(token.as_bytes()),
            }),
        };
        let place = layout::raw(Tag::Key, id.as_bytes());
        batch.require(place.clone(), Expect::Absent);
        batch.put(place, record.encode());
        self.commit_key(batch)?;
        Ok(Temporary { secret, token, expires })
    }

    /// Forgets the temporary keys whose time has passed.
    pub(crate) fn reap_temporary(&self, now: u64) -> Result<()> {
        let start = layout::raw(Tag::Key, b"mwt");
        let end = layout::raw(Tag::Key, b"mwu");
        let mut batch = Batch::new();
        let mut gone = false;
        for (place, bytes) in self.meta.scan(&start, &end, usize::MAX, Order::Up)? {
            let record = KeyRecord::decode(&bytes)?;
            if record.acting.is_some() && record.expires.is_some_and(|at| at <= now) {
                batch.delete(Bytes::clone(&place));
                gone = true;
            }
        }
        match gone {
            true => Ok(self.meta.commit(batch, Durability::Soon)?),
            false => Ok(()),
        }
    }

    /// Refuses what a temporary key may not ask for.
    pub(crate) fn need_lasting(&self, who: &Principal) -> Result<()> {
        match who.is_temporary() {
            true => Err(Error::new(ErrorKind::Denied, "access denied: a temporary key manages no keys")),
            false => Ok(()),
        }
    }
}
