//! The file systems that are measured beside each other, each an empty directory.

use crate::floor;
use mw_env::{Env, LocalDisk};
use mw_fuse::MountOptions;
use mw_world::{CreateOptions, Options, Session, Store};
use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A mount with write-back: measured when it is asked for.
pub const WRITEBACK: &str = "writeback";

/// One file system.
pub struct Bed {
    pub name: String,
    pub dir: PathBuf,
    /// Whether this process answers its requests, so that its processor time can be told.
    pub ours: bool,
    /// What keeps it mounted.
    _guard: Box<dyn Any>,
}

/// What unmounts with a command.
struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Makes every bed that can be made here; what is missing is named on the screen.
pub fn all(disk: &Path, wanted: &dyn Fn(&str) -> bool, threads: usize, requests: &'static AtomicU64) -> Vec<Bed> {
    let kinds: [(&str, &dyn Fn() -> io::Result<Bed>); 9] = [
        ("manyworlds", &|| manyworlds("manyworlds", &disk.join("mw"), threads, false)),
        (WRITEBACK, &|| manyworlds(WRITEBACK, &disk.join(WRITEBACK), threads, true)),
        ("floor", &|| floor(&disk.join("floor"), threads, requests)),
        ("disk", &|| plain(&kind_of(disk), &disk.join("plain"))),
        ("tmpfs", &|| tmpfs(disk)),
        ("btrfs", &|| btrfs(disk)),
        ("bindfs", &|| peer(disk, "bindfs", &|from, to| vec![from.into(), to.into()])),
        ("fuse-overlayfs", &|| overlay(disk)),
        ("rclone", &|| rclone(disk)),
    ];
    let mut beds = Vec::new();
    for (name, make) in kinds {
        if !wanted(name) {
            continue;
        }
        match make() {
            Ok(bed) => beds.push(bed),
            Err(e) => println!("skipped: {name}: {e}"),
        }
    }
    beds
}

/// Makes a store in a directory, and a session on a world of it.
pub fn world(at: &Path) -> io::Result<(Arc<Store>, Session)> {
    let other = |e: &dyn std::fmt::Display| io::Error::other(e.to_string());
    let env = Env::real();
    let open = |name: &str| LocalDisk::new(&at.join(name)).map(Arc::new);
    let meta = mw_meta::Embedded::open(open("meta")?, env.clone()).map_err(|e| other(&e))?;
    let segments = mw_segments::Local::open(open("segments")?, env.clone()).map_err(|e| other(&e))?;
    let store = Store::open(meta, segments, env, Options::default()).map_err(|e| other(&e))?;
    let root = store.root_key().and_then(|key| store.principal(&key.id)).map_err(|e| other(&e))?;
    store.create_world(&root, "base", &CreateOptions::default()).map_err(|e| other(&e))?;
    let session = store.session(&root, "base").map_err(|e| other(&e))?;
    Ok((store, session))
}

fn manyworlds(name: &str, at: &Path, threads: usize, writeback: bool) -> io::Result<Bed> {
    let dir = at.join("mount");
    // First, as the store closes to other users what it makes.
    std::fs::create_dir_all(&dir)?;
    let (store, session) = world(at)?;
    let mount = mw_fuse::mount(session, &dir, &MountOptions { threads, writeback, ..MountOptions::default() })
        .map_err(io::Error::other)?;
    Ok(Bed { name: name.to_owned(), dir, ours: true, _guard: Box::new((mount, store)) })
}

fn floor(dir: &Path, threads: usize, requests: &'static AtomicU64) -> io::Result<Bed> {
    std::fs::create_dir_all(dir)?;
    let session = floor::mount(dir, if threads == 0 { 2 } else { threads }, requests)?;
    Ok(Bed { name: "floor".to_owned(), dir: dir.to_owned(), ours: true, _guard: Box::new(session) })
}

fn plain(name: &str, dir: &Path) -> io::Result<Bed> {
    std::fs::create_dir_all(dir)?;
    Ok(Bed { name: name.to_owned(), dir: dir.to_owned(), ours: false, _guard: Box::new(()) })
}

/// Returns what kind of file system a directory lies on.
fn kind_of(dir: &Path) -> String {
    match rustix::fs::statfs(dir).map(|stat| stat.f_type) {
        Ok(0xef53) => "ext4".to_owned(),
        Ok(0x9123_683e) => "btrfs".to_owned(),
        Ok(0x5846_5342) => "xfs".to_owned(),
        Ok(0x0102_1994) => "tmpfs".to_owned(),
        _ => "disk".to_owned(),
    }
}

fn tmpfs(disk: &Path) -> io::Result<Bed> {
    let shm = Path::new("/dev/shm");
    if kind_of(shm) != "tmpfs" {
        return Err(io::Error::other("/dev/shm is none"));
    }
    if kind_of(disk) == "tmpfs" {
        return Err(io::Error::other("the disk is one already"));
    }
    let dir = crate::work_dir(shm)?;
    Ok(Bed { name: "tmpfs".to_owned(), dir: dir.path().to_owned(), ours: false, _guard: Box::new(dir) })
}

fn btrfs(disk: &Path) -> io::Result<Bed> {
    let (image, dir) = (disk.join("btrfs.img"), disk.join("btrfs"));
    std::fs::create_dir_all(&dir)?;
    std::fs::File::create(&image)?.set_len(8 << 30)?;
    command(Command::new("mkfs.btrfs").arg("-q").arg(&image))?;
    command(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&dir))?;
    Ok(Bed { name: "btrfs".to_owned(), ours: false, _guard: Box::new(Unmount(dir.clone())), dir })
}

fn peer(disk: &Path, name: &str, args: &dyn Fn(&Path, &Path) -> Vec<std::ffi::OsString>) -> io::Result<Bed> {
    let (from, dir) = (disk.join(format!("{name}-from")), disk.join(name));
    std::fs::create_dir_all(&from)?;
    std::fs::create_dir_all(&dir)?;
    command(Command::new(name).args(args(&from, &dir)))?;
    Ok(Bed { name: name.to_owned(), ours: false, _guard: Box::new(Unmount(dir.clone())), dir })
}

fn overlay(disk: &Path) -> io::Result<Bed> {
    let of = |name: &str| {
        let dir = disk.join(format!("overlay-{name}"));
        std::fs::create_dir_all(&dir).map(|()| dir.display().to_string())
    };
    let options = format!("lowerdir={},upperdir={},workdir={}", of("lower")?, of("upper")?, of("work")?);
    peer(disk, "fuse-overlayfs", &|_, to| vec!["-o".into(), (&options).into(), to.into()])
}

fn rclone(disk: &Path) -> io::Result<Bed> {
    peer(disk, "rclone", &|from, to| {
        let how = ["--daemon", "--vfs-cache-mode", "writes", "--quiet"].map(Into::into);
        [vec!["mount".into(), from.into(), to.into()], how.to_vec()].concat()
    })
}

fn command(command: &mut Command) -> io::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let missing = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!("{name} is not installed")),
        _ => e,
    };
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().map_err(missing)?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{name} ended with {status}"))) }
}
