//! The door spoken to byte by byte, as a client speaks and as no client should.

#![allow(clippy::disallowed_methods, reason = "an export ends on threads of its own: real time passes")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod client;

use client::{Client, Found, sattr};
use mw_env::Env;
use mw_nfs::{Export, Options, export};
use mw_sim::SimDisk;
use mw_world::{CreateOptions, Session, Store};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

struct Rig {
    store: Arc<Store>,
    export: Export,
}

impl Rig {
    fn new(read_only: bool) -> Self {
        let (meta, segments) = (Arc::new(mw_meta::Memory::new()), Arc::new(mw_segments::Memory::new()));
        let options = mw_world::Options { background: false, owner: (1000, 1000), ..Default::default() };
        let store = Store::open(meta, segments, Env::seeded(1), options).unwrap();
        let root = store.principal(&store.root_key().unwrap().id).unwrap();
        store.create_world(&root, "base", &CreateOptions::default()).unwrap();
        let export = export(session(&store), &Options { read_only, ..Options::default() }).unwrap();
        Self { store, export }
    }

    fn session(&self) -> Session {
        session(&self.store)
    }

    fn client(&self) -> Client {
        Client::new(self.export.address())
    }
}

fn session(store: &Arc<Store>) -> Session {
    store.session(&store.principal(&store.root_key().unwrap().id).unwrap(), "base").unwrap()
}

const OK: u32 = 0;

#[test]
fn files_are_made_written_and_read_and_seen_by_others() {
    let rig = Rig::new(false);
    let mut c = rig.client();
    let root = c.mount("/").unwrap();
    let dir = c.mkdir(&root, "d", 0o755).unwrap();
    let file = c.create(&dir, "f", 0o640).unwrap();
    let data: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
    assert_eq!(c.write(&file, 0, &data, 0), (OK, 0), "unstable is answered as unstable");
    assert_eq!(c.write(&file, 5, b"there", 2), (OK, 2));
    assert_eq!(c.commit(&file), OK);
    let (bytes, end) = c.read(&file, 0, 1 << 20).unwrap();
    assert_eq!((&bytes[..10], bytes.len(), end), (&b"\0\x01\x02\x03\x04there"[..], 100_000, true));
    let session = rig.session();
    assert_eq!(session.resolve(b"d/f").unwrap().size, 100_000);
    assert_eq!(session.resolve(b"d/f").unwrap().uid, 1000, "what the caller makes is his");
    // Somebody else's change is there at once, for this door keeps no cache.
    session.write(session.resolve(b"d/f").unwrap().ino, mw_world::WriteAt::Offset(0), b"S3").unwrap();
    assert_eq!(c.read(&file, 0, 2).unwrap(), (b"S3".to_vec(), false));
    assert_eq!(c.read(&file, 200_000, 10).unwrap(), (Vec::new(), true));
}

#[test]
fn names_are_renamed_linked_and_removed() {
    let rig = Rig::new(false);
    let mut c = rig.client();
    let root = c.mount("/").unwrap();
    let a = c.mkdir(&root, "a", 0o755).unwrap();
    c.create(&a, "f", 0o644).unwrap();
    assert_eq!(c.create(&a, "f", 0o644).unwrap_err(), 17, "guarded");
    c.symlink(&a, "l", "../outside/../..").unwrap();
    let link = c.lookup(&a, "l").unwrap();
    assert_eq!(c.readlink(&link.handle).unwrap(), b"../outside/../..");
    let file = c.lookup(&a, "f").unwrap();
    assert_eq!(c.link(&file.handle, &root, "g"), OK);
    let found: Found = c.lookup(&root, "g").unwrap();
    assert_eq!((found.nlink, found.ino), (2, file.ino));
    assert_eq!(c.remove(&root, "a", true), 66, "not empty");
    assert_eq!(c.remove(&root, "a", false), 21, "a directory");
    assert_eq!(c.rename(&a, "f", &root, "g2"), OK);
    assert_eq!(c.lookup(&a, "f").unwrap_err(), 2);
    assert_eq!(c.remove(&a, "l", false), OK);
    assert_eq!(c.remove(&root, "a", true), OK);
    assert_eq!(c.lookup(&a, "x").unwrap_err(), 70, "a handle of what is gone is stale");
    for odd in ["..", ".", "", "a/b"] {
        assert_ne!(c.create(&root, odd, 0o644).map(drop).err(), None, "{odd:?}");
    }
    let (up, here) = (c.lookup(&root, "..").unwrap(), c.lookup(&root, ".").unwrap());
    assert_eq!(up.ino, here.ino, "no way out of the world");
    assert_eq!(c.lookup(&root, &"n".repeat(256)).unwrap_err(), 63);
}

