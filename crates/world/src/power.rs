//! What a principal may do, decided: grants, policies, and whatever stands above it.
//!
//! Invariant: a power that stands under another never allows what that one does not, and a policy that denies wins over every grant.
//! Nothing here performs I/O.

use crate::role::Role;
use bytes::Bytes;
use mw_model::WorldId;
use mw_model::policy::{Action, Class, Context, Decision, Policy};
use std::sync::Arc;

/// What a grant reaches. A world is named by identity, so that a later world of the same name is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// Every world, and making new ones.
    Everything,
    World(WorldId),
}

/// The classes of actions that a grant is narrowed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Verbs(pub(crate) u8);

impl Verbs {
    /// All of them: the grant is not narrowed.
    pub const ALL: Self = Self(31);
    const NAMES: [(&'static str, Class); 5] = [
        ("get", Class::Get),
        ("list", Class::List),
        ("put", Class::Put),
        ("delete", Class::Delete),
        ("world", Class::World),
    ];

    fn bit(class: Class) -> u8 {
        match class {
            Class::Get => 1,
            Class::List => 2,
            Class::Put => 4,
            Class::Delete => 8,
            Class::World => 16,
        }
    }

    fn has(self, class: Class) -> bool {
        self.0 & Self::bit(class) != 0
    }

    /// Reads names joined by `+`, such as `get+list`; none for a name that is unknown.
    pub fn parse(text: &str) -> Option<Self> {
        text.split('+').try_fold(Self(0), |verbs, word| {
            let (_, class) = Self::NAMES.iter().find(|(name, _)| *name == word)?;
            Some(Self(verbs.0 | Self::bit(*class)))
        })
    }
}

impl std::fmt::Display for Verbs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = Self::NAMES.iter().filter(|(_, class)| self.has(*class)).map(|(name, _)| *name).collect();
        f.write_str(&names.join("+"))
    }
}

/// A grant as it is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub scope: Scope,
    pub role: Role,
    pub verbs: Verbs,
    /// The start of every key that it reaches; empty: all of the world.
    pub prefix: Bytes,
}

impl Held {
    pub(crate) fn plain(&self) -> bool {
        self.verbs == Verbs::ALL && self.prefix.is_empty()
    }

    fn reaches(&self, world: WorldId) -> bool {
        self.scope == Scope::Everything || self.scope == Scope::World(world)
    }

    fn does(&self, action: Action) -> bool {
        self.role >= least(action) && self.verbs.has(action.class())
    }

    fn allows(&self, world: WorldId, action: Action, key: Option<&[u8]>, listed: Option<&[u8]>) -> bool {
        let within = match key {
            Some(key) => key.starts_with(&self.prefix),
            None if self.prefix.is_empty() || action == Action::GetBucketLocation => true,
            None => action.class() == Class::List && listed.is_some_and(|p| p.starts_with(&self.prefix)),
        };
        self.reaches(world) && self.does(action) && within
    }
}

/// The smallest role that allows an action.
pub(crate) fn least(action: Action) -> Role {
    use Action as A;
    match action {
        A::GetObject
        | A::GetObjectVersion
        | A::GetObjectAttributes
        | A::GetObjectTagging
        | A::GetObjectAcl
        | A::ListMultipartUploadParts
        | A::ListBucket
        | A::ListBucketVersions
        | A::ListBucketMultipartUploads
        | A::GetBucketLocation
        | A::GetBucketVersioning
        | A::GetBucketCors
        | A::GetBucketAcl
        | A::ReadHistory => Role::Reader,
        A::PutObject
        | A::PutObjectTagging
        | A::DeleteObjectTagging
        | A::PutObjectAcl
        | A::AbortMultipartUpload
        | A::DeleteObject
        | A::DeleteObjectVersion
        | A::Snapshot => Role::Editor,
        A::PutBucketVersioning
        | A::PutBucketCors
        | A::PutBucketAcl
        | A::DeleteBucket
        | A::Fork
        | A::Promote
        | A::ManageKeys => Role::Admin,
    }
}

/// The world that is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub world: WorldId,
    pub name: &'a str,
    /// The key that made the world; empty for the root key.
    pub owner: &'a str,
}

impl Place<'_> {
    fn resource(&self, key: Option<&[u8]>) -> Vec<u8> {
        let mut resource = self.name.as_bytes().to_vec();
        if let Some(key) = key {
            resource.push(b'/');
            resource.extend_from_slice(key);
        }
        resource
    }
}

