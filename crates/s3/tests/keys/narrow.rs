//! Grants narrowed to a prefix or to verbs, and the right to fork, at the session that every door holds.

use crate::client::{Ask, Client};
use crate::house::House;
use mw_model::{ErrorKind, Ino};
use mw_world::{Grant, KeyRequest, Make, Principal, Role, Verbs, WriteAt};

fn house() -> House {
    let house = House::new();
    for world in ["own", "other"] {
        house.root.put(&format!("/{world}"), "").ok();
        for key in ["docs/a", "docs/sub/b", "docs-2/c", "top"] {
            house.root.put(&format!("/{world}/{key}"), key).ok();
        }
    }
    house
}

fn key(house: &House, request: KeyRequest) -> (Client, Principal) {
    let request = KeyRequest { name: "narrow".into(), ..request };
    let secret = house.store.create_key(&house.root_principal(), &request).unwrap();
    let who = house.store.principal(&secret.id).unwrap();
    (Client { addr: house.root.addr, id: secret.id, secret: secret.secret }, who)
}

fn narrowed(house: &House, role: Role, verbs: &str, prefix: &str) -> (Client, Principal) {
    let verbs = if verbs.is_empty() { Verbs::ALL } else { Verbs::parse(verbs).unwrap() };
    let grant = Grant { world: "own".into(), role, verbs, prefix: prefix.into() };
    key(house, KeyRequest { grants: vec![grant], ..KeyRequest::default() })
}

#[test]
fn a_prefix_bounds_every_verb_of_s3() {
    let house = house();
    let (client, _) = narrowed(&house, Role::Editor, "", "docs/");
    client.put("/own/docs/n", "x").ok();
    assert_eq!(client.get("/own/docs/n").ok().body, b"x");
    assert_eq!(client.get("/own?list-type=2&prefix=docs%2F").ok().tags("Key"), ["docs/a", "docs/n", "docs/sub/b"]);
    client.ask(&Ask::new("PUT", "/own/docs/copy").header("x-amz-copy-source", "own/docs/a")).ok();
    client.delete("/own/docs/n").ok();
    let upload = client.ask(&Ask::new("POST", "/own/docs/big?uploads=")).ok().tag("UploadId");
    client.put(&format!("/own/docs/big?partNumber=1&uploadId={upload}"), "part").ok();
    for ask in [
        Ask::new("GET", "/own/top"),
        Ask::new("HEAD", "/own/docs-2/c"),
        Ask::new("GET", "/own/docs"),
        Ask::new("PUT", "/own/docs").body("x"),
        Ask::new("PUT", "/own/docs-2/n").body("x"),
        Ask::new("DELETE", "/own/top"),
        Ask::new("GET", "/own?list-type=2"),
        Ask::new("GET", "/own?list-type=2&prefix=docs"),
        Ask::new("GET", "/own?list-type=2&prefix=d&delimiter=%2F"),
        Ask::new("GET", "/own?uploads="),
        Ask::new("POST", "/own/top?uploads="),
        Ask::new("PUT", &format!("/own/top?partNumber=1&uploadId={upload}")).body("x"),
        Ask::new("PUT", "/own/docs/stolen").header("x-amz-copy-source", "own/top"),
        Ask::new("PUT", &format!("/own/docs/big?partNumber=2&uploadId={upload}"))
            .header("x-amz-copy-source", "own/top"),
        Ask::new("PUT", "/own/top").header("x-amz-copy-source", "own/docs/a"),
        Ask::new("PUT", "/own/top?tagging=").body("<Tagging><TagSet></TagSet></Tagging>"),
        Ask::new("GET", "/own/top?tagging="),
        Ask::new("DELETE", "/own"),
        Ask::new("GET", "/other/docs/a"),
    ] {
        let answer = client.ask(&ask);
        assert_eq!(answer.status, 403, "{} {} {:?}: {}", ask.method, ask.path, ask.query, answer.text());
    }
    assert_eq!(house.root.get("/own/top").ok().body, b"top");
}

