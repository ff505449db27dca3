use super::*;
use std::fs;

#[test]
fn a_quota_of_any_cgroup_above_counts() {
    let dir = tempfile::tempdir().unwrap();
    let (groups, mine) = (dir.path().join("groups"), dir.path().join("mine"));
    let quota = |group: &str, file: &str, text: &str| {
        fs::create_dir_all(groups.join(group)).unwrap();
        fs::write(groups.join(group).join(file), text).unwrap();
    };
    assert!(!is_rationed(&groups, &mine), "no table of cgroups");
    fs::write(&mine, "0::/a/b\n").unwrap();
    quota("a/b", "cpu.max", "max 100000\n");
    quota("a", "cpu.max", "max 100000\n");
    assert!(!is_rationed(&groups, &mine));
    quota("a", "cpu.max", "50000 100000\n");
    assert!(is_rationed(&groups, &mine));
    fs::write(&mine, "4:memory:/m\n3:cpu,cpuacct:/a\n").unwrap();
    quota("cpu,cpuacct/a", "cpu.cfs_quota_us", "-1\n");
    quota("memory/m", "cpu.cfs_quota_us", "50000\n");
    assert!(!is_rationed(&groups, &mine));
    quota("cpu,cpuacct/a", "cpu.cfs_quota_us", "50000\n");
    assert!(is_rationed(&groups, &mine));
}

#[test]
fn a_thread_goes_where_another_is() {
    let me = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let mut only = CpuSet::new();
    let last = (0..CpuSet::MAX_CPU).rev().find(|n| allowed.is_set(*n)).unwrap();
    only.set(last);
    sched_setaffinity(None, &only).unwrap();
    std::thread::yield_now();
    assert_eq!(processor_of(me), Some(last));
    let there = std::thread::spawn(move || {
        sched_setaffinity(None, &allowed).unwrap();
        follow(me);
        rustix::thread::sched_getaffinity(None).unwrap()
    });
    let there = there.join().unwrap();
    assert_eq!((there.count(), there.is_set(last)), (1, true));
    assert_eq!(processor_of(0), None);
}
