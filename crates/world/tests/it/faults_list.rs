//! The list of faults planted into what the store writes to its metadata.

use crate::faults_plant::{Edit, edit_entries, tag, world};
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect};
use mw_model::codec::{Reader, Writer};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A fault that changes the batch and lets it through.
fn edit(change: impl Fn(&mut Batch) + Send + Sync + 'static) -> Edit {
    Arc::new(move |batch, _| {
        change(batch);
        true
    })
}

/// Drops puts of a tag.
fn without_puts(of: char) -> Edit {
    edit(move |batch| batch.puts.retain(|(key, _)| tag(key) != of))
}

/// Drops deletes of a tag.
fn without_deletes(of: char) -> Edit {
    edit(move |batch| batch.deletes.retain(|key| tag(key) != of))
}

/// Counts calls; true once in `n`.
fn one_in(n: usize) -> impl Fn() -> bool + Send + Sync {
    let count = AtomicUsize::new(0);
    move || (count.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(n)
}

/// Every fault with its name.
pub fn meta_faults() -> Vec<(&'static str, Edit)> {
    vec![
        (
            "a lost tombstone",
            edit(|batch| {
                edit_entries(batch, |entry| {
                    let count = entry.changes.len();
                    entry.changes.retain(|(_, value)| value.is_some());
                    entry.changes.len() < count
                })
            }),
        ),
        (
            "a change missing from an entry",
            edit(|batch| edit_entries(batch, |entry| entry.changes.len() > 2 && entry.changes.pop().is_some())),
        ),
        (
            "a chain cut",
            edit({
                let now = one_in(9);
                move |batch| {
                    for (key, value) in &mut batch.puts {
                        if tag(key) == 'L' && now() {
                            let mut bytes = value.to_vec();
                            bytes[1..33].fill(0);
                            *value = bytes.into();
                        }
                    }
                }
            }),
        ),
        ("an entry written in another's place", swapped_entries()),
        (
            "an entry that is not written",
            edit({
                let now = one_in(11);
                move |batch| batch.puts.retain(|(key, _)| tag(key) != 'L' || !now())
            }),
        ),
        (
            "a batch acknowledged and never written",
            Arc::new({
                let now = one_in(13);
                move |batch: &mut Batch, _: &mut Durability| {
                    !(batch.puts.iter().any(|(key, _)| tag(key) == 'L') && now())
                }
            }),
        ),
        (
            "half of a batch",
            edit({
                let now = one_in(10);
                move |batch| {
                    if batch.puts.len() > 2 && now() {
                        batch.puts.truncate(batch.puts.len() / 2);
                    }
                }
            }),
        ),
        (
            "durable only in name",
            Arc::new(|_: &mut Batch, durability: &mut Durability| {
                *durability = Durability::Soon;
                true
            }),
        ),
        ("requirements not looked at", edit(|batch| batch.requires.clear())),
        (
            "a missed shared_out",
            edit(|batch| {
                let not_lent = Bytes::from_static(&[1, 0]);
                for (key, expect) in &mut batch.requires {
                    if tag(key) == 'A' && *expect == Expect::Value(Bytes::from_static(&[1, 1])) {
                        *expect = Expect::Value(not_lent.clone());
                    }
                }
                for (key, value) in &mut batch.puts {
                    if matches!(tag(key), 'A' | 'B') {
                        *value = not_lent.clone();
                    }
                }
            }),
        ),
        ("a wrong ancestor", wrong_ancestor()),
        ("another world's root", anothers('R')),
        ("another world's snapshot", anothers('V')),
        (
            "history under the wrong number",
            edit(|batch| {
                for (key, _) in &mut batch.puts {
                    if tag(key) == 'H' {
                        let mut bytes = key.to_vec();
                        bytes[20] = bytes[20].wrapping_add(1);
                        *key = bytes.into();
                    }
                }
            }),
        ),
        ("history that is not kept", without_puts('H')),
        (
            "a mark past the end",
            edit(|batch| {
                for (key, value) in &mut batch.puts {
                    if tag(key) == 'M' {
                        *value = Bytes::copy_from_slice(&(number(value) + 1_000).to_be_bytes());
                    }
                }
            }),
        ),
        ("a lost claim", without_puts('S')),
        (
            "a claim too short",
            edit(|batch| {
                for (key, value) in &mut batch.puts {
                    if tag(key) == 'S' {
                        let mut w = Writer::new();
                        w.raw(&value[..17]).var(64);
                        *value = w.0.into();
                    }
                }
            }),
        ),
        ("a name left behind", without_deletes('N')),
        ("a name that is not written", without_puts('N')),
        ("a deleted world that stays alive", without_deletes('A')),
        ("a revocation that is lost", without_deletes('K')),
        ("inode numbers given out twice", without_puts('C')),
        ("a snapshot that is not kept", without_puts('V')),
        ("an idempotency key that is not kept", without_puts('I')),
        (
            "a wrong link count",
            last_file(|key, value| {
                let inode = (key.get(8) == Some(&1)).then(|| more_links(value)).flatten();
                if let Some(inode) = inode {
                    *value = inode;
                }
            }),
        ),
        (
            "an entry of another inode",
            last_file(|key, value| {
                if key.get(8) == Some(&4) {
                    // The length of the data, its version, then the inode's number.
                    value[9] = value[9].wrapping_add(1);
                }
            }),
        ),
        (
            "a missing parent record",
            edit(|batch| {
                edit_entries(batch, |entry| {
                    let count = entry.changes.len();
                    let last = entry.changes.iter().any(|(key, _)| key.ends_with(b"last file"));
                    entry.changes.retain(|(key, _)| !last || key.get(8) != Some(&6));
                    entry.changes.len() < count
                })
            }),
        ),
    ]
}

fn number(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_be_bytes)
}

