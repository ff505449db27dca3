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
mod memory;
mod mount;
mod objects;
mod promote;
mod table;
mod worlds;

use client::Server;
use std::path::PathBuf;
use std::time::Instant;

/// The sizes of worlds that are compared.
pub fn sizes(files: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = [1_000, 100_000, 1_000_000].into_iter().map(|n: usize| n.min(files)).collect();
    sizes.dedup();
    sizes
}

fn main() {
    // A directory of its own in there: it is removed.
    let dir = std::env::var_os("MW_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from).join("mw-bench");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let files: usize = std::env::var("MW_BENCH_FILES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let only = std::env::args().nth(1).unwrap_or_default();
    println!("worlds of up to {files} files; every figure is this machine's, at this moment; compare within a table\n");
    let mut server = Server::start(&dir.join("data"));
    let begun = Instant::now();
    let wanted = |part: &str| only.is_empty() || part.contains(&only);
    // First, while the server has done nothing else that could have been its peak.
    if wanted("memory") {
        memory::run(&server, files);
    }
    if wanted("forks") {
        forks::run(&mut server, files);
    }
    if wanted("promote") {
        promote::run(&server, files);
    }
    if wanted("objects") {
        objects::run(&server, &dir);
    }
    if wanted("mount") {
        mount::run(&server, &dir);
    }
    table::title("in all");
    table::row("peak resident set of the last server", &format!("{} MiB", server.peak_mib()), "");
    table::row("time", &format!("{:.1} min", begun.elapsed().as_secs_f64() / 60.0), "aim: at most 30 min");
    drop(server);
    let _ = std::fs::remove_dir_all(&dir);
}
