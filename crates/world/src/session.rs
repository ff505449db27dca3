//! A session: a world (perhaps at an instant) and a principal. The one thing that a door holds.

use crate::allowed::Permit;
use crate::entry::Verb;
use crate::error::{Error, Result};
use crate::listener::{Listener, Subscription};
use crate::locks::Locker;
use crate::mutate::Mutation;
use crate::power::Place;
use crate::principal::{Principal, Role};
use crate::store::Store;
use crate::txn::Txn;
use crate::view::View;
use crate::world::World;
use mw_meta::Durability;
use mw_model::{ErrorKind, Version, WorldId, WorldName};
use std::sync::Arc;

/// A world and a principal. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    pub(crate) store: Arc<Store>,
    pub(crate) world: Arc<World>,
    pub(crate) who: Principal,
    /// The role on all of the world, when `limited` does not say that more must be asked.
    pub(crate) role: Role,
    pub(crate) limited: bool,
    pub(crate) name: WorldName,
    /// Some: a read-only session of that instant.
    pub(crate) at: Option<Arc<View>>,
    pub(crate) origin: u64,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let limited = if self.limited { ", limited" } else { "" };
        write!(f, "Session({} as {:?} with {}{limited})", self.name, self.who, self.role)
    }
}

impl Session {
    pub(crate) fn new(store: Arc<Store>, world: Arc<World>, who: Principal, role: Role) -> Self {
        let name = WorldName::new(&world.record.read().name)
            .unwrap_or_else(|rule| unreachable!("a stored name breaks the rules: {rule}"));
        let limited = !who.key.power.plain();
        Self { store, world, who, role, limited, name, at: None, origin: 0 }
    }

    /// Returns the world's name.
    pub fn name(&self) -> &WorldName {
        &self.name
    }

    /// Returns the world's identity.
    pub fn world_id(&self) -> WorldId {
        self.world.id
    }

    /// Returns who holds the session.
    pub fn principal(&self) -> &Principal {
        &self.who
    }

    /// Returns the same session as it outlives a new secret of the root key: see [`Principal::lasting`].
    pub fn lasting(&self) -> Self {
        Self { who: self.who.lasting(), ..self.clone() }
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the version that is read: that of the last change, or the instant.
    pub fn shown(&self) -> Version {
        self.view().time
    }

    /// Returns the instant of a read-only session.
    pub fn version(&self) -> Option<Version> {
        self.at.as_ref().map(|view| view.time)
    }

    /// Returns this session with changes that are not reported to the listener of the same origin.
    pub fn with_origin(&self, origin: u64) -> Self {
        Self { origin, ..self.clone() }
    }

    /// Subscribes a mount to the world's changes.
    ///
    /// # Errors
    /// `Busy`: it, or one that is there, may not be beside another ([`Listener::is_sole`]). Mounts of an instant may.
    pub fn subscribe(&self, origin: u64, listener: Arc<dyn Listener>) -> Result<Subscription> {
        self.world.listeners.add(origin, listener, self.at.is_none(), self.name.as_str())
    }

    /// Refuses a mount that [`Session::subscribe`] would refuse now.
    ///
    /// # Errors
    /// `Busy`, as there.
    pub fn need_room_for_mount(&self, sole: bool) -> Result<()> {
        if self.at.is_some() { Ok(()) } else { self.world.listeners.need_room(sole, self.name.as_str()) }
    }

    /// Makes a client of the world's advisory locks, to be kept no longer than the session. Locks on an instant are the client's own:
    /// nothing changes there that they could guard.
    pub fn locker(&self) -> Locker {
        Locker::new(if self.at.is_some() { Arc::default() } else { self.world.locks.clone() })
    }

    /// Returns the world as this session sees it.
    pub(crate) fn view(&self) -> View {
        match &self.at {
            Some(view) => View::clone(view),
            None => self.world.view(),
        }
    }

    /// Refuses a change through a session that cannot make one.
    pub(crate) fn need_writable(&self) -> Result<()> {
        self.need_now()?;
        self.need(Role::Editor)
    }

    /// Refuses a session of an instant.
    pub(crate) fn need_now(&self) -> Result<()> {
        match &self.at {
            Some(view) => Err(Error::new(
                ErrorKind::ReadOnly,
                format!("{}@{} is a version and cannot change; fork it to write", self.name, view.time),
            )),
            None => Ok(()),
        }
    }

    /// Plans and commits one change, for principals that may change all of the world: `Durable` on return when asked, in the log
    /// in any case.
    pub(crate) fn change<T>(
        &self,
        verb: Verb,
        durability: Durability,
        plan: impl FnOnce(&mut Txn<'_>) -> Result<T>,
    ) -> Result<T> {
        self.need_writable()?;
        self.commit(verb, durability, plan)
    }

    /// Plans and commits one change that was asked about.
    pub(crate) fn change_with<T>(
        &self,
        _: Permit,
        verb: Verb,
        durability: Durability,
        plan: impl FnOnce(&mut Txn<'_>) -> Result<T>,
    ) -> Result<T> {
        self.need_now()?;
        self.commit(verb, durability, plan)
    }

    fn commit<T>(&self, verb: Verb, durability: Durability, plan: impl FnOnce(&mut Txn<'_>) -> Result<T>) -> Result<T> {
        let what = Mutation { who: Some(&self.who), verb, durability, origin: self.origin };
        self.store.mutate(&self.world, &what, plan)
    }

    /// Returns whether everything of this world that was done before the call is durable already.
    pub fn is_synced(&self) -> bool {
        let head = self.world.head.lock();
        head.durable >= head.seq
    }

    /// Makes everything of this world that was done before the call durable.
    ///
    /// # Errors
    /// A sync failed: the store is read-only from now on.
    pub fn sync(&self) -> Result<()> {
        let (seq, loose, durable) = {
            let head = self.world.head.lock();
            (head.seq, head.is_loose(), head.durable)
        };
        if durable >= seq {
            return Ok(());
        }
        if loose {
            self.store.segments.sync()?;
        }
        let mut batch = mw_meta::Batch::new();
        batch.put(crate::layout::of(crate::layout::Tag::Mark, self.world.id), seq.0.to_be_bytes().to_vec());
        self.store.meta.commit(batch, Durability::Durable)?;
        let mut head = self.world.head.lock();
        head.durable = head.durable.max(seq);
        head.marked = head.marked.max(seq);
        Ok(())
    }
}

impl Store {
    /// Returns a session on a world.
    ///
    /// # Errors
    /// For a scoped key, any world that it may not read, existing or not, well named or not, is the same `Denied`. For the root
    /// key: `Invalid` for a name out of the rules, `NotFound` for a missing world.
    pub fn session(self: &Arc<Self>, who: &Principal, world: &str) -> Result<Session> {
        // Who may reach every world, or every world of such a name, may know which there are.
        let everything = who.everything().is_some() || who.key.power.names(world);
        let opened = match WorldName::new(world) {
            Ok(name) => self.find(&name),
            Err(rule) => Err(Error::invalid(rule)),
        };
        let opened = match opened {
            Err(e) if !everything && matches!(e.kind(), ErrorKind::Invalid | ErrorKind::NotFound) => {
                return Err(Error::denied());
            }
            other => other?,
        };
        let (reached, role) = {
            let record = opened.record.read();
            let place = Place { world: opened.id, name: world, owner: &record.owner };
            (who.touches(&place), who.role(opened.id, &record.owner))
        };
        if !reached {
            return Err(Error::denied());
        }
        Ok(Session::new(self.clone(), opened, who.clone(), role.unwrap_or(Role::Reader)))
    }
}
