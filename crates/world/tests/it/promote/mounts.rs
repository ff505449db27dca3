//! Mounts as a world sees them: whose kernel keeps what programs wrote is asked for it first, stands alone, and hears which content changed.

use super::put;
use crate::rig::{Rig, file};
use mw_model::{ErrorKind, Ino};
use mw_world::{At, Changed, Error, ForkOptions, Listener, PromoteOptions, Result, SetAttr, WriteAt, diff};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A mount, and what it heard.
#[derive(Default)]
struct Ear {
    sole: bool,
    /// Its kernel does not give up what it holds.
    stuck: AtomicBool,
    holds: AtomicUsize,
    write_backs: AtomicUsize,
    heard: Mutex<Vec<Changed>>,
}

impl Ear {
    fn sole() -> Arc<Self> {
        Arc::new(Self { sole: true, ..Self::default() })
    }

    fn heard(&self, ino: Ino) -> Vec<Changed> {
        let all = std::mem::take(&mut *self.heard.lock());
        let of = |change: &Changed| matches!(change, Changed::Inode(i) | Changed::Content(i) if *i == ino);
        let mut heard: Vec<_> = all.into_iter().filter(of).collect();
        heard.dedup();
        heard
    }
}

impl Listener for Ear {
    fn changed(&self, changes: &[Changed]) {
        self.heard.lock().extend_from_slice(changes);
    }

    fn write_back(&self) -> Result<()> {
        self.write_backs.fetch_add(1, Ordering::SeqCst);
        match self.stuck.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Busy, "the kernel gives up nothing")),
            false => Ok(()),
        }
    }

    fn hold(&self) {
        self.holds.fetch_add(1, Ordering::SeqCst);
    }

    fn release(&self) {
        self.holds.fetch_sub(1, Ordering::SeqCst);
    }

    fn is_sole(&self) -> bool {
        self.sole
    }
}

#[test]
fn one_that_must_be_alone_is_alone() {
    let rig = Rig::new();
    let w = rig.create("base");
    let plain = || Arc::new(Ear::default());
    let busy = |sole: bool| w.need_room_for_mount(sole).is_err_and(|e| e.kind() == ErrorKind::Busy);
    let first = w.subscribe(1, plain()).unwrap();
    let second = w.subscribe(2, plain()).unwrap();
    assert!(busy(true) && w.need_room_for_mount(false).is_ok());
    assert_eq!(w.subscribe(3, Ear::sole()).err().unwrap().kind(), ErrorKind::Busy);
    drop((first, second));
    let sole = w.subscribe(3, Ear::sole()).unwrap();
    assert!(busy(true) && busy(false));
    assert_eq!(w.subscribe(4, plain()).err().unwrap().kind(), ErrorKind::Busy);
    // An instant changes for nobody.
    let then = w.at(&At::Version(w.shown())).unwrap();
    assert!(then.need_room_for_mount(true).is_ok());
    let past = then.subscribe(5, plain()).unwrap();
    drop(sole);
    assert!(!busy(true));
    drop((w.subscribe(6, Ear::sole()).unwrap(), past));
}

#[test]
fn nothing_takes_a_world_whose_kernel_gives_up_nothing() {
    let rig = Rig::new();
    let base = rig.create("base");
    put(&base, "a", b"1");
    let fork = rig.fork("base", "fork");
    put(&fork, "b", b"2");
    let before = base.shown();
    // The fork's is asked first or last, by the order in which the two are locked.
    let (stuck, other) = (Ear::sole(), Ear::sole());
    let _stuck = base.subscribe(1, stuck.clone()).unwrap();
    let _other = fork.subscribe(2, other.clone()).unwrap();
    stuck.stuck.store(true, Ordering::SeqCst);
    let then = base.at(&At::Version(before)).unwrap();
    let busy = |kind: ErrorKind| assert_eq!(kind, ErrorKind::Busy);
    busy(rig.store.fork(&rig.root, "base", "another", &ForkOptions::default()).err().unwrap().kind());
    busy(base.snapshot(None, None).err().unwrap().kind());
    busy(base.revert(At::Version(before)).err().unwrap().kind());
    busy(fork.promote(&PromoteOptions::default()).err().unwrap().kind());
    busy(diff(&then, &base).err().unwrap().kind());
    assert_eq!((base.shown(), stuck.holds.load(Ordering::SeqCst)), (before, 0));
    assert_eq!(other.holds.load(Ordering::SeqCst), 0);
    stuck.stuck.store(false, Ordering::SeqCst);
    let asked = stuck.write_backs.load(Ordering::SeqCst);
    assert!(diff(&then, &base).unwrap().is_empty());
    fork.promote(&PromoteOptions::default()).unwrap();
    assert_eq!(stuck.write_backs.load(Ordering::SeqCst), asked + 2);
    assert_eq!(stuck.holds.load(Ordering::SeqCst) + other.holds.load(Ordering::SeqCst), 0);
}

#[test]
fn content_is_told_from_attributes_to_who_must_know() {
    let rig = Rig::new();
    let w = rig.create("base");
    let attr = file(&w, "f", b"some");
    let (ino, sole) = (attr.ino, Ear::sole());
    let subscription = w.subscribe(1, sole.clone()).unwrap();
    let (attributes, content) = (vec![Changed::Inode(ino)], vec![Changed::Content(ino)]);
    w.set_attr(ino, &SetAttr { mode: Some(0o600), ..SetAttr::default() }).unwrap();
    assert_eq!(sole.heard(ino), attributes);
    w.write(ino, WriteAt::Offset(0), b"same").unwrap();
    assert_eq!(sole.heard(ino), content);
    w.set_attr(ino, &SetAttr { mtime: Some(mw_world::SetTime::At(5)), ..SetAttr::default() }).unwrap();
    assert_eq!(sole.heard(ino), content);
    w.link(ino, Ino::ROOT, b"g").unwrap();
    assert_eq!(sole.heard(ino), attributes);
    // What it changes itself it does not hear of.
    w.with_origin(1).write(ino, WriteAt::End, b"own").unwrap();
    assert!(sole.heard(ino).is_empty());
    // Of a change of everything it hears which files it is of.
    for many in [2, 400] {
        let before = w.snapshot(None, None).unwrap().version;
        w.write(ino, WriteAt::End, b"more").unwrap();
        (0..many).for_each(|n| put(&w, &format!("many/{n}"), b"x"));
        sole.heard.lock().clear();
        w.revert(At::Version(before)).unwrap();
        assert_eq!(sole.heard.lock().contains(&Changed::Everything), many > 256);
        assert_eq!(sole.heard(ino), content, "{many}");
    }
    drop(subscription);
    let plain = Arc::new(Ear::default());
    let _plain = w.subscribe(2, plain.clone()).unwrap();
    w.write(ino, WriteAt::End, b"more").unwrap();
    assert_eq!(plain.heard(ino), attributes);
}
