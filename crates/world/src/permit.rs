//! Whether a session may do something, asked at the verb, about the very bytes that the verb acts on.
//!
//! For most keys a role on the whole world says it all, and these questions compare two numbers. For the others (grants narrowed to a
//! prefix or to verbs, policies, temporary keys) each is decided anew. A verb that asks nothing about its key is closed to them:
//! [`Session::need`] and [`Session::change`] then ask for the whole world.

use crate::allowed::Permit;
use crate::error::{Error, Result};
use crate::files::find;
use crate::power::{Place, least};
use crate::principal::Role;
use crate::session::Session;
use mw_model::policy::{Action, Context};
use mw_model::{ErrorKind, FileType, Ino};

/// What a principal may see at a path, whatever is there. Where it may see nothing, it is not even told that nothing is there.
pub(crate) struct Sight {
    /// The directory, with a slash behind it; none for a principal that sees all.
    above: Option<Vec<u8>>,
    file: bool,
    directory: bool,
}

impl Sight {
    /// Returns whether what was found under `name` may be seen; `raw` is its own name, which may be another one.
    pub(crate) fn shows(&self, session: &Session, name: &[u8], raw: &[u8], kind: FileType) -> bool {
        let Some(above) = &self.above else { return true };
        let own = raw.strip_suffix(b"/").unwrap_or(raw);
        if own != name && !raw.is_empty() {
            let other = session.sight(above, own);
            return other.is_ok_and(|sight| sight.of(kind));
        }
        self.of(kind)
    }

    fn of(&self, kind: FileType) -> bool {
        if kind == FileType::Directory { self.directory } else { self.file }
    }
}

impl Session {
    /// Returns whether roles on whole worlds do not say all that the principal may do, so that each verb is asked about for itself.
    pub fn is_limited(&self) -> bool {
        self.limited
    }

