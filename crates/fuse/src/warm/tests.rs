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