#[test]
fn verbs_bound_a_role() {
    let house = house();
    let (drop_box, _) = narrowed(&house, Role::Editor, "put", "inbox/");
    drop_box.put("/own/inbox/n", "x").ok();
    assert_eq!(drop_box.get("/own/inbox/n").status, 403);
    assert_eq!(drop_box.delete("/own/inbox/n").status, 403);
    assert_eq!(drop_box.get("/own?list-type=2&prefix=inbox%2F").status, 403);
    assert_eq!(drop_box.get("/own?list-type=2&prefix=inbox%2F&max-keys=0").status, 403, "a page of nothing is a page");
    let (reader, _) = narrowed(&house, Role::Editor, "get+list", "");
    reader.get("/own/top").ok();
    reader.get("/own?list-type=2").ok();
    assert_eq!(reader.put("/own/n", "x").status, 403);
    let (none, _) = narrowed(&house, Role::Reader, "put", "");
    assert_eq!(none.put("/own/n", "x").status, 403, "verbs narrow a role and never widen it");
    for wrong in ["", "read", "get+", "get,list", "GET"] {
        assert_eq!(Verbs::parse(wrong), None, "{wrong}");
    }
}

/// The verbs of a mount go by inode; the path decides all the same.
#[test]
fn a_prefix_bounds_the_verbs_of_a_mount() {
    let house = house();
    let (_, who) = narrowed(&house, Role::Editor, "", "docs/");
    let session = house.store.session(&who, "own").unwrap();
    let whole = house.store.session(&house.root_principal(), "own").unwrap();
    let ino = |path: &[u8]| whole.resolve(path).unwrap().ino;
    let (docs, a, top, docs2) = (ino(b"docs"), ino(b"docs/a"), ino(b"top"), ino(b"docs-2"));

    assert_eq!(session.lookup(Ino::ROOT, b"docs").unwrap().ino, docs, "the way to what it may reach is open");
    assert_eq!(session.read(a, 0, 10).unwrap(), "docs/a");
    session.write(a, WriteAt::End, b"+").unwrap();
    let file =
        Make { kind: mw_model::FileType::File, mode: 0o644, uid: 0, gid: 0, rdev: 0, target: Default::default() };
    let made = session.make(docs, b"made", &file).unwrap().ino;
    session.rename(docs, b"made", docs, b"renamed", mw_world::RenameFlag::Replace).unwrap();
    session.unlink(docs, b"renamed").unwrap();
    let _ = made;
    session.open_dir(docs).unwrap();

    let denied = |what: &str, result: Result<(), mw_world::Error>| {
        assert_eq!(result.expect_err(what).kind(), ErrorKind::Denied, "{what}");
    };
    denied("lookup", session.lookup(Ino::ROOT, b"top").map(drop));
    denied("resolve", session.resolve(b"docs-2/c").map(drop));
    denied("attr", session.attr(top).map(drop));
    denied("open", session.open(top).map(drop));
    denied("read", session.read(top, 0, 1).map(drop));
    denied("write", session.write(top, WriteAt::End, b"x").map(drop));
    denied("truncate", session.set_attr(top, &mw_world::SetAttr { size: Some(0), ..Default::default() }).map(drop));
    denied("list the root", session.open_dir(Ino::ROOT).map(drop));
    denied("list another", session.open_dir(docs2).map(drop));
    denied("make", session.make(Ino::ROOT, b"n", &file).map(drop));
    denied("make unnamed", session.make_unnamed(&file).map(drop));
    denied("unlink", session.unlink(Ino::ROOT, b"top"));
    denied("rmdir", session.rmdir(Ino::ROOT, b"docs-2"));
    denied("rename in", session.rename(Ino::ROOT, b"top", docs, b"top", mw_world::RenameFlag::Replace));
    denied("rename out", session.rename(docs, b"a", Ino::ROOT, b"a", mw_world::RenameFlag::Replace));
    denied("rename a directory", session.rename(docs, b"sub", docs, b"sub2", mw_world::RenameFlag::Replace));
    denied("link in", session.link(top, docs, b"top").map(drop));
    denied("link out", session.link(a, Ino::ROOT, b"a").map(drop));
    denied("copy a range", session.copy_range(top, 0, a, 0, 1).map(drop));
    denied("xattr", session.get_xattr(top, b"user.x").map(drop));
    denied("set xattr", session.set_xattr(top, b"user.x", b"1", mw_world::XattrFlag::Any).map(drop));
    denied("snapshot", session.snapshot(None, None).map(drop));
    denied("history", session.log(&Default::default()).map(drop));
    denied("usage", session.du().map(drop));
    denied("revert", session.revert(mw_world::At::Version(mw_model::Version(1))).map(drop));
    // A file with a second name elsewhere: writing it would write there.
    whole.link(a, Ino::ROOT, b"alias").unwrap();
    denied("write through a hard link", session.write(a, WriteAt::End, b"x").map(drop));
}

