use super::{DecodeError, Reader, Writer};

#[test]
fn every_field_comes_back() {
    let mut w = Writer::new();
    for n in [0, 1, 127, 128, u64::from(u32::MAX), u64::MAX] {
        w.var(n).u64(n);
    }
    for n in [0, -1, 1, i64::MIN, i64::MAX] {
        w.int(n);
    }
    w.bytes(b"abc").str("d");
    let mut r = Reader::new(&w.0);
    for n in [0, 1, 127, 128, u64::from(u32::MAX), u64::MAX] {
        assert_eq!((r.var(), r.u64()), (Ok(n), Ok(n)));
    }
    for n in [0, -1, 1, i64::MIN, i64::MAX] {
        assert_eq!(r.int(), Ok(n));
    }
    assert_eq!((r.bytes(), r.str()), (Ok(&b"abc"[..]), Ok("d")));
    assert_eq!(r.end(), Ok(()));
}

#[test]
fn nothing_is_read_past_the_end() {
    assert_eq!(Reader::new(&[0xff; 11]).var(), Err(DecodeError::Range));
    assert_eq!(Reader::new(&[0x80]).var(), Err(DecodeError::Short));
    assert_eq!(Reader::new(&[200, 1, 0]).bytes(), Err(DecodeError::Short));
    assert_eq!(
        Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).bytes(),
        Err(DecodeError::Short)
    );
    assert_eq!(Reader::new(&[1, 2]).end(), Err(DecodeError::Trailing));
}
