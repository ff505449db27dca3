//! `make bench`: the figures of the whole product, taken through its public doors against a real server.
//!
//! Each row stands beside its limit or peer, measured in the same run on the same disk, since absolute times on shared machines
//! say little. `MW` is the binary to start; `MW_BENCH_DIR` the folder to work in (a disk, not a tmpfs); `MW_BENCH_FILES` the size
//! of the largest world (default 1,000,000).
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench may fail loudly and reads the clock"
)]

mod client;
mod forks;
mod mount;
mod objects;
mod promote;
mod table;

use client::Server;
use std::path::PathBuf;

fn main() {
    let dir = std::env::var_os("MW_BENCH_DIR").map_or_else(|| std::env::temp_dir().join("mw-bench"), PathBuf::from);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let files: usize = std::env::var("MW_BENCH_FILES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let only = std::env::args().nth(1).unwrap_or_default();
    println!("worlds of up to {files} files; every figure is this machine's, at this moment; compare within a table\n");
    let mut server = Server::start(&dir.join("data"));
    if only.is_empty() || "objects".contains(&only) {
        objects::run(&server, &dir);
    }
    if only.is_empty() || "forks".contains(&only) {
        forks::run(&mut server, files);
    }
    if only.is_empty() || "promote".contains(&only) {
        promote::run(&server, files);
    }
    if only.is_empty() || "mount".contains(&only) {
        mount::run(&server, &dir);
    }
    table::title("memory of the server at the end");
    table::row("peak resident set", &format!("{} MiB", server.peak_mib()), "budget of the caches: 1024 MiB");
    drop(server);
    let _ = std::fs::remove_dir_all(&dir);
}
