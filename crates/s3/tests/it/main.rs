//! The S3 door over a real listener, spoken to by a client that signs for itself, so that every byte of a request can be wrong.

#![allow(clippy::type_complexity, reason = "a table says itself what is in it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod acl;
mod auth;
mod bad;
mod client;
mod cors;
mod form;
mod house;
mod keys;
mod list;
mod multipart;
mod objects;
mod operations;
mod posted;
mod scope;
mod streaming;
mod tigris;
mod versions;