    fn context<'a>(&self, prefix: Option<&'a [u8]>) -> Context<'a> {
        Context { source: self.who.source(), now: self.store.env.now(), prefix }
    }

    fn asked<R>(&self, decide: impl FnOnce(&Place<'_>) -> R) -> R {
        let owner = self.world.record.read().owner.clone();
        decide(&Place { world: self.world.id, name: self.name.as_str(), owner: &owner })
    }

    /// Returns whether the principal may do, in all of the world, everything that a role stands for.
    pub fn allows(&self, role: Role) -> bool {
        if !self.limited {
            return self.role >= role;
        }
        let context = self.context(None);
        let power = &self.who.key.power;
        let within = |place: &Place<'_>| {
            Action::ALL.iter().filter(|a| least(**a) <= role).all(|a| power.covers(place, *a, &context))
        };
        self.asked(within)
    }

    /// Refuses a principal that may not do, in all of the world, everything that a role stands for.
    pub(crate) fn need(&self, role: Role) -> Result<()> {
        if self.allows(role) {
            return Ok(());
        }
        let held = if self.limited { "a part of it".to_owned() } else { self.role.to_string() };
        Err(Error::new(
            ErrorKind::Denied,
            format!("access denied: this needs the role {role} on world {}, the key has {held}", self.name),
        ))
    }

    /// Refuses a principal that may not do something with a key.
    pub(crate) fn may(&self, action: Action, key: &[u8]) -> Result<Permit> {
        let action = match (action, self.at.is_some()) {
            (Action::GetObject, true) => Action::GetObjectVersion,
            (action, _) => action,
        };
        self.decided(action, Some(key), None)
    }

    /// Returns whether the principal may put an object under a key.
    pub fn allows_put(&self, key: &[u8]) -> bool {
        self.at.is_none() && self.may(Action::PutObject, key).is_ok()
    }

    /// Refuses a principal that may delete nothing, whatever the key; each key is then asked about.
    pub(crate) fn may_delete(&self) -> Result<Permit> {
        if self.limited { Ok(Permit::given()) } else { self.may(Action::DeleteObject, b"") }
    }

    /// Refuses a principal that may not list what starts with a prefix.
    pub(crate) fn may_list(&self, action: Action, prefix: &[u8]) -> Result<Permit> {
        self.decided(action, None, Some(prefix))
    }

    fn decided(&self, action: Action, key: Option<&[u8]>, prefix: Option<&[u8]>) -> Result<Permit> {
        let allowed = match self.limited {
            false => self.role >= least(action),
            true => {
                let context = self.context(prefix);
                self.asked(|place| self.who.key.power.allows(place, action, key, &context))
            }
        };
        match allowed {
            true => Ok(Permit::given()),
            false if self.limited => Err(not_here(action)),
            false => Err(Error::new(
                ErrorKind::Denied,
                format!("access denied: {} needs the role {} on world {}", action.name(), least(action), self.name),
            )),
        }
    }

    /// Refuses what may not be done with an inode, by the path that it has; for what has none, all of the world is asked about.
    pub(crate) fn may_ino(&self, action: Action, ino: Ino) -> Result<Permit> {
        if !self.limited {
            return self.may(action, b"");
        }
        match self.path_found(ino)? {
            Some((path, links)) if links <= 1 || action == Action::GetObject => self.may(action, &path),
            // Another name of the file may lie where the key must not write.
            _ if self.allows(least(action)) => Ok(Permit::given()),
            _ => Err(not_here(action)),
        }
    }

    /// Refuses a principal that may see nothing under a name, in a directory that is given with a slash behind it: before anything is
    /// looked up, so that what is there and what is not give one answer.
    pub(crate) fn sight(&self, above: &[u8], name: &[u8]) -> Result<Sight> {
        if !self.limited {
            return Ok(Sight { above: None, file: true, directory: true });
        }
        let mut path = [above, name].concat();
        let file = !name.is_empty() && self.may(Action::GetObject, &path).is_ok();
        if !name.is_empty() {
            path.push(b'/');
        }
        let directory = self.asked(|place| self.who.key.power.touches(place, &path));
        match file || directory {
            true => Ok(Sight { above: Some(above.to_vec()), file, directory }),
            false => Err(not_here(Action::GetObject)),
        }
    }

    /// As [`Session::sight`], for a directory by its inode.
    pub(crate) fn sight_in(&self, parent: Ino, name: &[u8]) -> Result<Sight> {
        if !self.limited {
            return self.sight(b"", name);
        }
        let (above, _) = self.path_found(parent)?.ok_or_else(|| not_here(Action::GetObject))?;
        self.sight(&above, name)
    }

    /// Refuses to show an inode: a file that may not be read, a directory in which nothing may be reached.
    pub(crate) fn may_see(&self, ino: Ino) -> Result<()> {
        if !self.limited {
            return Ok(());
        }
        let Some((path, _)) = self.path_found(ino)? else {
            return if self.allows(Role::Reader) { Ok(()) } else { Err(not_here(Action::GetObject)) };
        };
        if ino == Ino::ROOT || path.ends_with(b"/") {
            let seen = self.asked(|place| self.who.key.power.touches(place, &path));
            return if seen { Ok(()) } else { Err(not_here(Action::GetObject)) };
        }
        self.may(Action::GetObject, &path).map(|_| ())
    }

    /// Refuses what may not be done with a name in a directory. A directory is its path with a slash.
    pub(crate) fn may_entry(&self, action: Action, parent: Ino, name: &[u8]) -> Result<Permit> {
        if !self.limited {
            return self.may(action, b"");
        }
        let mut path = self.path_found(parent)?.ok_or_else(|| not_here(action))?.0;
        path.extend_from_slice(name);
        if find(&self.view(), parent, name)?.is_some_and(|(_, entry)| entry.kind == FileType::Directory) {
            path.push(b'/');
        }
        self.may(action, &path)
    }

    fn path_found(&self, ino: Ino) -> Result<Option<(Vec<u8>, u32)>> {
        let view = self.view();
        let Some(inode) = view.find_inode(ino)? else { return Ok(None) };
        let links = if inode.kind == FileType::Directory { 1 } else { inode.nlink };
        Ok(crate::names::path_of(&view, ino)?.map(|path| (path.to_vec(), links)))
    }
}

/// The one refusal of a narrowed key, whatever is there or is not.
fn not_here(action: Action) -> Error {
    Error::new(
        ErrorKind::Denied,
        format!("access denied: the key's grants and policies do not allow {} here", action.name()),
    )
}
