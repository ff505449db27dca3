//! Reading the table of mounts.

use super::*;

const TABLE: &[u8] = b"25 30 0:23 / /sys rw,nosuid shared:7 - sysfs sysfs rw
40 30 0:53 / /mnt/a\\040b rw,nosuid,nodev shared:9 master:1 - fuse.mw manyworlds:w rw,user_id=0
41 30 0:54 / /mnt/c rw - fuse.mw manyworlds:w rw
42 41 0:55 / /mnt/c rw - tmpfs tmpfs rw
43 30 0:56 / /mnt/d rw - fuse.sshfs x rw
";

#[test]
fn only_a_mount_of_ours_on_top_is_found() {
    assert_eq!(find_in(TABLE, Path::new("/mnt/a b")).as_deref(), Some("0:53"));
    for other in ["/sys", "/mnt/c", "/mnt/d", "/nowhere"] {
        assert_eq!(find_in(TABLE, Path::new(other)), None, "{other}");
    }
}

#[test]
fn escapes_are_undone() {
    assert_eq!(unescape(b"a\\040b\\134c\\0"), "a b\\c\\0");
}
