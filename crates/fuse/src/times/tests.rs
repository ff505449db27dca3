use super::*;

fn settled(times: &Times) -> Option<(i64, i64)> {
    times.settle(7).map(|said| (said.mtime, said.ctime))
}

#[test]
fn bytes_that_come_after_the_times_do_not_move_them() {
    let times = Times::default();
    times.wrote(7);
    assert_eq!(settled(&times), None);
    times.said(7, 10, 11);
    assert_eq!(settled(&times), None);
    times.wrote(7);
    times.said_ctime(7, 12);
    assert_eq!(settled(&times), Some((10, 12)));
    assert_eq!(settled(&times), None);
}

#[test]
fn times_that_come_after_the_bytes_stand() {
    let times = Times::default();
    times.said(7, 10, 10);
    times.wrote(7);
    times.said(7, 20, 20);
    assert_eq!(settled(&times), None);
    times.wrote(7);
    times.forget(7);
    assert_eq!(settled(&times), None);
}
