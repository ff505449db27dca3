//! `mw`: the only binary.
fn main() {}
