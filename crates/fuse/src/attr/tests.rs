//! Times on both sides of 1970.

use super::*;

#[test]
fn a_time_before_1970_keeps_its_nanoseconds() {
    // -1.2 s is (-2, 800_000_000) to the kernel; fuser makes EPOCH - (2, 800_000_000) of it.
    let arrived = UNIX_EPOCH - Duration::new(2, 800_000_000);
    assert_eq!(nanoseconds(arrived), -1_200_000_000);
    assert_eq!(nanoseconds(UNIX_EPOCH + Duration::new(3, 7)), 3_000_000_007);
}

#[test]
fn extreme_times_do_not_panic() {
    for time in [i64::MIN, -1, 0, 1, i64::MAX] {
        let attr = system_time(time);
        assert_eq!(attr < UNIX_EPOCH, time < 0);
    }
}

#[test]
fn a_mode_names_a_type_that_mknod_can_make() {
    assert_eq!(kind_of_mode(0o100_644), Some(FileType::File));
    assert_eq!(kind_of_mode(0o644), Some(FileType::File));
    assert_eq!(kind_of_mode(0o010_644), Some(FileType::Fifo));
    assert_eq!(kind_of_mode(0o040_755), None);
}
