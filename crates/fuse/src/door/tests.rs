//! What a verb may do without harm to the mount. No kernel is needed here.

use super::*;
use mw_env::Env;
use mw_world::{CreateOptions, Options, Store};

fn door() -> Arc<Door> {
    let options = Options { background: false, ..Options::default() };
    let (meta, segments) = (Arc::new(mw_meta::Memory::new()), Arc::new(mw_segments::Memory::new()));
    let store = Store::open(meta, segments, Env::seeded(1), options).unwrap();
    let root = store.principal(&store.root_key().unwrap().id).unwrap();
    store.create_world(&root, "base", &CreateOptions::default()).unwrap();
    Door::new(store.session(&root, "base").unwrap(), PathBuf::from("/nowhere"), Owners::default(), false)
}

#[test]
fn a_panic_is_an_error_for_one_program() {
    let door = door();
    assert_eq!(door.guard(|_| panic!("on purpose")), Err(Errno::EIO));
    let pass = door.gate.enter(Passage::Name);
    assert!(pass.is_some());
    assert!(door.attr(Ino::ROOT.0).is_ok());
}

#[test]
fn a_world_that_is_gone_answers_so() {
    let door = door();
    assert_eq!(door.guard(|_| Ok(())), Ok(()));
    door.set_gone();
    assert_eq!(door.guard(|_| Ok(())), Err(Errno::ENODEV));
}

#[test]
fn after_an_estale_a_name_is_held_for_the_second_try() {
    let door = door();
    let new = |name: &'static [u8]| New {
        parent: Ino::ROOT.0,
        name: bytes::Bytes::from_static(name),
        kind: mw_model::FileType::File,
        mode: 0o644,
        umask: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        target: bytes::Bytes::new(),
    };
    let root = Ino::ROOT.0;
    // Nothing is held in quiet times.
    let first = door.make(new(b"a")).unwrap().ino.0;
    assert_eq!(door.lookup(root, b"a").unwrap().unwrap().ino.0, first);
    door.unlink(root, b"a").unwrap();
    assert_eq!(door.guard(|door| door.open(first, 0)), Err(Errno::ESTALE));
    // Now what is looked up outlives its name until the kernel forgets it.
    let second = door.make(new(b"a")).unwrap().ino.0;
    assert_eq!(door.lookup(root, b"a").unwrap().unwrap().ino.0, second);
    door.known.add(second, root);
    door.unlink(root, b"a").unwrap();
    assert_eq!(door.open(second, 0), Ok(()));
    door.close(second, 0);
    door.forget(fuser::INodeNo(second), 1);
    assert_eq!(door.open(second, 0), Err(Errno::ESTALE));
}

#[test]
fn the_kernel_is_asked_to_tell_of_closes_where_locks_are_likely() {
    use mw_world::{LockEnd, LockKind, LockReach, LockSpan, WantedLock};
    use rustix::fs::OFlags;
    let door = door();
    let hears = |flags| door.hears_of_close(7, flags);
    let made = OFlags::CREATE | OFlags::EXCL;
    assert!(hears(OFlags::RDWR) && hears(OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC));
    for quiet in [
        OFlags::RDONLY,
        OFlags::WRONLY,
        OFlags::WRONLY | OFlags::APPEND,
        OFlags::RDWR | made,
        OFlags::RDWR | OFlags::TMPFILE,
    ] {
        assert!(!hears(quiet), "{quiet:?}");
    }
    let wanted = WantedLock {
        ino: Ino(7),
        reach: LockReach::Bytes(LockSpan::ALL),
        kind: LockKind::Shared,
        owner: 1,
        handle: door.handle(true),
        process: 1,
        late: false,
    };
    assert_eq!(door.locks.try_lock(&wanted), LockEnd::Granted);
    assert!(hears(OFlags::RDONLY) && hears(OFlags::WRONLY) && !door.hears_of_close(8, OFlags::RDONLY));
    door.closes(7, 1, wanted.handle);
    assert!(!hears(OFlags::RDONLY));
}
