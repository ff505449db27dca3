//! C16: snapshots, restarts and reverts in turns. Each snapshot is the world at its moment, for any number of cycles and in any order; going
//! back is a change like others and loses no snapshot; one that fails changes nothing.

use crate::objects::{get, keys, put};
use crate::rig::{Rig, clean};
use mw_model::{ErrorKind, FileType, Ino, Version};
use mw_world::{At, Conditions, ForkOptions, RenameFlag, Session};
use std::collections::BTreeMap;

const CYCLES: u64 = 30;

fn look(world: &Session) -> BTreeMap<String, Vec<u8>> {
    keys(world).into_iter().map(|key| (key.clone(), get(world, &key).unwrap_or_default())).collect()
}

#[test]
fn every_snapshot_is_its_moment_after_any_number_of_cycles() {
    let mut rig = Rig::new();
    rig.create("base");
    let mut moments: Vec<(Version, BTreeMap<String, Vec<u8>>)> = Vec::new();
    for n in 1..=CYCLES {
        let world = rig.session("base");
        put(&world, "n", n.to_string().as_bytes());
        put(&world, &format!("f{n}"), &vec![n as u8; 3000]);
        if n > 3 {
            assert!(world.delete(format!("f{}", n - 3).as_bytes(), &Conditions::default()).unwrap());
        }
        let (from, to) = (format!("d{}", n - 1), format!("d{n}"));
        match world.lookup(Ino::ROOT, from.as_bytes()) {
            Ok(_) => world.rename(Ino::ROOT, from.as_bytes(), Ino::ROOT, to.as_bytes(), RenameFlag::Replace).unwrap(),
            Err(_) => drop(world.make(Ino::ROOT, to.as_bytes(), &crate::rig::a(FileType::Directory)).unwrap()),
        }
        let label = format!("s{n}");
        let version = world.snapshot(Some(&label), None).unwrap().version;
        let seen = look(&world);
        moments.push((version, seen.clone()));
        drop(world);
        rig = rig.reopen();
        let world = rig.session("base");
        world.revert(At::Label(label)).unwrap();
        assert_eq!(look(&world), seen, "cycle {n}");
    }
    // In another order, as forks, while the world goes on.
    for step in 0..CYCLES {
        let n = (step * 7 + 3) % CYCLES;
        let (version, seen) = &moments[n as usize];
        let name = format!("fork-{n}");
        let options = ForkOptions { at: Some(At::Version(*version)), ..ForkOptions::default() };
        rig.store.fork(&rig.root, "base", &name, &options).unwrap();
        assert_eq!(&look(&rig.session(&name)), seen, "fork of snapshot {n}");
    }
    // Back and forward, and to nowhere.
    let world = rig.session("base");
    for n in [5, 25, 1, 30] {
        world.revert(At::Label(format!("s{n}"))).unwrap();
        assert_eq!(look(&world), moments[n - 1].1, "to {n}");
    }
    let before = look(&world);
    let nowhere = world.revert(At::Label("nosuch".to_owned())).unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::NotFound);
    assert_eq!(look(&world), before);
    let labels: Vec<String> = world.snapshots().unwrap().into_iter().filter_map(|s| s.label).collect();
    for n in 1..=CYCLES {
        assert!(labels.contains(&format!("s{n}")), "{n} of {labels:?}");
    }
    clean(&rig.store);
}
