//! The rules of one tree that are easy to get wrong, and random walks that must keep its invariants.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use mw_model::ErrorKind;
use mw_testkit::{Content, Exchange, Model, Node, Op, Rng, Tree, Verb, random_op};

/// A store with one world.
struct One(Model);

impl One {
    fn new() -> Self {
        let mut model = Model::new();
        model.apply(&Op::CreateWorld { world: "one".to_owned() }).unwrap();
        Self(model)
    }

    fn run(&mut self, verb: Verb) -> Result<(), ErrorKind> {
        self.0.apply(&Op::In { world: "one".to_owned(), verb }).map(|_| ())
    }

    fn put(&mut self, key: &str) {
        let content = Content { tag: 1, len: 3 };
        self.run(Verb::Put { key: key.to_owned(), content, content_type: None, if_absent: false }).unwrap();
    }

    fn delete(&mut self, key: &str) {
        self.run(Verb::Delete { key: key.to_owned() }).unwrap();
    }

    fn mkdir(&mut self, path: &str) -> Result<(), ErrorKind> {
        self.run(Verb::Mkdir { path: path.to_owned(), mode: 0o755 })
    }

    fn rmdir(&mut self, path: &str) -> Result<(), ErrorKind> {
        self.run(Verb::Rmdir { path: path.to_owned() })
    }

    fn unlink(&mut self, path: &str) -> Result<(), ErrorKind> {
        self.run(Verb::Unlink { path: path.to_owned() })
    }

    fn create(&mut self, path: &str) -> Result<(), ErrorKind> {
        self.run(Verb::Create { path: path.to_owned(), mode: 0o644 })
    }

    fn rename(&mut self, from: &str, to: &str, how: Exchange) -> Result<(), ErrorKind> {
        self.run(Verb::Rename { from: from.to_owned(), to: to.to_owned(), how })
    }

    fn tree(&self) -> &Tree {
        self.0.world("one").unwrap().tree()
    }

    fn keys(&self) -> Vec<String> {
        self.tree().objects().into_keys().collect()
    }
}

#[test]
fn keys_come_in_byte_order_whatever_is_a_directory() {
    let mut one = One::new();
    let mut keys = ["a", "a!", "a-/x", "a.", "a/", "a/b", "a/b/c", "a//d", "a0", "/", "//", "é", "\u{1}"];
    keys.iter().for_each(|key| one.put(key));
    keys.sort_unstable();
    assert_eq!(one.keys(), keys);
}

#[test]
fn a_directory_hides_the_object_of_its_name_and_rmdir_shows_it_again() {
    let mut one = One::new();
    one.put("a");
    one.put("a/b");
    assert_eq!(one.tree().readdir("").unwrap().len(), 1);
    assert!(matches!(one.tree().stat("a").unwrap().1.node, Node::Dir { .. }));
    assert_eq!(one.unlink("a"), Err(ErrorKind::IsDirectory));
    assert_eq!(one.create("a"), Err(ErrorKind::AlreadyExists));
    one.rename("a", "z", Exchange::Replace).unwrap();
    assert_eq!(one.keys(), ["a", "z/b"], "the hidden object does not move");
    one.rename("z", "a", Exchange::Replace).unwrap_err();
    one.mkdir("a").unwrap_err();
    one.put("a/c");
    one.unlink("a/c").unwrap();
    one.rmdir("a").unwrap();
    assert!(matches!(one.tree().stat("a").unwrap().1.node, Node::File(_)));
}

#[test]
fn an_exchange_never_lands_on_a_hidden_object() {
    let mut one = One::new();
    one.put("a");
    one.put("a/b");
    one.put("f");
    assert_eq!(one.rename("f", "a", Exchange::Exchange), Err(ErrorKind::AlreadyExists));
    assert_eq!(one.keys(), ["a", "a/b", "f"]);
    one.delete("a");
    one.rename("f", "a", Exchange::Exchange).unwrap();
    assert_eq!(one.keys(), ["a", "f/b"]);
}

#[test]
fn implicit_directories_go_explicit_ones_stay() {
    let mut one = One::new();
    one.put("i/j/k");
    one.delete("i/j/k");
    assert_eq!(one.tree().readdir("").unwrap().len(), 0);
    one.mkdir("e").unwrap();
    assert_eq!(one.tree().get("e/"), Ok(Vec::new()), "an empty directory lists as its marker");
    one.put("e/x");
    assert_eq!(one.keys(), ["e/x"]);
    one.delete("e/x");
    assert_eq!(one.keys(), ["e/"]);
    one.delete("e/");
    assert_eq!(one.keys(), [""; 0]);
    one.put("m/");
    one.put("m/x");
    one.delete("m/x");
    assert_eq!(one.keys(), ["m/"]);
}

#[test]
fn a_directory_used_by_a_mount_stays() {
    let mut one = One::new();
    one.put("d/x");
    one.unlink("d/x").unwrap();
    assert_eq!(one.keys(), ["d/"]);
}

#[test]
fn rmdir_counts_hidden_names_but_not_the_marker() {
    let mut one = One::new();
    one.put("d/");
    one.rmdir("d").unwrap();
    for hidden in ["d/..", "d//x", "d/\0"] {
        one.put(hidden);
        assert_eq!(one.rmdir("d"), Err(ErrorKind::NotEmpty));
        assert_eq!(one.tree().readdir("d").unwrap().len(), 0);
        one.delete(hidden);
    }
}

