//! A refusal as a model reads it: the kind, what is wrong, and what to do next.

use mw_model::ErrorKind;

/// The result of this crate's calls.
pub(crate) type Result<T> = std::result::Result<T, Refusal>;

/// Why a tool did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: ErrorKind,
    message: String,
    /// What to do next, where the message does not say it already.
    next: Option<String>,
}

impl Refusal {
    /// Makes a refusal with the advice that its kind gives.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), next: Some(advice(kind).to_owned()) }
    }

    /// Makes a refusal whose message says what to do.
    pub(crate) fn plain(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), next: None }
    }

    /// Makes a refusal of arguments, whose message says what is wrong with them.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::plain(ErrorKind::Invalid, message)
    }

    /// Returns the refusal as the text of a tool's result.
    pub(crate) fn text(&self) -> String {
        match &self.next {
            None => format!("{}: {}", self.kind, self.message),
            Some(next) => format!("{}: {}. {next}", self.kind, self.message.trim_end_matches('.')),
        }
    }
}

impl From<mw_world::Error> for Refusal {
    fn from(error: mw_world::Error) -> Self {
        if matches!(error.kind(), ErrorKind::Io | ErrorKind::Corrupt | ErrorKind::NoSpace) {
            tracing::error!(%error, "a tool failed");
        }
        Self::new(error.kind(), error.to_string())
    }
}

/// What to do after a refusal of a kind.
fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "Call `list` or `find` to see what is there.",
        ErrorKind::AlreadyExists => "Choose another name, or remove what stands there first.",
        ErrorKind::Denied => {
            "This key cannot be talked into more: go on with what it may do, or ask its owner for a wider grant."
        }
        ErrorKind::Conflict => "Nothing was changed: look at the present state and decide anew.",
        ErrorKind::Precondition => {
            "It changed since you looked: read it again, and repeat with the new etag if that still makes sense."
        }
        ErrorKind::Invalid => "Correct the arguments and call again.",
        ErrorKind::NotEmpty => "Set `recursive` to remove it with all that is in it.",
        ErrorKind::IsDirectory => "It is a directory: call `list` to see what is in it.",
        ErrorKind::NotDirectory => "A part of the path is no directory: call `list` on the part before it.",
        ErrorKind::NameTooLong => "Use shorter names: 255 bytes each, 1,024 bytes in all.",
        ErrorKind::TooLarge => "Work on a part of it at a time.",
        ErrorKind::NoSpace => "The disk of the store is full: stop writing and tell its owner.",
        ErrorKind::Quota => "The quota is used up: remove what is not needed, or ask the owner for more.",
        ErrorKind::ReadOnly => "A past instant cannot change: leave `at` out, or fork it and change the fork.",
        ErrorKind::Busy => "Try again in a moment.",
        ErrorKind::Corrupt => {
            "Stored bytes do not verify: do not rely on this file, and tell the store's owner to run `mw fsck`."
        }
        ErrorKind::Unsupported => "This is not offered: find another way.",
        ErrorKind::Deadline => "It took too long: ask for less at a time.",
        ErrorKind::Cancelled => "It was cancelled: call again if it is still wanted.",
        ErrorKind::Io => "The store failed; its log says more. Try again once, then tell its owner.",
    }
}