#[test]
fn the_right_to_fork() {
    let house = house();
    let request = |forks| KeyRequest { grants: vec![Grant::new("own", Role::Editor)], forks, ..KeyRequest::default() };
    let (_, without) = key(&house, request(0));
    let fork = |who: &Principal, base: &str, name: &str| house.store.fork(who, base, name, &Default::default());
    assert_eq!(fork(&without, "own", "f-0").unwrap_err().kind(), ErrorKind::Denied);

    let (client, who) = key(&house, request(2));
    fork(&who, "own", "f-1").unwrap();
    assert_eq!(fork(&who, "other", "f-2").unwrap_err().kind(), ErrorKind::Denied, "its own world alone");
    client.put("/f-1/n", "written").ok();
    assert_eq!(client.get("/own/n").status, 404);
    assert_eq!(client.get("/").ok().tags("Name"), ["f-1", "own"]);
    let info = house.store.session(&who, "f-1").unwrap().info().unwrap();
    assert_eq!(info.parent.unwrap().name, "own");
    house.store.session(&who, "own").unwrap().snapshot(Some("before"), None).unwrap();
    // A fork of what it owns is a fork like any other: as admin there it needs no right, and yet it counts.
    fork(&who, "f-1", "f-1-1").unwrap();
    assert_eq!(fork(&who, "own", "f-2").unwrap_err().kind(), ErrorKind::Quota);
    house.store.delete_world(&who, "f-1-1", true).unwrap();
    fork(&who, "own", "f-2").unwrap();
    let promote = house.store.session(&who, "f-1").unwrap().promote(&Default::default());
    assert_eq!(promote.unwrap_err().kind(), ErrorKind::Denied, "what it wrote in a fork goes back by who may promote");
    let stranger = house.key(&[("own", Role::Editor)]);
    assert_eq!(stranger.get("/f-1/n").status, 403);
    assert_eq!(house.store.delete_world(&who, "own", true).unwrap_err().kind(), ErrorKind::Denied);
}

/// A guest's fork of a world that ends, ends with it.
#[test]
fn a_fork_by_right_does_not_outlive_its_base() {
    let house = house();
    let ttl = mw_world::ForkOptions { ttl: Some(std::time::Duration::from_secs(100)), ..Default::default() };
    let end = house.store.fork(&house.root_principal(), "own", "run", &ttl).unwrap().expires;
    let (_, who) =
        key(&house, KeyRequest { grants: vec![Grant::new("run", Role::Editor)], forks: 1, ..KeyRequest::default() });
    assert_eq!(house.store.fork(&who, "run", "run-2", &Default::default()).unwrap().expires, end);
}

