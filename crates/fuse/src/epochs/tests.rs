//! What was touched, by when.

use super::*;

#[test]
fn only_later_changes_of_the_same_inode_count() {
    let epochs = Epochs::default();
    epochs.touch(7);
    let since = epochs.now();
    assert!(!epochs.touched(7, since));
    epochs.touch(8);
    assert!(!epochs.touched(7, since));
    assert!(epochs.touched(8, since));
    epochs.touch(7);
    assert!(epochs.touched(7, since));
    assert!(!epochs.touched(7, epochs.now()));
}

#[test]
fn what_is_forgotten_counts_as_touched() {
    let epochs = Epochs::default();
    let since = epochs.now();
    for _ in 0..=REMEMBERED {
        epochs.touch(1);
    }
    assert!(epochs.touched(2, since));
    let since = epochs.now();
    assert!(!epochs.touched(2, since));
    epochs.touch_all();
    assert!(epochs.touched(2, since));
}
