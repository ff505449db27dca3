//! Listings and keys, against the naive model.

use super::{get, keys, list, pages, put, put_with};
use crate::rig::{Rig, a, clean};
use bytes::Bytes;
use mw_model::{FileType, Ino};
use mw_testkit::{Model, Op, Rng, Verb, random_key};
use mw_world::{Conditions, CopyOptions, Error, ListRequest, Make, PutOptions, Session};

/// What a listing must show, made from the keys alone.
fn naive(keys: &[String], prefix: &str, delimiter: Option<&str>, after: &str) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    let group = |key: &str| {
        let at = delimiter.and_then(|d| key[prefix.len()..].find(d).map(|at| prefix.len() + at + d.len()));
        at.map(|end| key[..end].to_owned())
    };
    let rolled = after.starts_with(prefix) && group(after).is_some_and(|g| g == after);
    for key in keys.iter().filter(|key| key.starts_with(prefix)) {
        if key.as_str() <= after || rolled && key.starts_with(after) {
            continue;
        }
        let item = group(key).map_or_else(|| key.clone(), |g| format!("{g}*"));
        if shown.last() != Some(&item) {
            shown.push(item);
        }
    }
    shown
}

/// Compares every way to list with the naive one.
fn agrees(session: &Session, keys: &[String]) {
    let mut starts: Vec<String> = vec![String::new(), "a".into(), "d/a.zzz".into(), "~~".into()];
    starts.extend(keys.iter().step_by(3).flat_map(|key| {
        let cut = key.char_indices().map(|(at, _)| at).nth(key.chars().count() / 2).unwrap_or(0);
        [key.clone(), key[..cut].to_owned()]
    }));
    starts.sort();
    starts.dedup();
    for delimiter in [None, Some("/"), Some("a"), Some("/a"), Some("-")] {
        for prefix in &starts {
            let want = naive(keys, prefix, delimiter, "");
            for limit in [1, 2, 3, 7, 1000] {
                let got = pages(session, prefix, delimiter, "", limit);
                let full = got.iter().rev().skip(1).all(|page| page.len() == limit);
                assert!(full, "a page before the last is full");
                assert_eq!(got.concat(), want, "prefix {prefix:?} delimiter {delimiter:?} limit {limit}");
            }
        }
        for after in &starts {
            let got = pages(session, "", delimiter, after, 5).concat();
            assert_eq!(got, naive(keys, "", delimiter, after), "after {after:?} delimiter {delimiter:?}");
            let got = pages(session, "d/", delimiter, after, 2).concat();
            assert_eq!(got, naive(keys, "d/", delimiter, after), "in d/ after {after:?} delimiter {delimiter:?}");
        }
    }
}

/// Case C01: byte order of whole keys at every page size, on a base and on its fork.
#[test]
fn listing_is_in_the_byte_order_of_whole_keys_on_base_and_fork() {
    let rig = Rig::new();
    let w = rig.create("base");
    let mut want: Vec<String> = [
        "d/a.b/f",
        "d/a/f",
        "d/a-",
        "d/a0",
        "obj+",
        "obj/x",
        "obj1",
        "z\u{e000}",
        "z\u{10000}",
        "A",
        "a!",
        "obj",
        "d/a",
    ]
    .map(str::to_owned)
    .to_vec();
    for key in &want {
        put(&w, key, key.as_bytes());
    }
    want.sort();
    for limit in 1..=want.len() + 1 {
        assert_eq!(pages(&w, "", None, "", limit).concat(), want);
    }
    agrees(&w, &want);
    let f = rig.fork("base", "fork");
    let gone: Vec<Bytes> = want.iter().step_by(2).map(|k| Bytes::copy_from_slice(k.as_bytes())).collect();
    assert!(f.delete_many(&gone).expect("deleted").into_iter().all(|gone| gone.expect("one").existed));
    put(&f, "d/a.a/f", b"1");
    put(&f, "d/a/0", b"2");
    let mut forked: Vec<String> = want.iter().skip(1).step_by(2).cloned().collect();
    forked.extend(["d/a.a/f".to_owned(), "d/a/0".to_owned()]);
    forked.sort();
    agrees(&f, &forked);
    agrees(&w, &want);
    assert_eq!((get(&w, "d/a").as_deref(), get(&w, "d/a/f").as_deref()), (Some(&b"d/a"[..]), Some(&b"d/a/f"[..])));
    clean(&rig.store);
}

