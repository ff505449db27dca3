//! Whose things are, as a mount shows it: one user and one group of the store stand for others on this machine.
//!
//! The two change places, so that every owner is shown as one and stored as one: what is not the one or the other is itself.

use mw_model::Attr;

/// Two numbers that change places: what the store has, and what the mount shows for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Swap(u32, u32);

impl Swap {
    fn other(self, id: u32) -> u32 {
        match id {
            id if id == self.0 => self.1,
            id if id == self.1 => self.0,
            id => id,
        }
    }
}

/// How owners are shown. By default as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Owners {
    user: Swap,
    group: Swap,
}

impl Owners {
    /// Shows user and group `stored` as `shown`.
    pub(crate) fn new(stored: (u32, u32), shown: (u32, u32)) -> Self {
        Self { user: Swap(stored.0, shown.0), group: Swap(stored.1, shown.1) }
    }

    /// Returns attributes with their owner as the mount shows it.
    pub(crate) fn shown(&self, attr: &Attr) -> Attr {
        Attr { uid: self.user.other(attr.uid), gid: self.group.other(attr.gid), ..*attr }
    }

    /// Returns the user that the store has for the one shown.
    pub(crate) fn user(&self, shown: u32) -> u32 {
        self.user.other(shown)
    }

    /// Returns the group that the store has for the one shown.
    pub(crate) fn group(&self, shown: u32) -> u32 {
        self.group.other(shown)
    }
}
