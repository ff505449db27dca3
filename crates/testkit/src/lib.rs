//! The oracle: what a store of worlds must answer, written so plainly that it can be believed.
//!
//! Invariant: it shares nothing with the engine but the nouns of `model`. It keeps a whole copy of a world for every version,
//! compares by walking everything, and knows no disk, no thread, no clock: a version is a counter. Where the design leaves a
//! rule open, the choice made is written beside the code that makes it. Only for tests.
//!
//! - [`tree`]: one world at one instant: directories, files, links, attributes;
//! - `s3` and `posix`: what the two doors do to a [`Tree`]; `verbs`: the one place that tells their verbs apart;
//! - [`flat`]: a tree as a map from path to item, and the difference of two;
//! - [`merge`]: the three-way merge of such maps;
//! - [`model`]: worlds by name, with history, forks, snapshots, promote;
//! - [`op`]: every verb as a value that prints on one line;
//! - [`rng`] and [`generate`]: seeded operations with nasty names.
//!
//! A test draws [`random_op`]s, gives each to [`Model::apply`] and to the store, and compares results and content. Paths and keys
//! are UTF-8 here; names of other bytes need tests of their own.

pub mod flat;
pub mod generate;
pub mod merge;
pub mod model;
pub mod op;
mod posix;
pub mod rng;
mod s3;
pub mod tree;
mod verbs;

pub use flat::{Change, Flat, Item};
pub use generate::{random_key, random_name, random_op, random_verb};
pub use merge::{Conflict, ConflictKind, Merge};
pub use model::{Model, ModelWorld, Outcome};
pub use op::{Content, Exchange, Op, Policy, Verb};
pub use rng::Rng;
pub use s3::Listing;
pub use tree::{Inode, Node, Object, Tree};
