//! Framing, cut at every byte.

use super::*;
use futures::StreamExt;

pub(crate) fn run(body: &[u8], cut: usize, unsigned: bool, declared: u64) -> Result<Vec<u8>, Fault> {
    let pieces: Vec<Result<Bytes, StdError>> = body.chunks(cut.max(1)).map(|c| Ok(Bytes::copy_from_slice(c))).collect();
    let blob = s3s::dto::StreamingBlob::wrap(futures::stream::iter(
        pieces.into_iter().map(|p| p.map_err(std::io::Error::other)),
    ));
    let faults = Faults::default();
    let framing = Framing::new(Body::from(blob), unsigned, declared, faults.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let out = runtime.block_on(framing.fold(Ok(Vec::new()), |all, piece| async move {
        let mut all: Vec<u8> = all?;
        all.extend_from_slice(&piece.map_err(drop)?);
        Ok::<_, ()>(all)
    }));
    out.map_err(|()| faults.found().unwrap())
}

const SIGNED: &[u8] = b"3;chunk-signature=aa\r\nabc\r\n2;chunk-signature=bb\r\nde\r\n0;chunk-signature=cc\r\n\r\n";
const UNSIGNED: &[u8] = b"5\r\nabcde\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n";

#[test]
fn signed_frames_pass_unchanged_wherever_they_are_cut() {
    for cut in 1..SIGNED.len() {
        assert_eq!(run(SIGNED, cut, false, 5).unwrap(), SIGNED);
    }
}

#[test]
fn unsigned_frames_are_made_anew() {
    for cut in 1..UNSIGNED.len() {
        let out = run(UNSIGNED, cut, true, 5).unwrap();
        assert!(out.ends_with(b"0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n"));
        let data: Vec<u8> = out.iter().copied().filter(|b| b"abcde".contains(b)).collect();
        assert!(data.starts_with(b"abcde"));
    }
}

#[test]
fn every_cut_body_is_refused() {
    for (body, unsigned) in [(SIGNED, false), (UNSIGNED, true)] {
        let end = body.windows(4).position(|w| w == b"\r\n0\r" || w == b"\r\n0;").unwrap();
        for end in 0..end + 4 {
            assert_eq!(run(&body[..end], 7, unsigned, 5), Err(Fault::Cut), "{end}");
        }
    }
}

#[test]
fn wrong_lengths_and_frames_are_refused() {
    for (unsigned, body) in [(false, SIGNED), (true, UNSIGNED)] {
        for declared in [4, 6] {
            assert_eq!(run(body, 9, unsigned, declared), Err(Fault::Length));
        }
    }
    assert_eq!(run(b"zz\r\n", 9, true, 5), Err(Fault::Malformed));
    for size in ["+1", "-1", " 1", "1 ", "0x1", "", "+0", "fffffffffffffffff"] {
        for (unsigned, end) in [(true, ""), (false, ";chunk-signature=aa")] {
            let body = format!("{size}{end}\r\na\r\n0{end}\r\n\r\n");
            assert_eq!(run(body.as_bytes(), 9, unsigned, 1), Err(Fault::Malformed), "{body}");
        }
    }
    assert_eq!(run(b"1\r\nabc\r\n", 9, true, 5), Err(Fault::Malformed));
    assert_eq!(run(b"1;chunk-signature=a\r\na\r\n", 9, true, 5), Err(Fault::Malformed));
    assert_eq!(run(b"fffffff;chunk-signature=a\r\n", 9, false, 1 << 40), Err(Fault::TooLong));
    assert_eq!(run(&[b'0'; 1000], 9, false, 1), Err(Fault::Malformed));
}
