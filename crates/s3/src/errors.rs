//! The one place where errors of the engine become S3 error codes.
//!
//! One `match` without wildcard, so that a new kind cannot be forgotten. A refusal says the same for a world that exists and for
//! one that does not; the inside of the store is logged and never sent.

use mw_model::ErrorKind;
use s3s::{S3Error, S3ErrorCode};

/// What the failed call was about: the same kind reads differently for a bucket and for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// A world, that is a bucket.
    World,
    /// An object.
    Key,
    /// A multipart upload.
    Upload,
    /// An instant of a world, or a snapshot.
    Version,
}

/// The text of every refusal, whatever was refused.
const DENIED: &str = "Access Denied";

/// Makes an error with a code and a text.
pub(crate) fn error(code: S3ErrorCode, message: impl Into<String>) -> S3Error {
    S3Error::with_message(code, message.into())
}

/// Makes an error whose code `s3s` does not know, with its HTTP status.
pub(crate) fn custom(code: &'static str, status: u16, message: impl Into<String>) -> S3Error {
    let mut error = error(S3ErrorCode::Custom(code.into()), message);
    if let Ok(status) = hyper::StatusCode::from_u16(status) {
        error.set_status_code(status);
    }
    error
}

/// Makes the one refusal.
pub(crate) fn denied() -> S3Error {
    error(S3ErrorCode::AccessDenied, DENIED)
}

/// Makes the answer to a failure inside the store; `what` goes to the log.
pub(crate) fn internal(what: &dyn std::fmt::Display) -> S3Error {
    tracing::error!(error = %what, "the S3 door could not answer");
    error(S3ErrorCode::InternalError, "We encountered an internal error. Please try again.")
}

/// Turns an error of the engine into its S3 code and text.
pub(crate) fn of(error: &mw_world::Error, about: About) -> S3Error {
    map(error.kind(), error.to_string(), about)
}

fn map(kind: ErrorKind, text: String, about: About) -> S3Error {
    match kind {
        ErrorKind::NotFound if text.starts_with("NoSuchVersion") => {
            error(S3ErrorCode::NoSuchVersion, "The specified version does not exist.")
        }
        // The condition of an upload's end is about the key, which is missing, and not about the upload, which is there.
        ErrorKind::NotFound if text.starts_with("NoSuchKey") => missing(About::Key),
        ErrorKind::NotFound if about == About::Version => error(S3ErrorCode::NoSuchVersion, text),
        ErrorKind::NotFound => missing(about),
        ErrorKind::AlreadyExists => match about {
            // A fork of an instant makes a bucket too.
            About::World | About::Version => error(
                S3ErrorCode::BucketAlreadyOwnedByYou,
                "The bucket already exists: your previous request to create it succeeded and you already own it.",
            ),
            About::Key | About::Upload => error(S3ErrorCode::OperationAborted, text),
        },
        ErrorKind::Denied => denied(),
        ErrorKind::Conflict => error(
            S3ErrorCode::OperationAborted,
            "A conflicting operation is in progress against this resource. Please try again.",
        ),
        ErrorKind::Precondition => precondition(),
        ErrorKind::Invalid => invalid(text, about),
        ErrorKind::NotEmpty => error(S3ErrorCode::BucketNotEmpty, "The bucket you tried to delete is not empty."),
        ErrorKind::IsDirectory | ErrorKind::NotDirectory => error(S3ErrorCode::InvalidRequest, text),
        ErrorKind::NameTooLong => error(S3ErrorCode::KeyTooLongError, "Your key is too long."),
        ErrorKind::TooLarge => error(S3ErrorCode::EntityTooLarge, text),
        ErrorKind::NoSpace => custom("InsufficientStorage", 507, "The store has no space left."),
        ErrorKind::Quota => custom("QuotaExceeded", 403, text),
        ErrorKind::ReadOnly => error(S3ErrorCode::MethodNotAllowed, text),
        ErrorKind::Busy => error(S3ErrorCode::SlowDown, "SlowDown: please reduce your request rate."),
        ErrorKind::Unsupported => error(S3ErrorCode::NotImplemented, text),
        ErrorKind::Deadline | ErrorKind::Cancelled => {
            error(S3ErrorCode::ServiceUnavailable, "The request was not completed. Please try again.")
        }
        ErrorKind::Corrupt | ErrorKind::Io => internal(&text),
    }
}

/// Makes the answer to a condition that does not hold.
pub(crate) fn precondition() -> S3Error {
    error(S3ErrorCode::PreconditionFailed, "At least one of the preconditions you specified did not hold.")
}

/// Makes the answer for a thing that is not there. Clients look for these very words.
pub(crate) fn missing(about: About) -> S3Error {
    match about {
        About::World => error(S3ErrorCode::NoSuchBucket, "NoSuchBucket: the specified bucket does not exist"),
        About::Key => error(S3ErrorCode::NoSuchKey, "The specified key does not exist."),
        About::Version => error(S3ErrorCode::NoSuchVersion, "The specified version does not exist."),
        About::Upload => error(
            S3ErrorCode::NoSuchUpload,
            "The specified multipart upload does not exist. The upload ID might be invalid, or the multipart upload might have \
             been aborted or completed.",
        ),
    }
}

/// The engine names the rule of S3 that was broken in the first word of its text.
fn invalid(text: String, about: About) -> S3Error {
    let word = text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    match (word, about) {
        ("InvalidPart", _) => error(
            S3ErrorCode::InvalidPart,
            "One or more of the specified parts could not be found. The part might not have been uploaded, or the specified \
             entity tag might not have matched the part's entity tag.",
        ),
        ("InvalidPartOrder", _) => part_order(),
        ("EntityTooSmall", _) => {
            error(S3ErrorCode::EntityTooSmall, "Your proposed upload is smaller than the minimum allowed object size.")
        }
        ("InvalidRequest", _) => error(S3ErrorCode::InvalidRequest, text),
        (_, About::World) => error(S3ErrorCode::InvalidBucketName, "The specified bucket is not valid."),
        (_, About::Key | About::Upload | About::Version) => error(S3ErrorCode::InvalidArgument, text),
    }
}

/// Makes the answer to a list of parts that does not ascend.
pub(crate) fn part_order() -> S3Error {
    error(
        S3ErrorCode::InvalidPartOrder,
        "The list of parts was not in ascending order. Parts must be ordered by part number.",
    )
}

/// Makes the answer to a digest that does not match the bytes.
pub(crate) fn bad_digest(which: &str) -> S3Error {
    error(S3ErrorCode::BadDigest, format!("The {which} you specified did not match what we received."))
}

#[cfg(test)]
mod tests;