#[test]
fn a_put_makes_a_new_inode_a_write_does_not() {
    let mut one = One::new();
    one.put("a");
    one.run(Verb::Link { from: "a".to_owned(), to: "b".to_owned() }).unwrap();
    let write = Verb::Write { path: "b".to_owned(), offset: 5, content: Content { tag: 2, len: 1 } };
    one.run(write).unwrap();
    assert_eq!(one.tree().get("a").unwrap().len(), 6);
    assert_eq!(one.tree().nlink(one.tree().stat("a").unwrap().0), 2);
    one.put("a");
    assert_eq!((one.tree().get("a").unwrap().len(), one.tree().get("b").unwrap().len()), (3, 6));
}

#[test]
fn listing_rolls_up_and_counts_both() {
    let mut one = One::new();
    ["a", "a/b", "a/c", "b/d", "e"].iter().for_each(|key| one.put(key));
    let page = one.tree().list("", Some("/"), "", 3);
    assert_eq!(page.prefixes, ["a/", "b/"]);
    assert_eq!((page.keys, page.truncated), (vec![("a".to_owned(), 3)], true));
    let page = one.tree().list("a/", Some("/"), "a/b", 10);
    assert_eq!((page.keys, page.truncated), (vec![("a/c".to_owned(), 3)], false));
    assert!(!one.tree().list("", None, "", 0).truncated);
    assert!(!one.tree().list("", None, "", 5).truncated);
}

#[test]
fn rename_fails_as_linux_does() {
    let mut one = One::new();
    one.mkdir("d").unwrap();
    one.mkdir("d/e").unwrap();
    one.create("f").unwrap();
    for (from, to, how, want) in [
        ("none", "x", Exchange::Replace, ErrorKind::NotFound),
        ("f/x", "x", Exchange::Replace, ErrorKind::NotDirectory),
        ("f", "d", Exchange::Replace, ErrorKind::IsDirectory),
        ("d", "f", Exchange::Replace, ErrorKind::NotDirectory),
        ("d", "d/e/x", Exchange::Replace, ErrorKind::Invalid),
        ("d/e", "d", Exchange::Replace, ErrorKind::NotEmpty),
        ("d/e", "d", Exchange::Exchange, ErrorKind::Invalid),
        ("f", "d", Exchange::NoReplace, ErrorKind::AlreadyExists),
        ("f", "x", Exchange::Exchange, ErrorKind::NotFound),
        ("", "x", Exchange::Replace, ErrorKind::Busy),
    ] {
        assert_eq!(one.rename(from, to, how), Err(want), "{from} to {to}, {how:?}");
    }
    one.rename("d", "d", Exchange::Replace).unwrap();
    one.rename("d/e", "g", Exchange::Replace).unwrap();
    one.rename("g", "d", Exchange::Replace).unwrap();
    one.rename("d", "f", Exchange::Exchange).unwrap();
    assert!(matches!(one.tree().stat("f").unwrap().1.node, Node::Dir { .. }));
}

#[test]
fn special_files_are_no_objects_and_symlinks_are() {
    let mut one = One::new();
    let kind = mw_model::FileType::Fifo;
    one.run(Verb::Mknod { path: "p".to_owned(), kind, mode: 0o644, rdev: 0 }).unwrap();
    one.run(Verb::Symlink { target: "/etc".to_owned(), path: "s".to_owned() }).unwrap();
    assert_eq!(one.keys(), ["s"]);
    assert_eq!(one.tree().get("s").unwrap(), b"/etc");
    one.put("s/x");
    assert_eq!(one.keys(), ["s", "s/x"], "a link is never followed");
    one.delete("p");
    one.tree().stat("p").unwrap();
}

#[test]
fn contents_differ_and_do_not_repeat() {
    let a = Content { tag: 1, len: 70_000 }.bytes();
    let b = Content { tag: 2, len: 70_000 }.bytes();
    assert_ne!(a[..8], b[..8]);
    assert_ne!(a[..1000], a[65_536..66_536]);
}

#[test]
fn random_walks_keep_the_invariants_and_replay() {
    let walk = |seed| {
        let mut rng = Rng::new(seed);
        let mut model = Model::new();
        let (mut lines, mut done) = (Vec::new(), 0);
        for _ in 0..250 {
            let op = random_op(&mut rng, &model);
            let before = model.clone();
            let outcome = model.apply(&op);
            lines.push(format!("{op} -> {outcome:?}"));
            done += usize::from(outcome.is_ok());
            for (name, world) in model.worlds() {
                let tree = world.tree();
                let keys: Vec<String> = tree.objects().into_keys().collect();
                let listed: Vec<String> =
                    tree.list("", None, "", usize::MAX).keys.into_iter().map(|(k, _)| k).collect();
                assert_eq!(keys, listed, "{name} after {}", lines.join("\n"));
                if outcome.is_err() {
                    assert_eq!(Some(tree), before.world(name).map(|world| world.tree()), "a failed {op} left a trace");
                }
            }
        }
        (lines, done)
    };
    for seed in 0..10 {
        let (lines, done) = walk(seed);
        assert!(done > 60, "only {done} operations of seed {seed} did anything");
        assert!(lines.iter().all(|line| !line.contains('\n')));
        if seed == 0 {
            assert_eq!(walk(seed).0, lines);
        }
    }
}
