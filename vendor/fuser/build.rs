//! The mount implementation is the one in Rust; nothing is linked.
fn main() {
    println!("cargo::rustc-cfg=fuser_mount_impl=\"pure-rust\"");
}
