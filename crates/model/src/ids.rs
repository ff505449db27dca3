//! Ids. Each is a number with a type of its own, so that one cannot stand for another.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// A tenant. The embedded store has one, number 0.
    Tenant,
    u32
);
id!(
    /// A world's identity, never reused; its name may be reused after a delete.
    WorldId,
    u64
);
id!(
    /// One life of a writer: a restarted process never appends to the segments of its former life.
    Incarnation,
    u64
);
id!(
    /// An inode number, unique in the store (random prefix, counter leased in blocks). Forks keep it.
    Ino,
    u64
);
id!(
    /// The place of an entry in a world's log; the first entry is 1.
    Seq,
    u64
);
id!(
    /// An instant of a world's history: UNIX nanoseconds, strictly increasing in one world.
    Version,
    u64
);

impl Ino {
    /// The root directory of every world.
    pub const ROOT: Self = Self(1);
}