#[test]
fn a_listing_goes_on_behind_what_was_deleted() {
    let rig = Rig::new(false);
    let session = rig.session();
    let mut c = rig.client();
    let root = c.mount("/").unwrap();
    let dir = c.mkdir(&root, "many", 0o755).unwrap();
    for n in 0..1000 {
        c.create(&dir, &format!("f{n:04}"), 0o644).unwrap();
    }
    for plus in [false, true] {
        let (mut cookie, mut verifier, mut names) = (0, 0, Vec::new());
        loop {
            let (page, next, end) = c.list(&dir, cookie, verifier, 4096, plus).unwrap();
            assert!(!page.is_empty());
            verifier = next;
            cookie = page.last().unwrap().1;
            for (name, _) in page {
                // As `rm -r` does; the second listing finds what the first left.
                let even = name.ends_with(['0', '2', '4', '6', '8']);
                if !plus && even {
                    assert_eq!(c.remove(&dir, &name, false), OK);
                }
                names.push(name);
            }
            if end {
                break;
            }
        }
        let wanted = if plus { 502 } else { 1002 };
        assert_eq!(names.len(), wanted);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), wanted, "each once");
    }
    assert_eq!(session.du().unwrap().objects, 500);
}

#[test]
fn rights_are_those_of_the_caller() {
    let rig = Rig::new(false);
    let mut owner = rig.client();
    let root = owner.mount("/").unwrap();
    let file = owner.create(&root, "secret", 0o600).unwrap();
    assert_eq!(owner.write(&file, 0, b"x", 2), (OK, 2));
    let mut other = rig.client();
    (other.uid, other.gid) = (2000, 2000);
    assert_eq!(other.read(&file, 0, 1).unwrap_err(), 13);
    assert_eq!(other.write(&file, 0, b"y", 2).0, 13);
    assert_eq!(other.create(&root, "mine", 0o644).unwrap_err(), 13);
    assert_eq!(other.remove(&root, "secret", false), 13);
    assert_eq!(other.setattr(&file, &sattr(Some(0o666), None)), 1);
    assert_eq!(other.access(&file, 0x3f), 0);
    assert_eq!(owner.access(&file, 0x3f), 0x0d);
    let mut root_user = rig.client();
    (root_user.uid, root_user.gid) = (0, 0);
    assert_eq!(root_user.setattr(&file, &sattr(None, Some(2000))), OK);
    assert_eq!(other.read(&file, 0, 1).unwrap(), (b"x".to_vec(), true));
    assert_eq!(owner.setattr(&file, &sattr(None, Some(1000))), 1, "nobody takes a file back");
}

#[test]
fn a_read_only_export_and_a_past_instant_take_nothing() {
    let rig = Rig::new(true);
    let mut c = rig.client();
    let root = c.mount("/").unwrap();
    assert_eq!(c.create(&root, "f", 0o644).unwrap_err(), 30);
    assert_eq!(c.setattr(&root, &sattr(Some(0o777), None)), 30);
    let then = rig.session().snapshot(None, None).unwrap().version;
    let past = rig.store.session_at(rig.session().principal(), "base", mw_world::At::Version(then)).unwrap();
    let export = export(past, &Options::default()).unwrap();
    assert!(export.is_read_only());
    let mut c = Client::new(export.address());
    assert_eq!(c.lookup(&root, ".").unwrap_err(), 70, "a handle of the world is none of its past");
    let root = c.mount("/").unwrap();
    assert_eq!(c.mkdir(&root, "d", 0o755).unwrap_err(), 30);
}

