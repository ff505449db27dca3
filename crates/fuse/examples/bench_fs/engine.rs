//! What the verbs of a mount cost without a kernel: the same calls straight to a session (`--engine N`).

use crate::beds;
use crate::tree::Dice;
use mw_model::{FileType, Ino};
use mw_world::{Make, SetAttr, SetTime, WriteAt};
use std::io;
use std::path::Path;
use std::time::Instant;

/// Makes, writes, sets, looks up, reads and removes `files` files in directories of 16, and prints what a verb costs.
pub fn measure(disk: &Path, files: usize) -> io::Result<()> {
    let other = |e: mw_world::Error| io::Error::other(e.to_string());
    let (store, session) = beds::world(&disk.join("engine"))?;
    let make = |kind| Make { kind, mode: 0o644, uid: 0, gid: 0, rdev: 0, target: bytes::Bytes::new() };
    let mut dice = Dice(3);
    let content = dice.text(64 << 10);
    let (mut dirs, mut inos) = (Vec::new(), Vec::new());
    let time = |name: &'static str, calls: usize, work: &mut dyn FnMut() -> Result<(), mw_world::Error>| {
        let (start, busy) = (Instant::now(), crate::busy());
        work().map_err(other)?;
        let wall = start.elapsed().as_secs_f64() * 1e6 / calls as f64;
        println!(
            "{name:<16} {wall:8.2} us a call, {:8.2} us of processor",
            (crate::busy() - busy) * 1e6 / calls as f64
        );
        Ok::<_, io::Error>(())
    };
    time("untar: 5 verbs", files, &mut || {
        for n in 0..files {
            if n.is_multiple_of(16) {
                let dir = session.make(Ino::ROOT, format!("dir{n}").as_bytes(), &make(FileType::Directory))?;
                dirs.push(dir.ino);
            }
            let name = format!("file{n:05}.rs");
            let dir = dirs[n / 16];
            if session.lookup(dir, name.as_bytes()).is_ok() {
                continue;
            }
            let file = session.make(dir, name.as_bytes(), &make(FileType::File))?.ino;
            session.open(file)?;
            let len = 1 << (8 + dice.roll() % 5);
            session.write(file, WriteAt::Offset(0), &content[..len])?;
            let times = SetAttr { mtime: Some(SetTime::At(1)), ..SetAttr::default() };
            session.set_attr(file, &times)?;
            session.set_attr(file, &SetAttr { uid: Some(0), gid: Some(0), ..SetAttr::default() })?;
            session.set_attr(file, &SetAttr { mode: Some(0o644), ..SetAttr::default() })?;
            session.release(file);
            inos.push(file);
        }
        Ok(())
    })?;
    time("lookup", files, &mut || {
        (0..files).try_for_each(|n| session.lookup(dirs[n / 16], format!("file{n:05}.rs").as_bytes()).map(drop))
    })?;
    time("attr", files, &mut || inos.iter().try_for_each(|ino| session.attr(*ino).map(drop)))?;
    time("read", files, &mut || inos.iter().try_for_each(|ino| session.read(*ino, 0, 65536).map(drop)))?;
    let block = &content[..4096];
    let big = session.make(Ino::ROOT, b"big", &make(FileType::File)).map_err(other)?.ino;
    time("write 4 KiB", files, &mut || {
        (0..files).try_for_each(|n| session.write(big, WriteAt::Offset(n as u64 * 4096), block).map(drop))
    })?;
    time("unlink", files, &mut || {
        (0..files).try_for_each(|n| session.unlink(dirs[n / 16], format!("file{n:05}.rs").as_bytes()))
    })?;
    drop(session);
    drop(store);
    Ok(())
}
