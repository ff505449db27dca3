//! Counting what the kernel holds.

use super::*;

#[test]
fn an_inode_is_known_until_its_last_lookup_is_given_back() {
    let known = Known::default();
    known.add(5, 1);
    known.add(5, 2);
    assert_eq!(known.take_fresh(5), Some(2));
    assert_eq!(known.take_fresh(5), None);
    assert_eq!(known.forget(5, 1), None);
    assert!(known.has(5));
    assert_eq!(known.forget(5, 1), Some(false));
    assert!(!known.has(5));
    assert!(known.has(Ino::ROOT.0));
}

#[test]
fn the_world_hears_of_the_end_of_a_use_that_it_asked_about() {
    let known = Known::default();
    assert!(!known.uses(5));
    known.add(5, 1);
    assert!(known.uses(5));
    assert_eq!(known.forget(5, 1), Some(true));
    assert!(!known.uses(5) && known.forget(5, 1).is_none());
}

#[test]
fn only_files_open_for_both_can_be_mapped_for_writing() {
    let opens = Opens::default();
    opens.add(5, true);
    opens.add(6, false);
    opens.add(5, false);
    assert_eq!(opens.writing(), [5]);
    assert!(opens.remove(5, true));
    assert!(opens.writing().is_empty() && opens.has(5));
    assert!(opens.remove(5, false) && !opens.has(5) && !opens.remove(5, false));
    assert_eq!(opens.drain(), [(6, 1)]);
}
