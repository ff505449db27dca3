//! The contract of [`Segments`] as a test suite. An engine passes when [`run`] returns; it panics at the first broken promise.
//!
//! It knows no engine: what only a test can do to one, reopening it and damaging its bytes, is asked of a [`Rig`].

use crate::blob::{self, HEADER};
use crate::{Addr, BlobRef, Claim, Dead, Error, MAX_BLOB, Owner, SegmentId, Segments};
use mw_env::Env;
use mw_model::{ErrorKind, Hash, Incarnation, WorldId};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An engine under test, with what a test needs to do to it.
pub trait Rig {
    /// Opens the store: empty the first time, later as a restarted process finds it. Nothing is adopted yet, and the engine opened
    /// before is not used any more.
    fn open(&self) -> Arc<dyn Segments>;

    /// Flips the bits of `mask` in the stored byte at `offset` of `segment`.
    fn damage(&self, segment: SegmentId, offset: u32, mask: u8);
}

/// Runs the whole suite, each part on a fresh rig.
///
/// # Panics
/// The engine breaks a promise of [`Segments`].
#[allow(clippy::type_complexity, reason = "a list of parts is read more easily than a name for its type")]
pub fn run(rig: &dyn Fn() -> Box<dyn Rig>) {
    let parts: [(&str, fn(&dyn Rig)); 11] = [
        ("contents come back", contents_come_back),
        ("several at once are what each is alone", several_at_once),
        ("a blob that is too large is refused", too_large),
        ("every flipped bit is found", flips_are_found),
        ("a foreign address is refused", foreign_addresses),
        ("claims tell what grew", claims_tell_what_grew),
        ("owners do not share segments", owners_are_apart),
        ("a restart keeps what is claimed", restart),
        ("freed segments are gone", freeing),
        ("dead ranges can be punched", punching),
        ("syncs are shared and not idle", syncs),
    ];
    for (name, part) in parts {
        tracing::debug!(name, "conformance");
        part(rig().as_ref());
    }
}

/// Returns an owner.
fn owner(world: u64, incarnation: u64) -> Owner {
    Owner { world: WorldId(world), incarnation: Incarnation(incarnation) }
}

/// Returns `len` bytes that follow from `seed`: text-like for an even one, noise for an odd one.
fn content(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Env::seeded(seed).fill(&mut bytes);
    if seed.is_multiple_of(2) {
        let phrases = [b"the same sixteen", b" bytes come back", b" again and again", b" as in any text."];
        bytes.chunks_mut(16).for_each(|c| c.copy_from_slice(&phrases[usize::from(c[0] % 4)][..c.len()]));
    }
    bytes
}

fn opened(rig: &dyn Rig) -> Arc<dyn Segments> {
    let segments = rig.open();
    segments.adopt(&[]).expect("nothing to adopt");
    segments
}

fn append(segments: &dyn Segments, owner: Owner, bytes: &[u8]) -> BlobRef {
    let blob = segments.append(owner, bytes).expect("append");
    assert_eq!(blob.hash, Hash::of(bytes));
    blob
}

fn kind<T: std::fmt::Debug>(outcome: Result<T, Error>) -> ErrorKind {
    outcome.expect_err("this must be refused").kind()
}

fn several_at_once(rig: &dyn Rig) {
    let segments = opened(rig);
    let owner = owner(1, 1);
    assert_eq!(segments.append_all(owner, &[]).expect("nothing to do"), []);
    for round in 0..8_u64 {
        // Of every length, so much that an engine may divide the work.
        let lens = (0..round * 5).map(|n| [0, 1, 300, 9_000, 40_000, 65_536, 700_000][(n + round) as usize % 7]);
        let contents: Vec<_> = lens.enumerate().map(|(n, len)| content(round * 100 + n as u64, len)).collect();
        let parts: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
        let blobs = std::thread::scope(|scope| {
            let all = || segments.append_all(owner, &parts).expect("appended");
            let (one, other) = (scope.spawn(all), scope.spawn(all));
            [one.join().expect("one"), other.join().expect("the other")].concat()
        });
        assert_eq!(blobs.len(), 2 * contents.len());
        for (blob, content) in blobs.iter().zip(contents.iter().chain(&contents)) {
            assert_eq!(blob.hash, Hash::of(content), "in their order");
            assert_eq!(segments.read(blob).expect("read"), content[..]);
        }
    }
    let large = vec![0; MAX_BLOB + 1];
    assert_eq!(kind(segments.append_all(owner, &[b"small", &large])), ErrorKind::TooLarge);
}

