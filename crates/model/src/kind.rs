//! The kinds of error: few, and each tells the caller what to do next.

/// What went wrong, as far as a caller can act on it. Doors map each kind to their own code with one `match`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The named thing does not exist.
    NotFound,
    /// The named thing exists and must not.
    AlreadyExists,
    /// The principal may not do this, or the world is not its own (existing or not: one answer for both).
    Denied,
    /// Two changes contradict each other; nothing was applied.
    Conflict,
    /// A precondition named by the caller does not hold (If-Match and the like).
    Precondition,
    /// The input breaks a rule; the message says which.
    Invalid,
    /// A directory, or a world, still has content.
    NotEmpty,
    /// A directory stands where something else is needed.
    IsDirectory,
    /// Something else stands where a directory is needed.
    NotDirectory,
    /// A name, key or link is longer than its limit.
    NameTooLong,
    /// The content is larger than its limit.
    TooLarge,
    /// The disk is full.
    NoSpace,
    /// The world's quota is used up.
    Quota,
    /// A read-only version, mount or store was asked to change.
    ReadOnly,
    /// Somebody holds the thing; trying again later may work.
    Busy,
    /// Stored bytes do not verify. Never guessed around; reported by name.
    Corrupt,
    /// The operation is not offered, or not across this boundary.
    Unsupported,
    /// The time limit passed.
    Deadline,
    /// The operation was cancelled.
    Cancelled,
    /// The operating system refused; the source says how.
    Io,
}

impl ErrorKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 20] = [
        Self::NotFound,
        Self::AlreadyExists,
        Self::Denied,
        Self::Conflict,
        Self::Precondition,
        Self::Invalid,
        Self::NotEmpty,
        Self::IsDirectory,
        Self::NotDirectory,
        Self::NameTooLong,
        Self::TooLarge,
        Self::NoSpace,
        Self::Quota,
        Self::ReadOnly,
        Self::Busy,
        Self::Corrupt,
        Self::Unsupported,
        Self::Deadline,
        Self::Cancelled,
        Self::Io,
    ];

    /// Returns the kind whose stable name is `name`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns the stable lower-case name used in JSON and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::AlreadyExists => "already-exists",
            Self::Denied => "denied",
            Self::Conflict => "conflict",
            Self::Precondition => "precondition",
            Self::Invalid => "invalid",
            Self::NotEmpty => "not-empty",
            Self::IsDirectory => "is-directory",
            Self::NotDirectory => "not-directory",
            Self::NameTooLong => "name-too-long",
            Self::TooLarge => "too-large",
            Self::NoSpace => "no-space",
            Self::Quota => "quota",
            Self::ReadOnly => "read-only",
            Self::Busy => "busy",
            Self::Corrupt => "corrupt",
            Self::Unsupported => "unsupported",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
            Self::Io => "io",
        }
    }

    /// Returns the kind that a failed system call stands for.
    pub fn of_io(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull => Self::NoSpace,
            std::io::ErrorKind::QuotaExceeded => Self::Quota,
            std::io::ErrorKind::NotFound => Self::NotFound,
            std::io::ErrorKind::AlreadyExists => Self::AlreadyExists,
            std::io::ErrorKind::PermissionDenied => Self::Denied,
            std::io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Io,
        }
    }
}

impl std::fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
