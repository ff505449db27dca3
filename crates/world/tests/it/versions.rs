//! Versions of objects, against a naive model of a bucket of S3, and through everything else that changes a world.

use crate::objects::{delete, get, put, staged, text};
use crate::rig::{Rig, clean, content, file};
use bytes::Bytes;
use mw_model::{ErrorKind, Ino};
use mw_world::{
    At, Conditions, CopyOptions, ListedVersion, PromoteOptions, PutOptions, RenameFlag, Session, VersionId, Versioned,
    Versioning, VersionsRequest, WriteAt,
};
use std::collections::BTreeMap;

/// What a listing shows of one version: the key, the version, whether it is the latest, and its size; none for a deletion.
type Shown = (String, VersionId, bool, Option<u64>);

fn pages(session: &Session, prefix: &str, delimiter: Option<&str>, limit: usize) -> Vec<Result<Shown, String>> {
    let mut request = VersionsRequest {
        prefix: Bytes::copy_from_slice(prefix.as_bytes()),
        delimiter: delimiter.map(|d| Bytes::copy_from_slice(d.as_bytes())),
        limit,
        ..VersionsRequest::default()
    };
    let mut all = Vec::new();
    loop {
        let page = session.list_versions(&request).expect("listed");
        assert!(page.items.len() <= limit && (page.next.is_none() || page.items.len() == limit));
        all.extend(page.items.into_iter().map(|item| match item {
            ListedVersion::Prefix(prefix) => Err(text(&prefix)),
            ListedVersion::Version { key, id, latest, what } => {
                let size = match what {
                    Versioned::Object(info) => Some(info.size),
                    Versioned::Marker(marker) => {
                        assert_eq!(marker.id, id);
                        None
                    }
                };
                Ok((text(&key), id, latest, size))
            }
        }));
        match page.next {
            None => return all,
            Some((after, after_version)) => (request.after, request.after_version) = (after, after_version),
        }
        assert!(all.len() < 100_000, "the listing never ends");
    }
}

fn versions(session: &Session) -> Vec<Shown> {
    pages(session, "", None, 1000).into_iter().map(|item| item.expect("no prefix")).collect()
}

fn read(session: &Session, key: &str, id: VersionId) -> Option<Vec<u8>> {
    match session.get_version(key.as_bytes(), id) {
        Ok(Versioned::Object(object)) => Some(object.read(0, usize::MAX >> 1).expect("read").to_vec()),
        Ok(Versioned::Marker(_)) => None,
        Err(e) => {
            assert!(e.kind() == ErrorKind::NotFound && e.to_string().starts_with("NoSuchVersion"), "{e}");
            None
        }
    }
}

fn id_of(session: &Session, key: &str) -> VersionId {
    let info = session.head(key.as_bytes()).expect("there");
    session.version_id(&info).expect("a version")
}

fn versioned(rig: &Rig, name: &str) -> Session {
    let world = rig.create(name);
    world.set_versioning(Versioning::Enabled).expect("enabled");
    world
}

/// The versions of one key: none is a deletion.
type Stack = Vec<(VersionId, Option<Vec<u8>>)>;

/// A bucket of S3, naively: the versions of each key, newest first.
#[derive(Default)]
struct Bucket {
    setting: Versioning,
    keys: BTreeMap<String, Stack>,
}

impl Bucket {
    fn add(&mut self, key: &str, id: Option<VersionId>, body: Option<Vec<u8>>) {
        let versions = self.keys.entry(key.to_owned()).or_default();
        if self.setting != Versioning::Enabled {
            versions.retain(|(id, _)| *id != VersionId::Null);
        }
        if self.setting != Versioning::Never || body.is_some() {
            versions.insert(0, (id.unwrap_or(VersionId::Null), body));
        }
    }

    fn shown(&self) -> Vec<Shown> {
        let of = |(key, versions): (&String, &Stack)| -> Vec<Shown> {
            let show = |(n, (id, body)): (usize, &(VersionId, Option<Vec<u8>>))| {
                (key.clone(), *id, n == 0, body.as_ref().map(|b| b.len() as u64))
            };
            versions.iter().enumerate().map(show).collect()
        };
        self.keys.iter().flat_map(of).collect()
    }
}

const KEYS: [&str; 9] = ["a", "a/b", "a/b/c", "a/d/", "a-", "b/x", "b/y", "z\u{0}\u{1}", "é"];

