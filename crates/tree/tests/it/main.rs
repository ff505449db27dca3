//! Behaviour of the tree, against `BTreeMap` as the oracle. Every test follows from a seed; none looks at a clock.

mod cost;
mod fault;
mod law;
mod oracle;
mod world;
