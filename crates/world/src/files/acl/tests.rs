//! The form and the arithmetic of lists; that they work on files is tested through the mount.

use super::*;

fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut out = VERSION.to_le_bytes().to_vec();
    for (tag, perm, id) in entries {
        out.extend_from_slice(&tag.to_le_bytes());
        out.extend_from_slice(&perm.to_le_bytes());
        out.extend_from_slice(&id.to_le_bytes());
    }
    out
}

const NONE: u32 = u32::MAX;

#[test]
fn a_list_comes_back_and_gives_its_bits() {
    let bits = list(&[(1, 6, NONE), (4, 4, NONE), (0x20, 0, NONE)]);
    let acl = Acl::decode(&bits).unwrap();
    assert!(acl.is_bits());
    assert_eq!(acl.bits(), 0o640);
    assert_eq!(acl.encode(), bits);
    let named = list(&[(1, 7, NONE), (2, 6, 1000), (4, 5, NONE), (8, 1, 7), (0x10, 6, NONE), (0x20, 4, NONE)]);
    let acl = Acl::decode(&named).unwrap();
    assert!(!acl.is_bits());
    // The mask stands for the group.
    assert_eq!(acl.bits(), 0o764);
    assert_eq!(acl.encode(), named);
}

#[test]
fn chmod_changes_the_mask_and_not_the_group() {
    let named = list(&[(1, 7, NONE), (2, 7, 1000), (4, 7, NONE), (0x10, 7, NONE), (0x20, 7, NONE)]);
    let mut acl = Acl::decode(&named).unwrap();
    acl.chmod(0o640);
    assert_eq!(acl.encode(), list(&[(1, 6, NONE), (2, 7, 1000), (4, 7, NONE), (0x10, 4, NONE), (0x20, 0, NONE)]));
}

#[test]
fn what_is_no_list_is_refused() {
    let good = [(1, 7, NONE), (4, 5, NONE), (0x20, 5, NONE)];
    assert!(Acl::decode(&list(&good)).is_ok());
    assert!(Acl::decode(&[]).is_err());
    assert!(Acl::decode(&list(&good)[..10]).is_err());
    for bad in [
        &good[..2],                                                     // nobody else
        &[good[1], good[0], good[2]],                                   // out of order
        &[good[0], (2, 7, 5), good[1], good[2]],                        // named without a mask
        &[good[0], good[1], (0x10, 1, NONE), (0x10, 1, NONE), good[2]], // two masks
        &[(1, 8, NONE), good[1], good[2]],                              // no such permission
        &[(3, 7, NONE), good[1], good[2]],                              // no such entry
    ] {
        assert!(Acl::decode(&list(bad)).is_err(), "{bad:?}");
    }
    let mut other = list(&good);
    other[0] = 3;
    assert!(Acl::decode(&other).is_err());
}