/// A verb of a mount or a control plane on a path.
type Verb = (&'static str, fn(&mw_world::Session, &mw_world::Session, &str) -> Result<(), mw_world::Error>);

/// Every verb that takes a name or a path: the session that is asked, one that sees all (for inodes), and the path.
const BY_PATH: &[Verb] = &[
    ("resolve", |s, _, p| s.resolve(p.as_bytes()).map(drop)),
    ("resolve with a slash", |s, _, p| s.resolve(format!("{p}/").as_bytes()).map(drop)),
    ("resolve below", |s, _, p| s.resolve(format!("{p}/below").as_bytes()).map(drop)),
    ("lookup", |s, all, p| s.lookup(parent(all, p)?, name(p)).map(drop)),
    ("make", |s, all, p| {
        let make =
            Make { kind: mw_model::FileType::File, mode: 0o644, uid: 0, gid: 0, rdev: 0, target: Default::default() };
        s.make(parent(all, p)?, name(p), &make).map(drop)
    }),
    ("unlink", |s, all, p| s.unlink(parent(all, p)?, name(p))),
    ("rmdir", |s, all, p| s.rmdir(parent(all, p)?, name(p))),
    ("rename from", |s, all, p| {
        s.rename(parent(all, p)?, name(p), all.resolve(b"docs")?.ino, b"stolen", mw_world::RenameFlag::Replace)
    }),
    ("rename to", |s, all, p| {
        s.rename(all.resolve(b"docs")?.ino, b"a", parent(all, p)?, name(p), mw_world::RenameFlag::NoReplace)
    }),
    ("exchange", |s, all, p| {
        s.rename(all.resolve(b"docs")?.ino, b"a", parent(all, p)?, name(p), mw_world::RenameFlag::Exchange)
    }),
    ("link to", |s, all, p| s.link(all.resolve(b"docs/a")?.ino, parent(all, p)?, name(p)).map(drop)),
    ("get", |s, _, p| s.get(p.as_bytes()).map(drop)),
    ("head", |s, _, p| s.head(p.as_bytes()).map(drop)),
    ("delete", |s, _, p| s.delete(p.as_bytes(), &Default::default()).map(drop)),
    ("copy from", |s, _, p| s.copy(s, p.as_bytes(), b"docs/copied", &Default::default()).map(drop)),
    ("copy to", |s, _, p| s.copy(s, b"docs/a", p.as_bytes(), &Default::default()).map(drop)),
    ("rename the object", |s, _, p| s.rename_object(p.as_bytes(), b"docs/moved", &Default::default()).map(drop)),
    ("tags", |s, _, p| s.set_tags(p.as_bytes(), Vec::new())),
    ("marker", |s, _, p| s.marker(p.as_bytes()).map(drop)),
    ("restore", |s, _, p| {
        let then = s.info()?.version;
        s.restore(mw_world::At::Version(then), p.as_bytes()).map(drop)
    }),
    ("list", |s, _, p| {
        let prefix = format!("{p}/").into_bytes().into();
        s.list(&mw_world::ListRequest { prefix, delimiter: None, after: Default::default(), limit: 10 }).map(drop)
    }),
];

fn name(path: &str) -> &[u8] {
    path.rsplit('/').next().unwrap().as_bytes()
}

fn parent(all: &mw_world::Session, path: &str) -> Result<Ino, mw_world::Error> {
    Ok(all.resolve(path.rsplit_once('/').map_or("", |(dir, _)| dir).as_bytes())?.ino)
}

/// By any verb of any door: doors have no other way to a world than these.
#[test]
fn outside_its_prefix_no_verb_tells_what_is_there() {
    let house = house();
    let (_, who) = narrowed(&house, Role::Admin, "", "docs/");
    let whole = house.store.session(&house.root_principal(), "own").unwrap();
    let temporary = {
        let policy = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"arn:aws:s3:::own/docs/*"}}"#;
        let bounds = mw_world::Bounds {
            name: "agent".into(),
            policy: Some(policy.into()),
            ttl: std::time::Duration::from_secs(100),
            ..Default::default()
        };
        let made = house.store.create_temporary(&house.root_principal(), &bounds).unwrap();
        house.store.principal(&made.secret.id).unwrap()
    };
    for who in [who, temporary] {
        let session = house.store.session(&who, "own").unwrap();
        for (what, verb) in BY_PATH {
            // A file, a directory, one beside another, and what is not there; names of one length.
            for (there, absent) in
                [("top", "nil"), ("docs-2", "docs-3"), ("docs-2/c", "docs-2/x"), ("docs-2/c", "docs-3/c")]
            {
                // By inode a directory that is not there cannot even be named.
                if absent == "docs-3/c" && parent(&whole, absent).is_err() && verb_is_by_inode(what) {
                    continue;
                }
                let told = |path: &str| {
                    let error = verb(&session, &whole, path).expect_err(&format!("{what} {path}"));
                    (error.kind(), error.to_string().replace(path, "PATH"))
                };
                assert_eq!(told(there), told(absent), "{what} {there} {absent}");
                assert_eq!(told(there).0, ErrorKind::Denied, "{what} {there}");
            }
        }
    }
    assert_eq!(house.root.get("/own/top").ok().body, b"top");
}

fn verb_is_by_inode(what: &str) -> bool {
    ["lookup", "make", "unlink", "rmdir", "rename from", "rename to", "exchange", "link to"].contains(&what)
}

/// The way to its prefix is open, also while nothing is there yet; what lies in the way and is not its own is not shown.
#[test]
fn the_way_to_a_prefix_is_open_and_shows_nothing_else() {
    let house = house();
    let (_, who) = narrowed(&house, Role::Editor, "", "new/place/");
    let session = house.store.session(&who, "own").unwrap();
    assert_eq!(session.resolve(b"new").unwrap_err().kind(), ErrorKind::NotFound);
    house.root.put("/own/new", "a file in the way").ok();
    assert_eq!(session.resolve(b"new").unwrap_err().kind(), ErrorKind::NotFound, "as if it were not there");
    assert_eq!(session.lookup(Ino::ROOT, b"new").unwrap_err().kind(), ErrorKind::NotFound);
    house.root.put("/own/new/place/a", "x").ok();
    assert_eq!(session.resolve(b"new/place/a").unwrap().size, 1);
    assert_eq!(session.resolve(b"new/plac").unwrap_err().kind(), ErrorKind::Denied);
}
