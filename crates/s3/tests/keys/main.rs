//! Keys, policies and signatures over a real listener: who may do what, and who is not believed.

#![allow(clippy::type_complexity, reason = "a table says itself what is in it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, reason = "the client and the house are those of the other tests of this door")]

mod calls;
#[path = "../it/client.rs"]
mod client;
mod forms;
mod holes;
#[path = "../it/house.rs"]
mod house;
mod iam;
mod lifetime;
mod matrix;
mod mutants;
mod narrow;
#[path = "../it/operations.rs"]
mod operations;
mod policies;
#[path = "../it/posted.rs"]
mod posted;
mod sts;
