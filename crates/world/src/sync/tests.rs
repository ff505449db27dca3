//! Which sync points a revert undoes.

use super::Reverts;
use mw_model::Seq;

#[test]
fn a_revert_to_before_undoes_and_a_later_one_to_after_brings_back() {
    let seq = Seq;
    let mut reverts = Reverts::default();
    assert!(!reverts.undid(seq(5), seq(9)));
    reverts.0.push((seq(10), seq(3)));
    assert!(reverts.undid(seq(5), seq(12)));
    assert!(!reverts.undid(seq(2), seq(12)));
    assert!(!reverts.undid(seq(11), seq(12)));
    reverts.0.push((seq(13), seq(7)));
    assert!(!reverts.undid(seq(5), seq(14)), "7 is before the first revert and holds 5");
    assert!(reverts.undid(seq(11), seq(14)));
    reverts.0.push((seq(15), seq(12)));
    assert!(reverts.undid(seq(5), seq(16)), "12 is after the first revert");
    assert!(!reverts.undid(seq(11), seq(16)));
    assert_eq!(Reverts::decode(&reverts.encode()).unwrap(), reverts);
}
