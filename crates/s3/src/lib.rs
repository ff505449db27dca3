//! The S3 door: buckets are worlds, keys are paths, and every verb is one call of a `Session`.
//!
//! A request passes five rooms, each of which knows only its own work:
//!
//! 1. `guard` refuses what no later room should have to think about (SigV2, two credentials at once, unsigned vendor headers);
//! 2. `s3s` verifies the signature, with the secrets of `auth` and nothing else configured: it authenticates and does not route;
//! 3. `verified` resolves the principal, takes the conditional and range headers out and reads small bodies whole;
//! 4. what Tigris's clients ask for beside S3 (`vendor`: its headers; `dialect`: its errors) is done by `tigris`;
//! 5. `s3s` again, without authentication, decodes the operation and calls `verbs`, one file per family.
//!
//! Calls of IAM and STS come by the same listener and the same verifier; `iam` answers them.
//!
//! So one verifier stands before the router, and what a verb acts on are the same bytes that were authorised. The door never
//! names nodes or segments; errors become S3 codes in `errors` alone.

mod acl;
mod auth;
mod body;
#[cfg(test)]
mod broken;
mod bucket;
mod bucket_tags;
mod chunks;
mod conditions;
mod contents;
mod copy;
mod copy_part;
mod cors;
mod delete;
mod dialect;
mod digest;
mod door;
mod errors;
mod form;
mod get;
mod guard;
mod host;
mod iam;
mod list;
mod meta;
mod multipart;
mod names;
mod owner;
mod parameters;
mod pool;
mod presign;
mod put;
mod router;
mod share;
mod source;
mod tags;
mod target;
mod tigris;
mod vendor;
mod verbs;
mod verified;
mod versions;

pub use auth::Encrypted;
pub use door::{S3Door, S3Options, service};
pub use presign::{Presign, presign};
