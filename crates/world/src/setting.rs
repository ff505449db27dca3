//! Settings that a door keeps with a world: small, opaque, outside its history. A fork begins without those of its base.

use crate::error::{Error, Result};
use crate::layout::{self, Tag};
use crate::mutate::require_key;
use crate::principal::Role;
use crate::session::Session;
use crate::store::Store;
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect};
use mw_model::policy::Action;
use mw_model::{ErrorKind, WorldId, WorldName};

/// The largest setting, in bytes.
const LARGEST: usize = 64 << 10;

fn place(world: WorldId, name: &str) -> Bytes {
    layout::suffixed(Tag::Setting, world, name.as_bytes())
}

/// The form of the record, before what the door says.
const FORM: u8 = 1;

fn read(value: Option<Bytes>) -> Result<Option<Bytes>> {
    match value {
        None => Ok(None),
        Some(value) => match value.first() {
            Some(&FORM) => Ok(Some(value.slice(1..))),
            n => Err(crate::record::newer(n.copied().unwrap_or_default())),
        },
    }
}

/// Adds what a world that is made keeps from the start.
///
/// # Errors
/// `TooLarge` over 64 KiB.
pub(crate) fn keep(batch: &mut Batch, world: WorldId, settings: &[(String, Vec<u8>)]) -> Result<()> {
    for (name, value) in settings {
        batch.put(place(world, name), written(value)?);
    }
    Ok(())
}

fn written(value: &[u8]) -> Result<Vec<u8>> {
    if value.len() > LARGEST {
        return Err(Error::new(ErrorKind::TooLarge, format!("a setting has at most {LARGEST} bytes")));
    }
    Ok([&[FORM], value].concat())
}

impl Session {
    /// Returns what a door keeps with the world under a name. `action` is what policies call that; none: they do not name it, and it
    /// is for those who may read all of the world.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn setting(&self, name: &str, action: Option<Action>) -> Result<Option<Bytes>> {
        match action {
            Some(action) => drop(self.may_list(action, b"")?),
            None => self.need(Role::Reader)?,
        }
        read(self.store.meta.get(&place(self.world.id, name))?)
    }

    /// Keeps something with the world under a name, or forgets it; durable on return. `action` as for [`Session::setting`].
    ///
    /// # Errors
    /// `Denied` below admin; `ReadOnly` for a version; `TooLarge` over 64 KiB.
    pub fn set_setting(&self, name: &str, action: Option<Action>, value: Option<&[u8]>) -> Result<()> {
        self.need_now()?;
        match action {
            Some(action) => drop(self.may_list(action, b"")?),
            None => self.need(Role::Admin)?,
        }
        let mut batch = Batch::new();
        batch.require(layout::of(Tag::Alive, self.world.id), Expect::Present);
        require_key(&mut batch, Some(&self.who));
        match value {
            Some(value) => batch.put(place(self.world.id, name), written(value)?),
            None => batch.delete(place(self.world.id, name)),
        };
        self.store.submit_for(&self.world, Some(&self.who), batch, Durability::Durable)?.wait()?;
        Ok(())
    }
}

impl Store {
    /// Returns a setting of a world for a door that does not know who asks, such as the answer to a browser's first question. None,
    /// and nothing else, where there is no such world.
    ///
    /// # Errors
    /// The metadata store failed.
    pub fn setting(&self, world: &str, name: &str) -> Result<Option<Bytes>> {
        let Ok(world) = WorldName::new(world) else { return Ok(None) };
        let Some(id) = self.meta.get(&layout::raw(Tag::Name, world.as_str().as_bytes()))? else { return Ok(None) };
        read(self.meta.get(&place(WorldId(layout::number(&id)), name))?)
    }
}