#[test]
fn a_call_that_is_sent_again_is_done_once() {
    let rig = Rig::new(false);
    let mut c = rig.client();
    let root = c.mount("/").unwrap();
    c.create(&root, "f", 0o644).unwrap();
    let call = c.remove_call(&root, "f");
    let first = c.exchange(&call);
    // The connection broke before the answer came.
    let mut again = rig.client();
    assert_eq!(again.exchange(&call), first);
    let call = c.remove_call(&root, "f");
    assert_ne!(c.exchange(&call)[24..28], first[24..28], "another call is another call");
}

#[test]
fn garbage_ends_its_connection_or_its_call_and_nothing_else() {
    let rig = Rig::new(false);
    let mut c = rig.client();
    let root = c.mount("/").unwrap();
    // A record that claims two gigabytes.
    let mut raw = TcpStream::connect(rig.export.address()).unwrap();
    raw.write_all(&0xFFFF_FFFFu32.to_be_bytes()).unwrap();
    assert_eq!(raw.read(&mut [0; 4]).unwrap_or(0), 0);
    // Fragments without an end.
    let mut raw = TcpStream::connect(rig.export.address()).unwrap();
    for _ in 0..100 {
        if raw.write_all(&(1u32 << 16).to_be_bytes()).and_then(|()| raw.write_all(&[0; 1 << 16])).is_err() {
            break;
        }
    }
    assert_eq!(raw.read(&mut [0; 4]).unwrap_or(0), 0);
    // Calls cut off at every byte: garbage, or no answer at all, but never a change.
    let whole = c.mkdir_call(&root, "never", 0o755);
    for cut in (64..whole.len()).step_by(4) {
        let answer = c.exchange(&whole[..cut]);
        let accepted = u32::from_be_bytes(answer[20..24].try_into().unwrap());
        assert_eq!(accepted, 4, "cut at {cut}");
    }
    assert_eq!(c.lookup(&root, "never").unwrap_err(), 2);
    assert_eq!(c.lookup(&[7; 24], "x").unwrap_err(), 70);
    assert_eq!(c.lookup(&[7; 5], "x").unwrap_err(), 10_001);
    c.mkdir(&root, "still", 0o755).unwrap();
}

#[test]
fn an_export_that_ended_answers_nobody() {
    let rig = Rig::new(false);
    let mut c = rig.client();
    c.mount("/").unwrap();
    let address = rig.export.address();
    drop(rig.export);
    assert!(c.try_exchange(&[0; 40]).is_none());
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(TcpStream::connect(address).is_err());
}