/// Writes an entry's bytes once more in the place of the next one of the same world.
fn swapped_entries() -> Edit {
    let before: Mutex<HashMap<Vec<u8>, Bytes>> = Mutex::default();
    let now = one_in(9);
    edit(move |batch| {
        for (key, value) in &mut batch.puts {
            if tag(key) != 'L' {
                continue;
            }
            let of = world(key).map(<[u8]>::to_vec).unwrap_or_default();
            let old = before.lock().insert(of, value.clone());
            if let Some(old) = old.filter(|_| now()) {
                *value = old;
            }
        }
    })
}

/// Makes forks lean on the first world that was made, or on the second where that would be right.
fn wrong_ancestor() -> Edit {
    let worlds: Mutex<Vec<Vec<u8>>> = Mutex::default();
    edit(move |batch| {
        let mut worlds = worlds.lock();
        for (key, _) in &batch.puts {
            if let Some(id) = world(key).filter(|_| tag(key) == 'W') {
                worlds.push(id.to_vec());
            }
        }
        let [first, second, ..] = &worlds[..] else { return };
        for (key, value) in &mut batch.puts {
            if matches!(tag(key), 'R' | 'H' | 'T')
                && let Some(at) = value.windows(8).position(|window| window == first)
            {
                let mut bytes = value.to_vec();
                bytes[at..at + 8].copy_from_slice(second);
                *value = bytes.into();
            }
        }
    })
}

/// Writes, for a world, the record of a tag that was last written for another.
fn anothers(of: char) -> Edit {
    let last: Mutex<Option<(Vec<u8>, Bytes)>> = Mutex::default();
    let now = one_in(3);
    edit(move |batch| {
        for (key, value) in &mut batch.puts {
            if tag(key) != of {
                continue;
            }
            // A snapshot's owner is not what tells it from another.
            let owner = if of == 'V' { key.to_vec() } else { world(key).map(<[u8]>::to_vec).unwrap_or_default() };
            let old = last.lock().replace((owner.clone(), value.clone()));
            match old {
                Some((other, old)) if other != owner && (of == 'V' || now()) => *value = old,
                _ => {}
            }
        }
    })
}

/// Changes the records of the entry that makes the file `last file`: no later entry's chain gives that away.
fn last_file(change: impl Fn(&[u8], &mut Vec<u8>) + Send + Sync + 'static) -> Edit {
    edit(move |batch| {
        edit_entries(batch, |entry| {
            let last = entry.changes.iter().any(|(key, _)| key.get(8) == Some(&4) && key.ends_with(b"last file"));
            for (key, value) in &mut entry.changes {
                if let Some(value) = value.as_mut().filter(|_| last) {
                    change(key, value);
                }
            }
            last
        });
    })
}

/// Returns an inode's value with another number of links.
fn more_links(value: &[u8]) -> Option<Vec<u8>> {
    let mut r = Reader::new(value);
    let data = r.bytes().ok()?;
    let rest = r.0;
    let mut r = Reader::new(data);
    r.take(3).ok()?;
    let _ = (r.var().ok()?, r.var().ok()?, r.var().ok()?);
    let head = &data[..data.len() - r.0.len()];
    let links = r.var().ok()?;
    let mut changed = Writer::new();
    changed.raw(head).var(links + 5).raw(r.0);
    let mut w = Writer::new();
    w.bytes(&changed.0).raw(rest);
    Some(w.0)
}
