//! The one table from error kinds to errno, and the three places where a missing thing has an errno of its own.

use fuser::Errno;
use mw_model::ErrorKind;
use mw_world::Error;

/// Returns the errno of a verb that names its target (parent and name).
pub(crate) fn errno(error: &Error) -> Errno {
    let errno = of_kind(error.kind());
    if errno == Errno::EIO {
        // The program sees two letters; the log has the sentence.
        tracing::error!(kind = %error.kind(), "{error}");
    }
    errno
}

/// Returns the errno of a verb that holds its target by inode. The inode is gone although the kernel knows it, so
/// ESTALE: the kernel then walks the path again by itself, and a program with a path never sees it.
pub(crate) fn held(error: &Error) -> Errno {
    match error.kind() {
        ErrorKind::NotFound => Errno::ESTALE,
        _ => errno(error),
    }
}

/// Returns the errno of a verb on an extended attribute.
pub(crate) fn xattr(error: &Error) -> Errno {
    match error.kind() {
        ErrorKind::NotFound => Errno::ENODATA,
        ErrorKind::TooLarge => Errno::E2BIG,
        _ => errno(error),
    }
}

/// Returns the errno of `SEEK_DATA` and `SEEK_HOLE`.
pub(crate) fn seek(error: &Error) -> Errno {
    match error.kind() {
        ErrorKind::NotFound => Errno::ENXIO,
        _ => errno(error),
    }
}

fn of_kind(kind: ErrorKind) -> Errno {
    match kind {
        ErrorKind::NotFound => Errno::ENOENT,
        ErrorKind::AlreadyExists => Errno::EEXIST,
        ErrorKind::Denied => Errno::EACCES,
        ErrorKind::Conflict => Errno::EAGAIN,
        ErrorKind::Precondition => Errno::EIO,
        ErrorKind::Invalid => Errno::EINVAL,
        ErrorKind::NotEmpty => Errno::ENOTEMPTY,
        ErrorKind::IsDirectory => Errno::EISDIR,
        ErrorKind::NotDirectory => Errno::ENOTDIR,
        ErrorKind::NameTooLong => Errno::ENAMETOOLONG,
        ErrorKind::TooLarge => Errno::EFBIG,
        ErrorKind::NoSpace => Errno::ENOSPC,
        ErrorKind::Quota => Errno::EDQUOT,
        ErrorKind::ReadOnly => Errno::EROFS,
        ErrorKind::Busy => Errno::EBUSY,
        ErrorKind::Corrupt => Errno::EIO,
        ErrorKind::Unsupported => Errno::EOPNOTSUPP,
        ErrorKind::Deadline => Errno::ETIMEDOUT,
        ErrorKind::Cancelled => Errno::ECANCELED,
        ErrorKind::Io => Errno::EIO,
    }
}
