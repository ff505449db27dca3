//! What goes on when a key dies under somebody who holds a session with it, as a mount does.

use crate::house::House;
use mw_model::ErrorKind;
use mw_world::{Grant, KeyRequest, Role, Session, WriteAt};
use std::time::Duration;

fn holding(house: &House, ttl: Option<Duration>) -> (String, Session) {
    let request = KeyRequest {
        name: "mounted".into(),
        grants: vec![Grant::new("base", Role::Editor)],
        ttl,
        ..KeyRequest::default()
    };
    let secret = house.store.create_key(&house.root_principal(), &request).unwrap();
    let session = house.store.session(&house.store.principal(&secret.id).unwrap(), "base").unwrap();
    (secret.id, session)
}

#[test]
fn a_mount_reads_on_when_its_key_is_deleted_and_writes_no_more() {
    let house = House::with_base();
    house.root.put("/base/f", "seen").ok();
    let (id, session) = holding(&house, None);
    let ino = session.resolve(b"f").unwrap().ino;
    let object = session.get(b"f").unwrap();
    session.write(ino, WriteAt::End, b"!").unwrap();
    house.store.delete_key(&house.root_principal(), &id).unwrap();
    assert_eq!(session.read(ino, 0, 10).unwrap(), "seen!");
    assert_eq!(object.read(0, 10).unwrap(), "seen", "an answer under way ends as it began");
    for refused in [
        session.write(ino, WriteAt::End, b"?").map(drop),
        session.delete(b"f", &Default::default()).map(drop),
        session.snapshot(None, None).map(drop),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Denied);
    }
    assert_eq!(house.root.get("/base/f").ok().text(), "seen!");
    assert_eq!(house.store.principal(&id).unwrap_err().kind(), ErrorKind::Denied);
}

#[test]
fn a_mount_writes_on_when_its_key_expires_and_nobody_can_present_it_again() {
    let house = House::with_base();
    house.root.put("/base/f", "seen").ok();
    let (id, session) = holding(&house, Some(Duration::from_millis(20)));
    mw_env::Env::real().sleep(Duration::from_millis(30));
    assert_eq!(house.store.principal(&id).unwrap_err().kind(), ErrorKind::Denied);
    let ino = session.resolve(b"f").unwrap().ino;
    session.write(ino, WriteAt::End, b"!").unwrap();
    assert_eq!(house.root.get("/base/f").ok().text(), "seen!");
}

/// The root key cannot be revoked: what the server goes on doing in its name outlives its secret, a request in flight does not.
#[test]
fn what_the_server_does_for_the_root_key_outlives_its_secret() {
    let house = House::with_base();
    house.root.put("/base/f", "seen").ok();
    let request = house.store.session(&house.root_principal(), "base").unwrap();
    let mount = request.lasting();
    let ino = mount.resolve(b"f").unwrap().ino;
    house.store.rotate_key(&house.root_principal(), &house.root.id).unwrap();
    mount.write(ino, WriteAt::End, b"!").unwrap();
    assert_eq!(request.write(ino, WriteAt::End, b"?").unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(house.root.get("/base/f").status, 403, "the old secret");
    let fresh = crate::client::Client { secret: house.store.root_key().unwrap().secret, ..house.root.clone() };
    assert_eq!(fresh.get("/base/f").ok().text(), "seen!");
    // Of any other key, everything requires its record as it was.
    let (id, session) = holding(&house, None);
    house.store.rotate_key(&house.root_principal(), &id).unwrap();
    assert_eq!(session.lasting().write(ino, WriteAt::End, b"?").unwrap_err().kind(), ErrorKind::Denied);
}
