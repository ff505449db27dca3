//! What blobs cost: `cargo run --release -p mw-segments --example blobs [MIB]`. Text and noise, in pieces of 64 KiB, 16 at a time as a
//! mount writes them: stored, read into new memory, and read into memory that is there. Each is measured in
//! turns, so that what else the machine does falls on both; medians, of time and of the processor's time (where the machine is busy, only that
//! says anything).

#![allow(clippy::disallowed_methods, reason = "a stopwatch, not a part of the store")]

use mw_env::{Env, LocalDisk};
use mw_model::{Incarnation, WorldId};
use mw_segments::{BlobRef, Local, Owner, Segments};
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const PIECE: usize = 64 << 10;
const AT_A_TIME: usize = 16;
const ROUNDS: usize = 7;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mib: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(256);
    let dir = tempfile::tempdir()?;
    let segments = Local::open(Arc::new(LocalDisk::new(dir.path())?), Env::real())?;
    segments.adopt(&[])?;
    let owner = Owner { world: WorldId(1), incarnation: Incarnation(1) };
    for (name, content) in [("text", text()), ("noise", noise())] {
        let pieces: Vec<&[u8]> = content.chunks(PIECE).collect();
        let (mut blobs, mut out) = (Vec::new(), vec![0; PIECE]);
        let [mut stored, mut fresh, mut there] = [(); 3].map(|()| Vec::new());
        for _ in 0..ROUNDS {
            blobs.clear();
            let mut append = |piece: &&[u8]| segments.append(owner, piece).map(|blob| blobs.push(blob));
            stored.push(cost(mib, || Ok(pieces.iter().try_for_each(&mut append)?))?);
            let read = |blob: &BlobRef| segments.read(blob).map(|content| drop(black_box(content)));
            fresh.push(cost(mib, || Ok(blobs[..AT_A_TIME].iter().try_for_each(read)?))?);
            let mut read = |blob: &BlobRef| segments.read_into(blob, black_box(&mut out));
            there.push(cost(mib, || Ok(blobs[..AT_A_TIME].iter().try_for_each(&mut read)?))?);
            segments.sync()?;
        }
        print(name, "stored", &stored, "read into new memory", &fresh);
        print(name, "read into new memory", &fresh, "into the reader's", &there);
    }
    Ok(())
}

/// Does `work`, which is good for a MiB, `mib` times, and returns microseconds a MiB: of the clock, and of processors.
fn cost(mib: usize, mut work: impl FnMut() -> Outcome<()>) -> Outcome<[f64; 2]> {
    let (start, busy) = (Instant::now(), busy()?);
    (0..mib).try_for_each(|_| work())?;
    Ok([start.elapsed().as_secs_f64(), self::busy()? - busy].map(|seconds| seconds * 1e6 / mib as f64))
}

/// The seconds that processors have worked for this process, its threads that have ended too.
fn busy() -> Outcome<f64> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The fields after the name, which may contain anything but ends with the last parenthesis.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |n: usize| fields.get(n).and_then(|t| t.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / 100.0)
}

fn print(content: &str, first: &str, a: &[[f64; 2]], second: &str, b: &[[f64; 2]]) {
    let median = |costs: &[[f64; 2]], of: usize| {
        let mut sorted: Vec<f64> = costs.iter().map(|cost| cost[of]).collect();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    for (of, name) in ["clock", "processors"].iter().enumerate() {
        let (a, b) = (median(a, of), median(b, of));
        println!("{content:<6} {name:<10} {first}: {a:6.0} us a MiB; {second}: {b:6.0} us, {:.2} times that", b / a);
    }
}

fn text() -> Vec<u8> {
    let words = ["let ", "fn ", "self.", "return ", "value", "(", ") ", "{\n", "}\n", "    ", "if ", " = ", "match "];
    let env = Env::seeded(1);
    let mut out = Vec::new();
    while out.len() < PIECE * AT_A_TIME {
        out.extend_from_slice(words[(env.random() % words.len() as u64) as usize].as_bytes());
    }
    out.truncate(PIECE * AT_A_TIME);
    out
}

fn noise() -> Vec<u8> {
    let mut out = vec![0; PIECE * AT_A_TIME];
    Env::seeded(2).fill(&mut out);
    out
}
