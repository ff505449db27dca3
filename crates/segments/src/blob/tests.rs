//! The stored form: what it holds, what it costs, and that decoding garbage never panics or lies.

use super::*;
use crate::Addr;
use mw_env::Env;

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Env::seeded(seed).fill(&mut bytes);
    bytes
}

fn sealed(world: WorldId, content: &[u8]) -> (Hash, Vec<u8>) {
    let (hash, sealed) = seal(world, content);
    (hash, sealed.parts().concat())
}

fn blob(hash: Hash, stored: &[u8]) -> BlobRef {
    BlobRef { addr: Addr { len: stored.len() as u32, ..Addr::default() }, hash }
}

/// Fixes the first byte of every field: a change of the format must change the version.
#[test]
fn the_header_is_what_the_table_says() {
    let (hash, stored) = sealed(WorldId(0x0102_0304), b"content");
    assert_eq!(stored.len(), 64 + 7);
    assert_eq!(&stored[..8], [0xb7, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(&stored[8..16], [0, 0, 0, 0, 1, 2, 3, 4]);
    assert_eq!(&stored[16..24], [0, 0, 0, 7, 0, 0, 0, 7]);
    assert_eq!(&stored[24..56], &hash.0);
    assert_eq!(&stored[56..64], &Hash::of(&stored[..56]).0[..8]);
    assert_eq!(&stored[64..], b"content");
}

#[test]
fn compression_is_used_when_it_pays_and_only_then() {
    let codec = |content: &[u8]| Header::decode(&sealed(WorldId(1), content).1).unwrap().codec;
    assert_eq!(codec(&[0; 255]), Codec::Raw, "short contents stay raw");
    assert_eq!(codec(&[0; 256]), Codec::Lz4);
    assert_eq!(codec(&noise(1, 100_000)), Codec::Raw);
    let mut mixed = noise(2, 1_000);
    mixed.resize(1_200, 0);
    assert_eq!(codec(&mixed[..1_100]), Codec::Raw, "saves less than an eighth");
    assert_eq!(codec(&mixed), Codec::Lz4, "saves more");
    let mut lure = noise(3, 4 << 10);
    lure.resize(64 << 10, 0);
    assert_eq!(codec(&lure), Codec::Raw, "a large content is judged by its start");
}

#[test]
fn what_is_sealed_opens() {
    for len in [0, 1, 255, 256, 5_000, 100_000, MAX_BLOB] {
        for content in [noise(len as u64, len), vec![b'x'; len]] {
            let (hash, stored) = sealed(WorldId(1), &content);
            assert_eq!(open(&Bytes::from(stored.clone()), &blob(hash, &stored)).unwrap(), content);
        }
    }
}

#[test]
fn each_flaw_has_its_name() {
    let (hash, stored) = sealed(WorldId(1), b"content");
    let right = blob(hash, &stored);
    let refused = |bytes: &[u8], blob: &BlobRef| open(&Bytes::copy_from_slice(bytes), blob).unwrap_err();
    let resealed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = stored.clone();
        change(&mut bytes);
        let sum = Hash::of(&bytes[..56]);
        bytes[56..64].copy_from_slice(&sum.0[..8]);
        bytes
    };
    assert_eq!(refused(&stored[..63], &right), Flaw::Header);
    assert_eq!(refused(&stored[..70], &right), Flaw::Length);
    assert_eq!(refused(&stored, &BlobRef { hash: Hash::default(), ..right }), Flaw::Other);
    assert_eq!(refused(&resealed(&|b| b[0] = 0), &right), Flaw::Header);
    assert_eq!(refused(&resealed(&|b| b[1] = 2), &right), Flaw::Newer(2));
    assert_eq!(refused(&resealed(&|b| b[2] = 9), &right), Flaw::Header);
    assert_eq!(refused(&resealed(&|b| b[7] = 5), &right), Flaw::Key(5));
    assert_eq!(refused(&resealed(&|b| b[23] = 8), &right), Flaw::Length);
    assert_eq!(refused(&resealed(&|b| b[20] = 0xff), &right), Flaw::Length);
    assert_eq!(refused(&resealed(&|b| b[70] ^= 1), &right), Flaw::Content);
    let hole = Header::hole(71).encode();
    let mut holed = stored.clone();
    holed[..HEADER].copy_from_slice(&hole);
    assert_eq!(refused(&holed, &right), Flaw::Freed);
}

#[test]
fn a_compressed_content_cannot_claim_more_than_the_limit() {
    let (hash, stored) = sealed(WorldId(1), &[7; 1_000]);
    let mut header = Header::decode(&stored).unwrap();
    header.content = u32::MAX;
    let mut bytes = stored.clone();
    bytes[..HEADER].copy_from_slice(&header.encode());
    assert_eq!(open(&Bytes::from(bytes), &blob(hash, &stored)).unwrap_err(), Flaw::Length);
    header.content = 999;
    let mut bytes = stored.clone();
    bytes[..HEADER].copy_from_slice(&header.encode());
    assert_eq!(open(&Bytes::from(bytes), &blob(hash, &stored)).unwrap_err(), Flaw::Content);
}

#[test]
fn garbage_never_opens() {
    let env = Env::seeded(5);
    let (hash, stored) = sealed(WorldId(1), &[b'a'; 3_000]);
    for _ in 0..5_000 {
        let mut bytes = stored.clone();
        for _ in 0..1 + env.random() % 4 {
            let at = (env.random() % bytes.len() as u64) as usize;
            bytes[at] = env.random() as u8;
        }
        if bytes != stored {
            assert!(open(&Bytes::from(bytes), &blob(hash, &stored)).is_err());
        }
    }
    for seed in 0..1_000 {
        assert!(Header::decode(&noise(seed, 64)).is_err());
    }
}