fn contents_come_back(rig: &dyn Rig) {
    let segments = opened(rig);
    let lens = [0, 1, 7, 8, 255, 256, 257, 4096, 65_472, 65_536, 300_000, MAX_BLOB];
    let blobs: Vec<_> = (0..2 * lens.len() as u64)
        .map(|seed| {
            let bytes = content(seed, lens[seed as usize / 2]);
            (append(segments.as_ref(), owner(1, 1), &bytes), bytes)
        })
        .collect();
    for (blob, bytes) in &blobs {
        assert_eq!(segments.read(blob).expect("read"), bytes);
        let mut out = vec![0xaa; bytes.len()];
        segments.read_into(blob, &mut out).expect("read into");
        assert_eq!(&out, bytes);
        for wrong in [bytes.len() + 1, bytes.len().saturating_sub(1)] {
            let outcome = segments.read_into(blob, &mut vec![0; wrong]);
            assert!(wrong == bytes.len() || kind(outcome) == ErrorKind::Corrupt, "another length is refused");
        }
        let stored = blob.addr.len as usize;
        assert!(stored <= HEADER + bytes.len(), "compression never costs");
        assert!(stored - HEADER == bytes.len() || stored - HEADER <= bytes.len() - bytes.len() / 8, "nor is idle");
        assert_eq!(blob.addr.offset % 8, 0);
        assert!(u64::from(blob.addr.offset) + u64::from(blob.addr.len) <= blob.addr.segment.size());
    }
    assert!(blobs.iter().any(|(blob, bytes)| (blob.addr.len as usize) < bytes.len() / 2), "text is compressed");
}

fn too_large(rig: &dyn Rig) {
    let segments = opened(rig);
    assert_eq!(kind(segments.append(owner(1, 1), &vec![1; MAX_BLOB + 1])), ErrorKind::TooLarge);
    assert!(segments.claims(owner(1, 1)).is_empty());
}

/// LZ4 can write the same bytes in more than one way. So a flip in compressed bytes may change nothing of the content, and then,
/// and only then, it may pass.
fn flips_are_found(rig: &dyn Rig) {
    let segments = opened(rig);
    for seed in [2, 3] {
        let bytes = content(seed, 700);
        let blob = append(segments.as_ref(), owner(1, 1), &bytes);
        let used = blob.addr.offset + blob.addr.len;
        let compressed = (blob.addr.len as usize) < HEADER + bytes.len();
        let claim = Claim { segment: blob.addr.segment, owner: owner(1, 1), used };
        let mut passed = 0;
        for offset in blob.addr.offset..used {
            let mask = 1 << (offset % 8);
            rig.damage(blob.addr.segment, offset, mask);
            let mut out = vec![0; bytes.len()];
            let into = segments.read_into(&blob, &mut out);
            assert_eq!(into.is_ok(), segments.read(&blob).is_ok(), "both ways of reading agree");
            match segments.read(&blob) {
                Ok(found) => {
                    assert_eq!(out, bytes, "other bytes passed as good");
                    assert!(compressed && offset >= blob.addr.offset + HEADER as u32, "a flip at {offset} passed");
                    assert_eq!(found, bytes, "other bytes passed as good");
                    passed += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "a flip at {offset} of {}", blob.addr);
                    let found = segments.walk(&claim).expect("walk");
                    assert!(found.iter().any(|found| !found.whole), "fsck sees the flip at {offset}");
                }
            }
            rig.damage(blob.addr.segment, offset, mask);
        }
        assert!(passed < blob.addr.len / 8, "{passed} flips changed nothing");
        assert_eq!(segments.read(&blob).expect("mended"), bytes);
    }
}