fn same(world: &Session, bucket: &Bucket, deep: bool) {
    let shown = bucket.shown();
    assert_eq!(versions(world), shown);
    for key in KEYS {
        let there = bucket.keys.get(key).and_then(|v| v.first()).and_then(|(_, body)| body.clone());
        assert_eq!(get(world, key), there, "{key:?}");
    }
    if !deep {
        return;
    }
    for (key, of) in &bucket.keys {
        for (id, body) in of {
            assert_eq!(read(world, key, *id), *body, "{key:?} {id}");
        }
    }
    for limit in [1, 2, 3, 7] {
        let all: Vec<_> = pages(world, "", None, limit).into_iter().map(Result::unwrap).collect();
        assert_eq!(all, shown, "pages of {limit}");
        for prefix in ["", "a", "a/", "b/", "nothing"] {
            let mut rolled: Vec<Result<Shown, String>> = Vec::new();
            for item in shown.iter().filter(|item| item.0.starts_with(prefix)) {
                match item.0[prefix.len()..].find('/') {
                    None => rolled.push(Ok(item.clone())),
                    Some(at) => {
                        let up = item.0[..=prefix.len() + at].to_owned();
                        if rolled.last() != Some(&Err(up.clone())) {
                            rolled.push(Err(up));
                        }
                    }
                }
            }
            assert_eq!(pages(world, prefix, Some("/"), limit), rolled, "{prefix:?} in pages of {limit}");
        }
    }
}

#[test]
fn engine_and_model_of_a_bucket_agree() {
    for seed in 1..=4u64 {
        let mut rig = Rig::new();
        let mut world = rig.create("base");
        let mut bucket = Bucket::default();
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut draw = |n: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % n as u64) as usize
        };
        for step in 0..220 {
            let key = KEYS[draw(KEYS.len())];
            match draw(20) {
                0..=8 => {
                    let size = if draw(6) == 0 { 150_000 } else { draw(300) };
                    let body: Vec<u8> = (0..size).map(|i| (i as u8) ^ step as u8).collect();
                    let info = put(&world, key, &body);
                    bucket.add(key, world.version_id(&info), Some(body));
                }
                9..=12 => {
                    let deleted = world.delete_object(key.as_bytes(), &Conditions::default()).expect("deleted");
                    assert_eq!(deleted.marker, bucket.setting != Versioning::Never);
                    bucket.add(key, deleted.version, None);
                }
                13..=15 => {
                    let of = bucket.keys.entry(key.to_owned()).or_default();
                    if !of.is_empty() {
                        let (id, body) = of.remove(draw(of.len()));
                        let gone = world.delete_version(key.as_bytes(), id, &Conditions::default()).expect("deleted");
                        assert!(gone.existed && gone.marker == body.is_none());
                        assert_eq!(read(&world, key, id), None);
                    }
                }
                16 if step > 30 => {
                    let to = if draw(2) == 0 { Versioning::Suspended } else { Versioning::Enabled };
                    world.set_versioning(to).expect("set");
                    bucket.setting = to;
                }
                17 => {
                    drop(world);
                    rig = rig.reopen();
                    world = rig.session("base");
                }
                18 => drop(rig.store.sweep().expect("swept")),
                _ => {
                    let from = KEYS[draw(KEYS.len())];
                    if let Some((id, Some(body))) = bucket.keys.get(from).and_then(|v| v.last()).cloned()
                        && bucket.setting != Versioning::Never
                    {
                        let options = CopyOptions { version: Some(id), ..CopyOptions::default() };
                        let info = world.copy(&world, from.as_bytes(), key.as_bytes(), &options).expect("copied");
                        bucket.add(key, world.version_id(&info), Some(body));
                    }
                }
            }
            bucket.keys.retain(|_, of| !of.is_empty());
            same(&world, &bucket, step % 20 == 0);
        }
        same(&world, &bucket, true);
        clean(&rig.store);
    }
}

#[test]
fn a_fork_has_the_versions_of_before_and_each_side_makes_its_own() {
    let rig = Rig::new();
    let base = versioned(&rig, "base");
    let one = put(&base, "k", b"one");
    put(&base, "k", b"two");
    let fork = rig.fork("base", "fork");
    assert_eq!(fork.versioning(), Versioning::Enabled);
    assert_eq!(versions(&fork), versions(&base));
    put(&base, "k", b"base");
    put(&fork, "k", b"fork");
    delete(&fork, "k");
    let (ours, theirs) = (versions(&base), versions(&fork));
    assert_eq!((ours.len(), theirs.len()), (3, 4));
    assert_eq!(ours[1..], theirs[2..]);
    let first = VersionId::At(one.version);
    fork.delete_version(b"k", first, &Conditions::default()).expect("deleted");
    assert_eq!((read(&base, "k", first).as_deref(), read(&fork, "k", first)), (Some(&b"one"[..]), None));
    rig.store.delete_world(&rig.root, "fork", true).expect("deleted");
    rig.store.sweep().expect("swept");
    assert_eq!(read(&base, "k", first).as_deref(), Some(&b"one"[..]));
    clean(&rig.store);
}

