//! When a write may go on, and what ends it.

use super::*;

fn piece(task: u32, offset: u64, len: u64) -> Piece {
    Piece { ino: 7, task, offset, len, direct: false }
}

#[test]
fn a_write_goes_on_where_it_stopped() {
    let mut unfinished = Unfinished::default();
    // 10,000 bytes at 100: to the end of the page, whole pages, and the rest.
    assert!(!unfinished.continues(&piece(1, 100, 3996)));
    unfinished.begins(&piece(1, 100, 3996));
    assert_eq!(unfinished.inodes(), [7]);
    assert!(unfinished.continues(&piece(1, 4096, 6004)));
    unfinished.begins(&piece(1, 4096, 6004));
    assert!(unfinished.is_empty());
}

#[test]
fn another_write_ends_it() {
    for next in [piece(2, 4096, 10), piece(1, 8192, 10), piece(1, 0, 10)] {
        let mut unfinished = Unfinished::default();
        unfinished.begins(&piece(1, 0, 4096));
        assert!(!unfinished.continues(&next), "{next:?}");
        assert!(unfinished.is_empty());
    }
}

#[test]
fn another_file_does_not() {
    let mut unfinished = Unfinished::default();
    unfinished.begins(&piece(1, 0, 4096));
    assert!(!unfinished.continues(&Piece { ino: 8, ..piece(1, 4096, 10) }));
    assert!(!unfinished.ended(8));
    assert!(unfinished.ended(7));
    assert!(unfinished.is_empty());
}

#[test]
fn a_full_request_and_a_page_end_may_go_on() {
    assert!(piece(1, 5, u64::from(MAX_WRITE)).may_go_on());
    assert!(piece(1, 5, 4091).may_go_on());
    assert!(!piece(1, 5, 4090).may_go_on());
    // Around the pages only the fill of a request matters: 256 of a program's pages, of which each may give one byte.
    let direct = |len| Piece { direct: true, ..piece(1, 5, len) };
    assert!(!direct(255).may_go_on());
    assert!(direct(256).may_go_on());
}