fn foreign_addresses(rig: &dyn Rig) {
    let segments = opened(rig);
    let own = owner(1, 1);
    let (a, b) = (append(segments.as_ref(), own, b"one content"), append(segments.as_ref(), own, b"two content"));
    let at = |addr: Addr| BlobRef { addr, hash: a.hash };
    let wrong = [
        at(b.addr),
        at(Addr { len: a.addr.len + 8, ..a.addr }),
        at(Addr { len: a.addr.len - 1, ..a.addr }),
        at(Addr { len: 0, ..a.addr }),
        at(Addr { len: u32::MAX, ..a.addr }),
        at(Addr { offset: a.addr.offset + 8, ..a.addr }),
        at(Addr { offset: u32::MAX, ..a.addr }),
        at(Addr { segment: SegmentId(u64::MAX), ..a.addr }),
        at(Addr { segment: SegmentId::new(7, 1 << 30, 20), ..a.addr }),
        BlobRef { addr: a.addr, hash: Hash::default() },
        BlobRef::default(),
    ];
    for blob in wrong {
        assert_eq!(kind(segments.read(&blob)), ErrorKind::Corrupt, "{blob:?}");
    }
}

fn claims_tell_what_grew(rig: &dyn Rig) {
    let segments = opened(rig);
    let own = owner(1, 1);
    assert!(segments.claims(own).is_empty());
    let first = append(segments.as_ref(), own, b"first");
    let [claim] = segments.claims(own)[..] else { panic!("one claim") };
    assert_eq!((claim.segment, claim.owner), (first.addr.segment, own));
    assert!(claim.used >= first.addr.offset + first.addr.len);
    assert!(segments.claims(own).is_empty(), "told once");
    let mut told: HashMap<SegmentId, Claim> = HashMap::from([(claim.segment, claim)]);
    let mut blobs = vec![first];
    for seed in 0..40 {
        blobs.push(append(segments.as_ref(), own, &content(2 * seed + 1, 60_000)));
        if seed % 7 == 0 {
            told.extend(segments.claims(own).into_iter().map(|claim| (claim.segment, claim)));
        }
    }
    segments.seal(own);
    told.extend(segments.claims(own).into_iter().map(|claim| (claim.segment, claim)));
    assert!(segments.claims(own).is_empty(), "a sealed owner's claims are told once too");
    let mut walked = Vec::new();
    for claim in told.values() {
        let found = segments.walk(claim).expect("walk");
        assert!(found.iter().all(|found| found.whole));
        walked.extend(found.into_iter().map(|found| (found.blob.addr, found.blob.hash)));
    }
    walked.sort();
    let mut written: Vec<_> = blobs.iter().map(|blob| (blob.addr, blob.hash)).collect();
    written.sort();
    assert_eq!(walked, written, "a walk over the claims finds every blob, and nothing else");
    let sizes: BTreeSet<u64> = told.keys().map(|id| id.size()).collect();
    assert!(sizes.len() >= 5 && sizes.first() == Some(&(64 << 10)), "segments double: {sizes:?}");
    assert_eq!(segments.usage().claimed, told.keys().map(|id| id.size()).sum::<u64>());
    let after = append(segments.as_ref(), own, b"after the seal");
    assert!(!told.contains_key(&after.addr.segment), "a sealed segment takes no more bytes");
}