#[test]
fn what_a_promote_brings_is_a_new_version_and_what_it_replaces_stays() {
    for merged in [false, true] {
        let rig = Rig::new();
        let base = versioned(&rig, "base");
        for key in ["changed", "gone", "same"] {
            put(&base, key, format!("{key} one").as_bytes());
        }
        let before: BTreeMap<_, _> = ["changed", "gone", "same"].map(|key| (key, id_of(&base, key))).into();
        let fork = rig.fork("base", "fork");
        put(&fork, "changed", b"in between");
        put(&fork, "changed", b"changed two");
        put(&fork, "new", b"new one");
        delete(&fork, "gone");
        if merged {
            put(&base, "other", b"other");
        }
        let at_fork = id_of(&fork, "new");
        let promoted = fork.promote(&PromoteOptions::default()).expect("promoted");
        assert!(promoted.conflicts.is_empty() && promoted.fast != merged);
        assert_eq!(get(&base, "changed").as_deref(), Some(&b"changed two"[..]));
        let of = |key: &str| -> Vec<(VersionId, Option<u64>)> {
            versions(&base).into_iter().filter(|v| v.0 == key).map(|v| (v.1, v.3)).collect()
        };
        let changed = of("changed");
        assert_eq!((changed.len(), changed[1].0), (2, before["changed"]), "the fork's own versions stay there");
        assert!(changed[0].0 > changed[1].0);
        assert_eq!(read(&base, "changed", before["changed"]).as_deref(), Some(&b"changed one"[..]));
        let gone = of("gone");
        assert_eq!((gone.len(), gone[0].1, gone[1]), (2, None, (before["gone"], Some(8))));
        assert_eq!(of("same"), [(before["same"], Some(8))]);
        assert!(of("new")[0].0 >= at_fork);
        assert_eq!(versions(&fork).iter().filter(|v| v.0 == "changed").count(), 3);
        // Again, and the other way.
        put(&fork, "changed", b"changed three");
        fork.promote(&PromoteOptions::default()).expect("promoted");
        assert_eq!(of("changed").len(), 3);
        put(&base, "changed", b"four");
        fork.rebase(&PromoteOptions::default()).expect("rebased");
        assert_eq!(get(&fork, "changed").as_deref(), Some(&b"four"[..]));
        assert_eq!(versions(&fork).iter().filter(|v| v.0 == "changed").count(), 5);
        let rig = rig.reopen();
        assert_eq!(versions(&rig.session("base")).iter().filter(|v| v.0 == "changed").count(), 4);
        clean(&rig.store);
    }
}

#[test]
fn a_revert_and_a_restore_lose_no_version() {
    let rig = Rig::new();
    let base = versioned(&rig, "base");
    put(&base, "k", b"one");
    put(&base, "stays", b"stays");
    let one = id_of(&base, "k");
    let then = base.info().expect("info").version;
    put(&base, "k", b"two");
    let two = id_of(&base, "k");
    put(&base, "later", b"later");
    let later = id_of(&base, "later");
    base.revert(At::Version(then)).expect("reverted");
    assert_eq!(get(&base, "k").as_deref(), Some(&b"one"[..]));
    let now = id_of(&base, "k");
    assert!(now > two);
    for (id, body) in [(one, "one"), (two, "two"), (now, "one")] {
        assert_eq!(read(&base, "k", id).as_deref(), Some(body.as_bytes()), "{id}");
    }
    assert_eq!(get(&base, "later"), None);
    assert_eq!(read(&base, "later", later).as_deref(), Some(&b"later"[..]));
    assert!(base.marker(b"later").expect("looked").is_some());
    clean(&rig.store);
    base.restore(
        At::Version(match two {
            VersionId::At(at) => at,
            VersionId::Null => unreachable!(),
        }),
        b"k",
    )
    .expect("restored");
    assert_eq!(get(&base, "k").as_deref(), Some(&b"two"[..]));
    assert_eq!(versions(&base).iter().filter(|v| v.0 == "k").count(), 4);
    base.revert(At::Version(then)).expect("reverted");
    assert_eq!(versions(&base).iter().filter(|v| v.0 == "k").count(), 5);
    assert_eq!(read(&base, "k", one).as_deref(), Some(&b"one"[..]));
    let rig = rig.reopen();
    rig.store.sweep().expect("swept");
    assert_eq!(versions(&rig.session("base")).iter().filter(|v| v.0 == "k").count(), 5);
    clean(&rig.store);
}

