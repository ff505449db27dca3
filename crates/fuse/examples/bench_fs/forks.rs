//! What a fork costs while a mount is busy (`--forks N`): of an idle world, and straight after N files were written through its mount,
//! with the first read in the fork.

use crate::beds;
use crate::tree::Dice;
use mw_fuse::MountOptions;
use mw_model::Ino;
use mw_world::{ForkOptions, Session, Store};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// How often each is measured.
const ROUNDS: usize = 7;

/// Measures, and prints medians.
pub fn measure(disk: &Path, files: usize) -> io::Result<()> {
    let (store, session) = beds::world(&disk.join("forks"))?;
    let dir = disk.join("forked");
    std::fs::create_dir_all(&dir)?;
    let mount = mw_fuse::mount(session.clone(), &dir, &MountOptions::default()).map_err(io::Error::other)?;
    let content = Dice(5).text(64 << 10);
    std::fs::write(dir.join("first"), &content[..1000])?;
    store.fork(session.principal(), "base", "warm", &ForkOptions::default()).map_err(io::Error::other)?;
    let (mut idle, mut busy, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // What is idle has nothing left to sync.
        session.sync().map_err(io::Error::other)?;
        std::thread::sleep(std::time::Duration::from_secs(2));
        idle.push(forked(&store, &session, &format!("idle{round}"), b"first", 1000)?);
        let (at, mut dice) = (format!("many{round}"), Dice(round as u64));
        std::fs::create_dir(dir.join(&at))?;
        for n in 0..files {
            let len = 1 << (8 + dice.roll() % 5);
            std::fs::write(dir.join(format!("{at}/{n}")), &content[..len])?;
        }
        std::fs::write(dir.join("last"), &content[..1000 + round])?;
        busy.push(forked(&store, &session, &format!("busy{round}"), b"last", 1000 + round)?);
        rest.push(forked(&store, &session, &format!("next{round}"), b"last", 1000 + round)?);
    }
    let [idle, busy, rest] = [idle, busy, rest].map(|figures| crate::median(&figures) * 1e3);
    println!("fork of an idle world, and a first read in it       {idle:8.2} ms");
    println!("the same straight after {files} files were written  {busy:8.2} ms, {:.2} times that", busy / idle);
    println!("the same again, nothing written in between          {rest:8.2} ms, {:.2} times that", rest / idle);
    mount.unmount(true).map_err(io::Error::other)
}

/// Forks, reads a file in the fork, and returns the seconds.
fn forked(store: &Arc<Store>, base: &Session, name: &str, file: &[u8], len: usize) -> io::Result<f64> {
    let start = Instant::now();
    store.fork(base.principal(), "base", name, &ForkOptions::default()).map_err(io::Error::other)?;
    let fork = store.session(base.principal(), name).map_err(io::Error::other)?;
    let found = fork.lookup(Ino::ROOT, file).map_err(io::Error::other)?;
    let bytes = fork.read(found.ino, 0, 1 << 20).map_err(io::Error::other)?;
    let seconds = start.elapsed().as_secs_f64();
    if bytes.len() == len { Ok(seconds) } else { Err(io::Error::other("the fork lacks what was written before it")) }
}
