//! The names and their other names; that files are reached by them is tested through the mount.

use super::*;

#[test]
fn a_name_that_a_mount_cannot_show_has_another() {
    for (name, other) in [
        (&b""[..], &b".s3~"[..]),
        (b".", b".s3~%2e"),
        (b"..", b".s3~%2e%2e"),
        (b"a\0b", b".s3~a%00b"),
        (b"50%\0", b".s3~50%25%00"),
    ] {
        assert_eq!(escaped(name).unwrap(), other);
        assert_eq!(unescaped(&other[4..]).unwrap(), name);
    }
    let long = escaped(&[b'x'; 256]).unwrap();
    assert_eq!(long.len(), 37);
    assert!(long.starts_with(b".s3~#") && mountable(&long));
    assert_ne!(long, escaped(&[b'y'; 256]).unwrap());
    assert_eq!(escaped(b"plain"), None);
    assert_eq!(unescaped(b"%zz"), None);
    assert_eq!(unescaped(b"%2"), None);
}