#[test]
fn what_s3_acknowledged_outlives_what_a_mount_does() {
    let rig = Rig::new();
    let base = versioned(&rig, "base");
    let big: Vec<u8> = (0..400_000u32).map(|i| (i / 5) as u8).collect();
    put(&base, "d/k", &big);
    let one = id_of(&base, "d/k");
    // Writes through a mount: the version of S3 stays, and all that the mount wrote since is one version.
    let ino = base.resolve(b"d/k").expect("there").ino;
    for n in 0..5u8 {
        base.write(ino, WriteAt::Offset(100), &[n; 1000]).expect("written");
    }
    assert_eq!(read(&base, "d/k", one).as_deref(), Some(&big[..]));
    assert_eq!(versions(&base).len(), 2);
    let mounted = id_of(&base, "d/k");
    assert!(mounted > one);
    // S3 keeps what it replaces, whoever made it.
    put(&base, "d/k", b"three");
    let three = id_of(&base, "d/k");
    assert_eq!(read(&base, "d/k", mounted).map(|b| b[100..1100].to_vec()), Some(vec![4; 1000]));
    // Renamed and removed through a mount.
    let dir = base.resolve(b"d").expect("there").ino;
    base.rename(dir, b"k", Ino::ROOT, b"moved", RenameFlag::Replace).expect("renamed");
    assert_eq!(get(&base, "moved").as_deref(), Some(&b"three"[..]));
    assert_eq!(read(&base, "d/k", three).as_deref(), Some(&b"three"[..]));
    assert!(base.marker(b"d/k").expect("looked").is_some());
    base.unlink(Ino::ROOT, b"moved").expect("removed");
    assert_eq!(read(&base, "moved", three).as_deref(), Some(&b"three"[..]));
    // A file that came and went through the mount leaves nothing.
    file(&base, "tmp", b"scratch");
    base.unlink(Ino::ROOT, b"tmp").expect("removed");
    assert!(versions(&base).iter().all(|v| v.0 != "tmp"));
    // Saved as editors do: a new file takes the name.
    put(&base, "note", b"old");
    let old = id_of(&base, "note");
    file(&base, ".note.swp", b"new");
    base.rename(Ino::ROOT, b".note.swp", Ino::ROOT, b"note", RenameFlag::Replace).expect("renamed");
    assert_eq!(content(&base, "note").as_deref(), Some(&b"new"[..]));
    assert_eq!(read(&base, "note", old).as_deref(), Some(&b"old"[..]));
    assert_eq!(versions(&base).iter().filter(|v| v.0 == "note").map(|v| v.2).collect::<Vec<_>>(), [true, false]);
    clean(&rig.store);
    let rig = rig.reopen();
    assert_eq!(read(&rig.session("base"), "d/k", one).as_deref(), Some(&big[..]));
    clean(&rig.store);
}

#[test]
fn a_version_that_somebody_has_open_or_linked_is_kept_apart() {
    let rig = Rig::new();
    let base = versioned(&rig, "base");
    put(&base, "k", b"one");
    let one = id_of(&base, "k");
    let attr = base.resolve(b"k").expect("there");
    base.open(attr.ino).expect("open");
    base.link(attr.ino, Ino::ROOT, b"link").expect("linked");
    put(&base, "k", b"two");
    base.write(attr.ino, WriteAt::Offset(0), b"ONE").expect("written");
    assert_eq!(read(&base, "k", one).as_deref(), Some(&b"one"[..]));
    assert_eq!(get(&base, "link").as_deref(), Some(&b"ONE"[..]));
    assert_eq!(read(&base, "link", one).as_deref(), Some(&b"one"[..]), "the link's key had that version too");
    base.delete_version(b"k", one, &Conditions::default()).expect("deleted");
    assert_eq!(read(&base, "link", one).as_deref(), Some(&b"one"[..]));
    clean(&rig.store);
}