fn owners_are_apart(rig: &dyn Rig) {
    let segments = opened(rig);
    let each = 60;
    let mut seen: HashMap<SegmentId, Owner> = HashMap::new();
    let written: Vec<(Owner, Vec<_>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let segments = &segments;
                scope.spawn(move || {
                    // Threads 6 and 7 are one owner: an owner may append from many threads.
                    let own = owner(1 + thread.min(6) / 2, thread.min(6));
                    let append_one = |n| {
                        let seed = thread * 1_000 + n;
                        let bytes = content(seed, (Env::seeded(seed).random() % 20_000) as usize);
                        (append(segments.as_ref(), own, &bytes), bytes)
                    };
                    let blobs: Vec<_> = (0..each).map(append_one).collect();
                    segments.sync().expect("sync");
                    (own, blobs)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let mut ranges = BTreeSet::new();
    for (own, blobs) in &written {
        for (blob, bytes) in blobs {
            assert_eq!(segments.read(blob).expect("read"), bytes);
            assert_eq!(*seen.entry(blob.addr.segment).or_insert(*own), *own, "{} has two owners", blob.addr.segment);
            ranges.insert((blob.addr.segment, blob.addr.offset, blob.addr.len));
        }
    }
    assert_eq!(ranges.len(), written.len() * each as usize);
    for ((a, start, len), (b, next, _)) in ranges.iter().zip(ranges.iter().skip(1)) {
        assert!(a != b || start + len <= *next, "blobs overlap in {a}");
    }
    let mut space: Vec<_> = seen.keys().map(|id| (id.file(), id.offset(), id.size())).collect();
    space.sort_unstable();
    for pair in space.windows(2) {
        assert!(pair[0].0 != pair[1].0 || pair[0].1 + pair[0].2 <= pair[1].1, "segments overlap");
    }
}

fn restart(rig: &dyn Rig) {
    let segments = opened(rig);
    let mut blobs = Vec::new();
    let mut claims = Vec::new();
    for world in 1..=5 {
        let own = owner(world, 1);
        for n in 0..6 {
            let bytes = content(world * 100 + n, 30_000);
            blobs.push((append(segments.as_ref(), own, &bytes), bytes));
        }
        segments.sync().expect("sync");
        claims.extend(segments.claims(own));
    }
    let lost = append(segments.as_ref(), owner(9, 1), b"its claim was never committed");
    drop(segments);

    let segments = rig.open();
    let same_twice = [claims[0], claims[0]];
    assert_eq!(kind(segments.adopt(&same_twice)), ErrorKind::Corrupt);
    segments.adopt(&claims).expect("adopt");
    assert_eq!(segments.usage().claimed, claims.iter().map(|claim| claim.segment.size()).sum::<u64>());
    let owned: BTreeSet<SegmentId> = claims.iter().map(|claim| claim.segment).collect();
    for n in 0..200 {
        let blob = append(segments.as_ref(), owner(1 + n % 5, 2), &content(9_001, 5_000));
        assert!(!owned.contains(&blob.addr.segment), "a new life appends to new segments");
    }
    for (blob, bytes) in &blobs {
        assert_eq!(segments.read(blob).expect("claimed bytes stay"), bytes);
    }
    if let Ok(bytes) = segments.read(&lost) {
        assert_eq!(bytes.as_ref(), b"its claim was never committed", "free space may show old bytes, never wrong ones");
    }
}

fn freeing(rig: &dyn Rig) {
    let segments = opened(rig);
    let (gone, stays) = (owner(1, 1), owner(2, 1));
    let mut freed = Vec::new();
    for n in 0..50 {
        freed.push(append(segments.as_ref(), gone, &content(n, 20_000)));
    }
    let kept = content(1, 50_000);
    let kept_blob = append(segments.as_ref(), stays, &kept);
    let before = segments.usage().claimed;
    let ids: Vec<SegmentId> = segments.claims(gone).iter().map(|claim| claim.segment).collect();
    let bytes: u64 = ids.iter().map(|id| id.size()).sum();
    let twice: Vec<SegmentId> = ids.iter().chain(&ids[..1]).copied().collect();
    assert_eq!(kind(segments.free(&twice)), ErrorKind::Invalid, "named twice in one call");
    assert_eq!(segments.usage().claimed, before, "a refused free frees nothing");
    assert_eq!(segments.free(&ids).expect("free"), bytes);
    assert_eq!(segments.usage().claimed, before - bytes);
    assert_eq!(kind(segments.free(&ids[..1])), ErrorKind::Invalid, "never twice");
    for blob in &freed {
        assert_eq!(kind(segments.read(blob)), ErrorKind::Corrupt, "a freed blob is gone");
    }
    let after = append(segments.as_ref(), gone, b"the owner of a freed open segment goes on");
    assert_eq!(segments.read(&after).expect("read").as_ref(), b"the owner of a freed open segment goes on");
    // The same addresses are used again, with other bytes: old references must not read them.
    for n in 0..50 {
        append(segments.as_ref(), owner(3, 1), &content(1_000 + n, 20_000));
    }
    for blob in &freed {
        assert_eq!(kind(segments.read(blob)), ErrorKind::Corrupt, "a reused place is not the old blob");
    }
    assert_eq!(segments.read(&kept_blob).expect("read"), kept);
}

fn punching(rig: &dyn Rig) {
    let segments = opened(rig);
    let own = owner(1, 1);
    let blobs: Vec<BlobRef> = (0..6).map(|n| append(segments.as_ref(), own, &content(2 * n + 1, 9_001))).collect();
    let one = blobs[1].addr;
    let two = (blobs[3].addr.offset, blobs[5].addr.offset - blobs[3].addr.offset);
    let dead = |ranges: &[(u32, u32)]| Dead { segment: one.segment, ranges: ranges.to_vec() };
    let punch = |ranges: &[(u32, u32)]| segments.punch(own, &[dead(ranges)]);
    let length = |addr: Addr| blob::padded(addr.len);
    let held = segments.held(one.segment).expect("held");
    let given = punch(&[(one.offset, length(one)), two]).expect("punch");
    assert!(given >= 4096, "{given} bytes came back");
    assert_eq!(segments.held(one.segment).expect("held"), held - given, "what came back is held no more");
    assert_eq!(
        punch(&[(one.offset, length(one)), two]).expect("punch"),
        0,
        "what was given back is not given back twice"
    );
    for (n, blob) in blobs.iter().enumerate() {
        let dead = [1, 3, 4].contains(&n);
        assert_eq!(segments.read(blob).is_err(), dead, "blob {n}");
    }
    let mut offsets = Vec::new();
    for claim in segments.claims(own) {
        for found in segments.walk(&claim).expect("walk") {
            assert!(found.whole, "a hole made on purpose is not damage: {found:?}");
            offsets.push(found.blob.addr);
        }
    }
    assert_eq!(offsets, [blobs[0].addr, blobs[2].addr, blobs[5].addr]);
    // A range grows as what lies beside it dies: only what is new counts.
    let grown = (one.offset, blobs[5].addr.offset - one.offset);
    let more = punch(&[grown]).expect("punch");
    assert!(
        more > 0 && more < u64::from(length(blobs[2].addr)) + 3 * 4096,
        "{more} bytes came back with the third blob"
    );
    assert_eq!(segments.held(one.segment).expect("held"), held - given - more);
    let end = one.segment.size() as u32;
    let used = blobs[5].addr.offset + length(blobs[5].addr);
    for (what, range) in [
        ("past the end", (end - 64, 128)),
        ("what an open segment may still take", (used, end - used)),
        ("in the middle of a blob", (one.offset + 4, 4096)),
        ("less than a header", (one.offset, 32)),
    ] {
        assert_eq!(kind(punch(&[range])), ErrorKind::Invalid, "{what}");
    }
    let strange = Dead { segment: SegmentId::new(0, 1 << 29, 16), ranges: vec![(0, 4096)] };
    assert_eq!(segments.punch(own, &[strange]).expect("punch"), 0, "no segment of the owner's");
    assert_eq!(segments.punch(owner(2, 1), &[dead(&[(0, 9_064)])]).expect("punch"), 0, "another's segment");
    // A segment that takes no more: its unused end comes back too, and what lives in it stays.
    segments.seal(own);
    let claims = segments.claims(own);
    punch(&[(used, end - used)]).expect("punch");
    for (n, blob) in blobs.iter().enumerate().filter(|(n, _)| [0, 5].contains(n)) {
        assert_eq!(segments.read(blob).expect("read"), content(2 * n as u64 + 1, 9_001));
    }
    for claim in &claims {
        assert!(segments.walk(claim).expect("walk").iter().all(|found| found.whole), "the end is no damage");
    }
    let after = append(segments.as_ref(), own, b"after the hole");
    assert_ne!(after.addr.segment, one.segment);
}

fn syncs(rig: &dyn Rig) {
    let segments = opened(rig);
    segments.sync().expect("sync");
    assert_eq!(segments.syncs(), 0, "nothing was appended");
    append(segments.as_ref(), owner(1, 1), b"bytes");
    segments.sync().expect("sync");
    segments.sync().expect("sync");
    assert_eq!(segments.syncs(), 1, "one append, one sync");
    let calls = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for world in 1..=8 {
            let (segments, calls) = (&segments, &calls);
            scope.spawn(move || {
                for n in 0..20 {
                    append(segments.as_ref(), owner(world, 1), &content(n, 100));
                    segments.sync().expect("sync");
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(segments.syncs() <= 1 + calls.into_inner() as u64, "never more syncs than calls");
}
