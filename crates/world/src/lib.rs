//! The domain: worlds. A namespace with a log, forked in constant time, read at any past instant, compared, promoted.
//!
//! A door holds a [`Session`] (world and principal) and calls one verb of it. Protocols are not known here.
//!
//! - [`Store`]: all worlds of a process; [`Options`]; `fork` (worlds made), `snapshot`, `time`;
//! - `world`: an open world; `mutate`: the one way to change it; `txn`: one mutation being planned;
//!   `view`: a world at one instant; `state`: what a root and log ranges stand for;
//! - `entry`: one entry of the log; `recover`: opening a world after a crash; `fold`: the overlay goes into the tree;
//! - `record`: the records of the tree; `content`: pieces of bytes; `layout`: the keys of `meta`;
//! - `files`: the POSIX verbs; `objects`: the S3 verbs;
//! - `object`, `names`: records read as objects and as paths; `versioning`, `versions`: what S3 replaced or deleted, kept under its key;
//! - `diff`, `merge` (decided without I/O), `promote`: worlds compared, and one brought to the other; revert, restore;
//!   `sync`: what a fork and its base last had in common;
//! - `delete`, `sweep`: space given back; `fsck`: everything proved; `history`: who did what; `usage`: how much there is;
//! - `principal`, `keys`, `key_record`, `sealing`, `temporary`: keys, grants, roles; `policy`, `policies`: what narrows and widens them;
//!   `power` decides, without I/O, and `permit` asks at every verb; `once`: idempotency keys; `listener`: what mounts must hear; `orphan`;
//!   `setting`: what a door keeps with a world; `locks`: advisory locks of open files, which no world's state has.

mod allowed;
mod buffers;
mod content;
mod delete;
mod diff;
mod entry;
mod error;
mod files;
mod fold;
mod fork;
mod fsck;
mod history;
mod key_record;
mod keys;
mod layout;
mod listener;
mod locks;
mod merge;
mod mutate;
mod names;
mod object;
mod objects;
mod once;
mod orphan;
mod permit;
mod policies;
mod policy;
mod policy_record;
mod power;
mod principal;
mod promote;
mod quota;
mod quotas;
mod record;
mod recover;
mod retention;
mod role;
mod root_file;
mod sealing;
mod session;
mod setting;
mod snapshot;
mod state;
mod store;
mod sweep;
mod sync;
mod temporary;
mod time;
mod txn;
mod usage;
mod versioning;
mod versions;
mod view;
mod world;

pub use delete::Freed;
pub use diff::{Change, DiffEntry, diff};
pub use error::{Error, Result};
pub use files::{
    Allocate, Dir, DirEntry, ESCAPE, Make, RenameFlag, SeekFor, SetAttr, SetTime, StatFs, WriteAt, Written, XattrFlag,
    escaped,
};
pub use fork::{CreateOptions, ForkOptions, Parent, WorldInfo};
pub use fsck::Fsck;
pub use history::{LogEntry, LogQuery};
pub use key_record::seal_secrets;
pub use keys::{Grant, KeyInfo, KeyRequest};
pub use listener::{Changed, Listener, Subscription};
pub use locks::{HeldLock, LockEnd, LockKind, LockReach, LockSpan, Locker, WantedLock};
pub use merge::{Combine, Conflict, ConflictKind, Policy, Side};
pub use object::{Brief, Checksum, ChecksumAlgorithm, ObjectInfo, ObjectMeta, PartSums, SumKind};
pub use objects::{
    BriefListing, Conditions, CopyOptions, Deleted, ListRequest, Listed, ListedVersion, Listing, Marker, Object,
    PartCopy, PartInfo, PartSaid, PutOptions, RenameOptions, Shown, Staged, Stretch, UploadInfo, UploadOptions,
    Versioned, VersionsListing, VersionsRequest,
};
pub use policy_record::PolicyInfo;
pub use power::Verbs;
pub use principal::{Principal, Role};
pub use promote::{PromoteOptions, Promoted};
pub use quota::{Held, Quota};
pub use retention::Retention;
pub use root_file::{Put, RootFile};
pub use sealing::SealingKey;
pub use session::Session;
pub use snapshot::Snapshot;
pub use store::{Options, Secret, Store};
pub use sweep::Swept;
pub use temporary::{Bounds, Temporary};
pub use time::At;
pub use usage::{Estimate, Status, Usage};
pub use versioning::{VersionId, Versioning};