#[test]
fn a_world_with_kept_versions_is_not_empty_and_deleted_ones_come_back_at_retention() {
    let rig = Rig::new();
    let base = versioned(&rig, "base");
    let info = put(&base, "k", b"one");
    let deleted = base.delete_object(b"k", &Conditions::default()).expect("deleted");
    let gone = rig.store.delete_world(&rig.root, "base", false).map(drop).map_err(|e| e.kind());
    assert_eq!(gone, Err(ErrorKind::NotEmpty));
    let named = [
        (Bytes::from("k"), VersionId::At(info.version)),
        (Bytes::from("k"), deleted.version.expect("a marker")),
        (Bytes::from("k"), VersionId::At(info.version)),
    ];
    let outcomes: Vec<_> = base
        .delete_versions(&named)
        .expect("deleted")
        .into_iter()
        .map(|o| o.map(|d| (d.existed, d.marker)).unwrap())
        .collect();
    assert_eq!(outcomes, [(true, false), (true, true), (false, false)]);
    assert!(versions(&base).is_empty());
    let then = base.at(&At::Version(info.version)).expect("retained");
    assert_eq!(get(&then, "k").as_deref(), Some(&b"one"[..]), "history still shows it");
    rig.store.delete_world(&rig.root, "base", false).expect("empty");
    clean(&rig.store);
}

#[test]
fn a_setting_is_for_admins_and_never_goes_back() {
    let rig = Rig::new();
    let base = rig.create("base");
    assert_eq!(base.versioning(), Versioning::Never);
    assert_eq!(base.set_versioning(Versioning::Never).map_err(|e| e.kind()), Err(ErrorKind::Invalid));
    put(&base, "k", b"one");
    assert_eq!(base.version_id(&base.head(b"k").expect("there")), None);
    base.set_versioning(Versioning::Enabled).expect("enabled");
    base.set_versioning(Versioning::Enabled).expect("again");
    assert_eq!(id_of(&base, "k"), VersionId::Null);
    let wrong = PutOptions::default();
    base.put(b"k", staged(&base, b"two"), &wrong).expect("put");
    assert_eq!(read(&base, "k", VersionId::Null).as_deref(), Some(&b"one"[..]));
    let rig = rig.reopen();
    let base = rig.session("base");
    assert_eq!(base.versioning(), Versioning::Enabled);
    let info = rig.store.worlds(&rig.root).expect("listed").remove(0);
    assert!(info.versioned);
    for text in ["", "-1", "+5", "05", "NULL", "1.0", "18446744073709551616", "x"] {
        assert!(text.parse::<VersionId>().is_err(), "{text:?}");
    }
}

/// What is kept counts against the quota and in what the world takes, and is no object.
#[test]
fn kept_versions_count_in_a_quota_and_in_what_a_world_takes() {
    let rig = Rig::new();
    let world = rig.create("base");
    world.set_versioning(Versioning::Enabled).expect("enabled");
    for _ in 0..3 {
        put(&world, "k", &[1; 10 << 10]);
    }
    let usage = world.du().expect("counted");
    assert_eq!(usage.bytes, 30 << 10, "{usage:?}");
    assert_eq!(crate::objects::keys(&world), ["k"]);
    world.set_quota(mw_world::Quota { bytes: Some(35 << 10), inodes: None }).expect("set");
    assert_eq!(world.quota().expect("asked").1.bytes, 30 << 10);
    let over = world.stage().and_then(|mut staged| staged.push(&[2; 10 << 10])).expect_err("does not fit");
    assert_eq!(over.kind(), ErrorKind::Quota);
    let kept = versions(&world);
    assert_eq!(kept.len(), 3, "{kept:?}");
    let oldest = kept.iter().map(|(_, id, ..)| *id).min().expect("three");
    world.delete_version(b"k", oldest, &Conditions::default()).expect("deleted");
    assert_eq!(world.quota().expect("asked").1.bytes, 20 << 10, "a deleted version makes room");
    put(&world, "k", &[2; 10 << 10]);
    clean(&rig.store);
}

/// A key that no record of a version can name is replaced and deleted as in a bucket without versions.
#[test]
fn a_key_too_long_for_a_version_has_none() {
    let rig = Rig::new();
    let world = rig.create("base");
    world.set_versioning(Versioning::Enabled).expect("enabled");
    let long = vec!["d".repeat(200); 6].join("/");
    file(&world, &long, b"one");
    let nuls = "\0".repeat(600);
    put(&world, &nuls, b"one");
    put(&world, &nuls, b"two");
    assert_eq!(get(&world, &nuls).as_deref(), Some(&b"two"[..]));
    assert_eq!(content(&world, &long).as_deref(), Some(&b"one"[..]));
    for key in [&nuls, &long] {
        assert!(delete(&world, key));
        assert!(!versions(&world).iter().any(|(shown, ..)| shown == key), "neither a version nor a marker");
        assert!(!delete(&world, key));
    }
    clean(&rig.store);
}