/// Case C03: prefixes and keys are one stream, counted together, each once.
#[test]
fn a_delimiter_rolls_up_each_prefix_once() {
    let rig = Rig::new();
    let w = rig.create("base");
    for i in 0..700 {
        put(&w, &format!("many/k{i}"), b"x");
    }
    for key in ["asdf", "boo/bar", "boo/baz/x", "cq/a", "cq/b"] {
        put(&w, key, b"x");
    }
    for limit in [1, 2, 3, 1000] {
        assert_eq!(pages(&w, "", Some("/"), "", limit).concat(), ["asdf", "boo/*", "cq/*", "many/*"]);
    }
    let nothing = w.list(&ListRequest::default()).expect("listed");
    assert!(nothing.items.is_empty() && nothing.next.is_none());
    let page = pages(&w, "", Some("/"), "boo/", 1);
    assert_eq!(page[0], ["cq/*"]);
    assert_eq!(
        pages(&w, "many/", None, "many/k5", 100).concat().len(),
        naive(&keys(&w), "many/", None, "many/k5").len()
    );
}

/// Draws keys that are nasty to each other and compares with the model after every one.
#[test]
fn keys_do_what_the_model_does() {
    for seed in 0..6 {
        let (rig, mut model) = (Rig::new(), Model::new());
        let w = rig.create("base");
        model.apply(&Op::CreateWorld { world: "base".to_owned() }).expect("made");
        let mut rng = Rng::new(seed);
        for step in 0..120 {
            let known: Vec<String> = model.world("base").expect("there").tree().objects().into_keys().collect();
            let key = |rng: &mut Rng| {
                if known.is_empty() || rng.one_in(2) { random_key(rng) } else { rng.pick(&known).clone() }
            };
            let verb = match rng.below(8) {
                0..=3 => {
                    let content = mw_testkit::Content { tag: step as u8, len: [0, 3, 9_000, 200_000][rng.below(4)] };
                    Verb::Put { key: key(&mut rng), content, content_type: None, if_absent: rng.one_in(4) }
                }
                4 | 5 => Verb::Delete { key: key(&mut rng) },
                6 => Verb::Mkdir { path: mw_testkit::random_name(&mut rng), mode: 0o755 },
                _ => Verb::Copy { from: key(&mut rng), to: key(&mut rng) },
            };
            let itself = matches!(&verb, Verb::Copy { from, to } if from == to);
            if itself {
                continue;
            }
            let want = model.apply(&Op::In { world: "base".to_owned(), verb: verb.clone() }).map(drop);
            let got = run(&w, &verb).map_err(|e| e.kind());
            assert_eq!(got, want, "seed {seed} step {step}: {verb:?}");
        }
        let objects = model.world("base").expect("there").tree().objects();
        let want: Vec<String> = objects.keys().cloned().collect();
        assert_eq!(keys(&w), want, "seed {seed}");
        for (key, (bytes, _)) in &objects {
            assert_eq!(get(&w, key).as_ref(), Some(bytes), "seed {seed}: {key:?}");
        }
        for delimiter in ["/", "a", "b/"] {
            for prefix in ["", "a", "a/", "a.", "b/a"] {
                assert_eq!(list(&w, prefix, Some(delimiter)), naive(&want, prefix, Some(delimiter), ""));
            }
        }
        drop(w);
        let rig = rig.reopen();
        assert_eq!(keys(&rig.session("base")), want);
        clean(&rig.store);
    }
}

fn run(w: &Session, verb: &Verb) -> Result<(), Error> {
    match verb {
        Verb::Put { key, content, if_absent, .. } => {
            let if_none_match = if_absent.then(|| vec!["*".to_owned()]);
            let conditions = Conditions { if_none_match, ..Conditions::default() };
            put_with(w, key, &content.bytes(), &PutOptions { conditions, ..PutOptions::default() }).map(drop)
        }
        Verb::Delete { key } => w.delete(key.as_bytes(), &Conditions::default()).map(drop),
        Verb::Copy { from, to } => w.copy(w, from.as_bytes(), to.as_bytes(), &CopyOptions::default()).map(drop),
        Verb::Mkdir { path, mode } => {
            w.make(Ino::ROOT, path.as_bytes(), &Make { mode: *mode, ..a(FileType::Directory) }).map(drop)
        }
        other => panic!("{other:?} is not drawn here"),
    }
}
