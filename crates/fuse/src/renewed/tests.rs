use super::*;

#[test]
fn a_file_has_its_number_until_it_is_renewed() {
    let renewed = Renewed::default();
    assert_eq!((renewed.node(7), renewed.ino(7), renewed.is_current(7)), (7, 7, true));
    renewed.renew(7, || true);
    assert_eq!(renewed.node(7), 7);
    renewed.renew(7, || false);
    let first = renewed.node(7);
    renewed.renew(8, || false);
    renewed.renew(7, || false);
    let second = renewed.node(7);
    assert!(first != second && first != renewed.node(8));
    assert_eq!(renewed.nodes(7), [7, first, second]);
    assert_eq!((renewed.ino(first), renewed.ino(second), renewed.ino(7)), (7, 7, 7));
    assert_eq!([7, first, second].map(|node| renewed.is_current(node)), [false, false, true]);
}

#[test]
fn a_file_is_itself_again_when_the_kernel_knows_none_of_its_nodes() {
    let renewed = Renewed::default();
    renewed.renew(7, || false);
    let node = renewed.node(7);
    // Somebody has the old one open.
    renewed.forget(node, |other| other == 7);
    assert_eq!(renewed.node(7), node);
    renewed.forget(7, |other| other == node);
    assert_eq!((renewed.node(7), renewed.is_current(7)), (node, false));
    renewed.forget(7, |_| false);
    assert_eq!((renewed.node(7), renewed.nodes(7)), (7, vec![7]));
    renewed.renew(7, || false);
    assert_ne!(renewed.node(7), node);
}

#[test]
fn what_is_written_goes_on() {
    let (renewed, next) = (Renewed::default(), Renewed::default());
    renewed.renew(7, || false);
    next.restore(renewed.written());
    assert_eq!(next.nodes(7), renewed.nodes(7));
    next.renew(9, || false);
    assert_ne!(next.node(9), next.node(7));
}