/// What a client has committed is there after the power went, and so is every name whose making was answered.
#[test]
fn what_was_committed_survives_a_power_cut() {
    let open = |meta: &SimDisk, data: &SimDisk, seed: u64| {
        let env = Env::seeded(seed);
        let quiet = mw_meta::embedded::Options {
            wal_bytes: 1 << 20,
            table_bytes: 256 << 10,
            cache_bytes: 1 << 20,
            background: false,
        };
        let meta = mw_meta::Embedded::open_with(Arc::new(meta.clone()), env.clone(), quiet).unwrap();
        let size = mw_segments::local::Options { file_size: 8 << 20, step: 2 << 20 };
        let segments = mw_segments::Local::with(Arc::new(data.clone()), env.clone(), size).unwrap();
        let options = mw_world::Options { background: false, owner: (1000, 1000), ..Default::default() };
        Store::open(meta, segments, env, options).unwrap()
    };
    for seed in 0..4 {
        let (meta, data) = (SimDisk::new(seed), SimDisk::new(seed + 100));
        let store = open(&meta, &data, seed);
        let root = store.principal(&store.root_key().unwrap().id).unwrap();
        store.create_world(&root, "base", &CreateOptions::default()).unwrap();
        let export = export(session(&store), &Options::default()).unwrap();
        let mut c = Client::new(export.address());
        let top = c.mount("/").unwrap();
        let dir = c.mkdir(&top, "d", 0o755).unwrap();
        let file = c.create(&dir, "f", 0o644).unwrap();
        let content: Vec<u8> = (0..200_000u32).map(|n| (n / 3) as u8).collect();
        assert_eq!(c.write(&file, 0, &content[..100_000], 0).0, OK);
        assert_eq!(c.write(&file, 100_000, &content[100_000..], 0).0, OK);
        assert_eq!(c.commit(&file), OK);
        // Stable at once, as the client asked.
        let stable = c.create(&dir, "stable", 0o644).unwrap();
        assert_eq!(c.write(&stable, 0, b"stable", 2), (OK, 2));
        c.mkdir(&top, "named", 0o755).unwrap();
        // What nobody committed may go, and takes nothing with it.
        assert_eq!(c.write(&file, 0, b"uncommitted", 0).0, OK);
        let (meta, data) = (meta.crash(), data.crash());
        drop(export);
        drop(store);
        let store = open(&meta, &data, seed + 1000);
        let session = session(&store);
        let read = |path: &[u8]| {
            let attr = session.resolve(path).unwrap();
            session.read(attr.ino, 0, attr.size as usize).unwrap().to_vec()
        };
        let found = read(b"d/f");
        assert!(found == content || found[..] == [&b"uncommitted"[..], &content[11..]].concat(), "seed {seed}");
        assert_eq!(read(b"d/stable"), b"stable", "seed {seed}");
        assert!(session.resolve(b"named").is_ok(), "seed {seed}");
    }
}

/// What S3 makes, and the root of a world, is the user's who runs the server.
#[test]
fn what_no_mount_made_belongs_to_whoever_runs_the_server() {
    let rig = Rig::new(false);
    let session = rig.session();
    session.put(b"d/f", session.stage().unwrap(), &Default::default()).unwrap();
    for path in [&b""[..], b"d", b"d/f"] {
        let attr = session.resolve(path).unwrap();
        assert_eq!((attr.uid, attr.gid), (1000, 1000), "{path:?}");
    }
}

/// An export with a key that is bound to a prefix: outside it a client does not learn what is there.
#[test]
fn a_narrowed_key_shows_nothing_outside_its_prefix() {
    let rig = Rig::new(false);
    let whole = rig.session();
    for key in [&b"own/f"[..], b"top", b"sub/f"] {
        whole.put(key, whole.stage().unwrap(), &Default::default()).unwrap();
    }
    let grant = mw_world::Grant { prefix: "own/".into(), ..mw_world::Grant::new("base", mw_world::Role::Editor) };
    let request = mw_world::KeyRequest { name: "k".into(), grants: vec![grant], ..Default::default() };
    let key = rig.store.create_key(whole.principal(), &request).unwrap();
    let narrow = rig.store.session(&rig.store.principal(&key.id).unwrap(), "base").unwrap();
    let export = export(narrow, &Options::default()).unwrap();
    let mut c = Client::new(export.address());
    let root = c.mount("/").unwrap();
    let own = c.lookup(&root, "own").unwrap().handle;
    c.lookup(&own, "f").unwrap();
    c.create(&own, "made", 0o644).unwrap();
    let access = 13;
    for (there, absent) in [("top", "nil"), ("sub", "nil")] {
        assert_eq!(c.lookup(&root, there).unwrap_err(), access);
        assert_eq!(c.lookup(&root, absent).unwrap_err(), access);
        for name in [there, absent] {
            assert_eq!(c.create(&root, name, 0o644).unwrap_err(), access, "{name}");
            assert_eq!(c.mkdir(&root, name, 0o755).unwrap_err(), access, "{name}");
            assert_eq!(c.remove(&root, name, false), access, "{name}");
            assert_eq!(c.remove(&root, name, true), access, "{name}");
            assert_eq!(c.rename(&root, name, &own, "stolen"), access, "{name}");
            assert_eq!(c.rename(&own, "f", &root, name), access, "{name}");
        }
    }
}
