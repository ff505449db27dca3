//! Power cuts and killed processes: what was synced under a committed claim is read back, whatever else was lost.

use crate::rig::{SMALL, noise, open, owner};
use mw_env::Env;
use mw_segments::{BlobRef, Claim, Dead, Error, Local, Owner, SegmentId, Segments};
use mw_sim::SimDisk;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What the caller of the engine would have committed in its own store, which is taken to be perfect here.
#[derive(Default)]
struct Committed {
    claims: BTreeMap<SegmentId, Claim>,
    blobs: HashMap<BlobRef, Vec<u8>>,
}

/// Lets one committed blob die and gives its place back.
fn punch(segments: &dyn Segments, committed: &mut Committed) -> Result<(), Error> {
    let Some(blob) = committed.blobs.keys().min_by_key(|blob| blob.hash.0).copied() else { return Ok(()) };
    committed.blobs.remove(&blob);
    let Some(claim) = committed.claims.get(&blob.addr.segment) else { return Ok(()) };
    let dead = Dead { segment: claim.segment, ranges: vec![(blob.addr.offset, blob.addr.len.next_multiple_of(8))] };
    segments.punch(claim.owner, &[dead]).map(drop)
}

/// Appends, syncs, commits, punches and frees until the power goes or the work is done.
fn work(segments: &dyn Segments, life: u64, seed: u64, committed: &mut Committed) -> Result<(), Error> {
    let env = Env::seeded(seed);
    let mut fresh: HashMap<Owner, Vec<(BlobRef, Vec<u8>)>> = HashMap::new();
    for n in 0..40 {
        let own = owner(1 + env.random() % 3, life);
        let bytes = noise(seed * 1_000 + n, (env.random() % 60_000) as usize);
        fresh.entry(own).or_default().push((segments.append(own, &bytes)?, bytes));
        if env.random().is_multiple_of(4) {
            segments.sync()?;
            for (own, blobs) in fresh.drain() {
                committed.claims.extend(segments.claims(own).into_iter().map(|claim| (claim.segment, claim)));
                committed.blobs.extend(blobs);
            }
        }
        if env.random().is_multiple_of(6) {
            punch(segments, committed)?;
        }
        if env.random().is_multiple_of(12)
            && let Some(id) = committed.claims.keys().next().copied()
        {
            // Blobs that no commit knows go with the segment, as those of a deleted world do.
            committed.claims.remove(&id);
            committed.blobs.retain(|blob, _| blob.addr.segment != id);
            fresh.values_mut().for_each(|blobs| blobs.retain(|(blob, _)| blob.addr.segment != id));
            segments.free(&[id])?;
        }
    }
    Ok(())
}

fn check(segments: &dyn Segments, committed: &Committed, context: &str) {
    let claims: Vec<Claim> = committed.claims.values().copied().collect();
    segments.adopt(&claims).unwrap_or_else(|e| panic!("{context}: {e}"));
    for (blob, bytes) in &committed.blobs {
        let found = segments.read(blob).unwrap_or_else(|e| panic!("{context}: {e}"));
        assert_eq!(found, bytes, "{context}");
    }
    assert_eq!(segments.usage().claimed, claims.iter().map(|claim| claim.segment.size()).sum::<u64>(), "{context}");
}

#[test]
fn a_power_cut_at_any_step_loses_nothing_committed() {
    for seed in 0..3 {
        let mut step = 0;
        loop {
            let disk = SimDisk::new(seed);
            disk.fail_at(step);
            let mut committed = Committed::default();
            let outcome = Local::with(Arc::new(disk.clone()), Env::seeded(1), SMALL).and_then(|segments| {
                segments.adopt(&[])?;
                work(segments.as_ref(), 1, seed, &mut committed)
            });
            for luck in 0..2 {
                let context = format!("seed {seed}, step {step}, luck {luck}");
                let found = disk.crash_as(seed * 7_919 + step * 2 + luck);
                let segments = open(&found);
                check(segments.as_ref(), &committed, &context);
                let mut after = Committed { claims: committed.claims.clone(), blobs: committed.blobs.clone() };
                work(segments.as_ref(), 2, seed + 100, &mut after).unwrap_or_else(|e| panic!("{context}: {e}"));
                check(open(&found.crash()).as_ref(), &after, &context);
            }
            if outcome.is_ok() {
                assert!(!disk.is_off(), "the work went through with the power on");
                break;
            }
            step += 1 + step / 40;
        }
        assert!(step > 60, "the power was cut at many steps");
    }
}

#[test]
fn the_first_sync_covers_what_a_killed_process_left() {
    for luck in 0..20 {
        let disk = SimDisk::new(luck);
        let segments = open(&disk);
        segments.adopt(&[]).unwrap();
        let bytes = noise(luck, 40_000);
        let blob = segments.append(owner(1, 1), &bytes).unwrap();
        let claims = segments.claims(owner(1, 1));

        let disk = disk.kill();
        let segments = open(&disk);
        segments.adopt(&claims).unwrap();
        segments.sync().unwrap();
        assert_eq!(open(&disk.crash()).read(&blob).unwrap(), bytes);
    }
}

#[test]
fn a_committed_claim_lies_in_the_files_even_when_its_bytes_were_never_synced() {
    for luck in 0..20 {
        let disk = SimDisk::new(luck);
        let segments = open(&disk);
        segments.adopt(&[]).unwrap();
        let blob = segments.append(owner(1, 1), &noise(luck, 40_000)).unwrap();
        let claims = segments.claims(owner(1, 1));
        let segments = open(&disk.crash());
        segments.adopt(&claims).expect("the length of a file is durable before a segment is handed out");
        match segments.read(&blob) {
            Ok(bytes) => assert_eq!(bytes, noise(luck, 40_000)),
            Err(error) => assert_eq!(error.kind(), mw_model::ErrorKind::Corrupt),
        }
    }
}
