//! `make bench-s3`: one S3 server beside others in the same run, row by row in turns, on the same disk.
//!
//! `bench_s3 PART SERVER...`, where a server is `NAME=HOST:PORT=ID=SECRET=PID`: the first is ours, and the second the one that ratios are
//! taken to. Parts, each a table of its own:
//!
//! - `syncs`: 200 puts of 4 KiB with the one server named, for whoever counts system calls;
//! - `objects`: small and large objects, copies, memory under 64 uploads at once;
//! - `fill`: the keys for the next part;
//! - `list`: lists and forks them.
//!
//! `MW_BENCH_KEYS` (1,000,000) is how many keys there are, `MW_BENCH_LARGE` (1,024) the large object in MiB, `MW_BENCH_UPLOAD` (64) how many
//! MiB each of 64 uploads at once has, `MW_BENCH_TIME` (4) how many seconds a row of small objects runs with each server, and
//! `MW_BENCH_DIR` where the disk is measured.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench may fail loudly and reads the clock"
)]

#[allow(dead_code, reason = "the other bench uses more of it")]
#[path = "../bench/client.rs"]
mod client;
mod disk;
mod keys;
mod objects;
mod peer;
mod table;

use peer::{Peer, ok};
use std::time::{Duration, Instant};

/// How often large rows are done with each server; the best counts, since others use the machine too.
const TRIES: usize = 3;

pub struct Settings {
    pub keys: usize,
    pub large: usize,
    pub upload: usize,
    pub time: Duration,
    pub dir: std::path::PathBuf,
}

impl Settings {
    fn read() -> Self {
        let number = |name: &str, usual| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
        Self {
            keys: number("MW_BENCH_KEYS", 1_000_000),
            large: number("MW_BENCH_LARGE", 1_024),
            upload: number("MW_BENCH_UPLOAD", 64),
            time: Duration::from_secs(number("MW_BENCH_TIME", 4) as u64),
            dir: std::env::var_os("MW_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into),
        }
    }
}

pub fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// The median time of a durable put of one byte, in milliseconds: what whole operations are held against.
pub fn one_byte(peer: &Peer) -> f64 {
    let mut client = peer.client();
    let put = |n: usize| 1e3 * timed(|| drop(ok(&mut client, "PUT", &format!("/bench/byte/{n}"), &[], b"x")));
    median((0..51).map(put).collect())
}

pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let part = arguments.next().unwrap_or_default();
    let peers: Vec<Peer> =
        arguments.map(|text| Peer::parse(&text).expect("a server is NAME=HOST:PORT=ID=SECRET=PID")).collect();
    assert!(!peers.is_empty(), "usage: bench_s3 syncs|objects|fill|list NAME=HOST:PORT=ID=SECRET=PID...");
    let settings = Settings::read();
    match part.as_str() {
        "syncs" => {
            let mut client = peers[0].client();
            (0..200).for_each(|n| drop(ok(&mut client, "PUT", &format!("/bench/syncs/{n}"), &[], &[7; 4096])));
        }
        "objects" => objects::run(&peers, &settings),
        "fill" => keys::fill(&peers, &settings),
        "list" => keys::list(&peers, &settings),
        other => panic!("there is no part {other:?}: syncs, objects, fill or list"),
    }
}