/// What a principal may do.
#[derive(Debug, Default)]
pub(crate) struct Power {
    pub root: bool,
    /// The key under which it owns worlds; empty: it owns none.
    pub owner: String,
    pub grants: Vec<Held>,
    pub policies: Vec<Policy>,
    /// What bounds it.
    pub above: Option<Arc<Self>>,
}

impl Power {
    fn owns(&self, place: &Place<'_>) -> bool {
        self.root || (!self.owner.is_empty() && self.owner == place.owner)
    }

    /// Whether roles on whole worlds say all there is to say, so that no action needs to be decided alone.
    pub(crate) fn plain(&self) -> bool {
        self.policies.is_empty() && self.grants.iter().all(Held::plain) && self.above.as_ref().is_none_or(|p| p.plain())
    }

    /// Returns the role on everything.
    pub(crate) fn everything(&self) -> Option<Role> {
        let own = match self.root {
            true => Some(Role::Admin),
            false => self.roles(|held| held.scope == Scope::Everything),
        };
        self.bounded(own, Self::everything)
    }

    /// Returns the role on all of a world. Policies are not looked at: it says what is allowed only when the power is plain.
    pub(crate) fn role(&self, world: WorldId, owner: &str) -> Option<Role> {
        let own = match self.owns(&Place { world, name: "", owner }) {
            true => Some(Role::Admin),
            false => self.roles(|held| held.reaches(world)),
        };
        self.bounded(own, |above| above.role(world, owner))
    }

    fn roles(&self, of: impl Fn(&Held) -> bool) -> Option<Role> {
        self.grants.iter().filter(|held| held.plain() && of(held)).map(|held| held.role).max()
    }

    fn bounded(&self, own: Option<Role>, bound: impl Fn(&Self) -> Option<Role>) -> Option<Role> {
        match &self.above {
            Some(above) => Some(own?.min(bound(above)?)),
            None => own,
        }
    }

    /// Decides about one key of a world, or, without one, about the world as a bucket.
    pub(crate) fn allows(&self, place: &Place<'_>, action: Action, key: Option<&[u8]>, context: &Context<'_>) -> bool {
        let granted =
            self.owns(place) || self.grants.iter().any(|h| h.allows(place.world, action, key, context.prefix));
        let resource = place.resource(key);
        self.settled(granted, self.policies.iter().map(|p| p.decide(action, &resource, context)))
            && self.above.as_ref().is_none_or(|above| above.allows(place, action, key, context))
    }

    /// Decides about a world with every key that it has or will have.
    pub(crate) fn covers(&self, place: &Place<'_>, action: Action, context: &Context<'_>) -> bool {
        let all = |h: &Held| h.prefix.is_empty() && h.reaches(place.world) && h.does(action);
        let granted = self.owns(place) || self.grants.iter().any(all);
        self.settled(granted, self.policies.iter().map(|p| p.covers(action, place.name, context)))
            && self.above.as_ref().is_none_or(|above| above.covers(place, action, context))
    }

    fn settled(&self, granted: bool, said: impl Iterator<Item = Decision>) -> bool {
        let mut allowed = granted;
        for decision in said {
            match decision {
                Decision::Deny => return false,
                Decision::Allow => allowed = true,
                Decision::Silent => {}
            }
        }
        allowed
    }

    /// Whether something may be allowed under a path of a world. In doubt, yes: every step behind it is decided again.
    pub(crate) fn touches(&self, place: &Place<'_>, path: &[u8]) -> bool {
        let near = |h: &Held| h.reaches(place.world) && (path.starts_with(&h.prefix) || h.prefix.starts_with(path));
        let start = place.resource(Some(path));
        (self.owns(place)
            || self.grants.iter().any(near)
            || self.policies.iter().any(|p| p.touches(&start) || (path.is_empty() && p.touches(place.name.as_bytes()))))
            && self.above.as_ref().is_none_or(|above| above.touches(place, path))
    }

    /// Whether a policy may reach a world of that name, be there one or not.
    pub(crate) fn names(&self, name: &str) -> bool {
        let bucket = [name.as_bytes(), b"/"].concat();
        self.policies.iter().any(|p| p.touches(&bucket))
            && self.above.as_ref().is_none_or(|above| above.everything().is_some() || above.names(name))
    }
}
