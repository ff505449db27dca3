//! Limits hold for the sandbox as a whole, and the host does not notice.

use crate::{possible, run, scratch, shell, start, with_dir};
use mw_sandbox::{Enforcer, Exit};

#[test]
fn a_fork_bomb_is_stopped() {
    if !possible() {
        return;
    }
    let mut spec = shell("n=0; while [ $n -lt 200 ]; do sleep 600 & n=$((n+1)); done 2>/dev/null; echo not stopped");
    spec.limits.processes = 40;
    let running = start(&spec);
    if running.limits_enforced_by().processes == Enforcer::Nobody {
        println!("skipped: needs control groups, or an ordinary user");
        return;
    }
    let outcome = running.wait();
    assert!(!outcome.out.to_text().contains("not stopped"), "{outcome:?}");
    assert!(matches!(outcome.exit, Exit::Code(1..)), "{outcome:?}");
    // Control: within the limit.
    let mut spec = shell("for i in 1 2 3 4 5 6 7 8; do sleep 600 & done; echo fine");
    spec.limits.processes = 40;
    assert_eq!(run(&spec).out.to_text(), "fine\n");
}

#[test]
fn a_real_fork_bomb_ends_at_the_deadline_with_the_host_unharmed() {
    if !possible() {
        return;
    }
    let mut spec = shell("bomb() { bomb | bomb & }; bomb; wait; sleep 600");
    spec.limits.processes = 60;
    spec.limits.timeout = Some(std::time::Duration::from_millis(700));
    spec.limits.grace = std::time::Duration::from_millis(100);
    let running = start(&spec);
    if running.limits_enforced_by().processes == Enforcer::Nobody {
        return;
    }
    let outcome = running.wait();
    assert!(matches!(outcome.exit, Exit::Deadline | Exit::Code(_)), "{outcome:?}");
}

#[test]
fn a_memory_hog_is_killed() {
    if !possible() {
        return;
    }
    let mut spec = shell("head -c 2G /dev/zero | tail >/dev/null");
    spec.limits.memory = 64 << 20;
    let running = start(&spec);
    let by = running.limits_enforced_by().memory;
    let outcome = running.wait();
    match by {
        Enforcer::CgroupV1 | Enforcer::CgroupV2 => {
            assert_eq!(outcome.exit, Exit::OutOfMemory, "{outcome:?}");
            let peak = outcome.peak_memory.unwrap();
            assert!((32 << 20..=64 << 20).contains(&peak), "{peak}");
        }
        _ => assert!(matches!(outcome.exit, Exit::Code(1..)), "{outcome:?}"),
    }
    // Control: within the limit.
    let mut spec = shell("head -c 4M /dev/zero | tail >/dev/null");
    spec.limits.memory = 64 << 20;
    assert_eq!(run(&spec).exit, Exit::Code(0));
}

#[test]
fn scratch_space_is_bounded() {
    if !possible() {
        return;
    }
    for dir in ["/tmp", "/home/agent", "/dev/shm"] {
        let mut spec = shell(&format!("head -c 900K /dev/zero >{dir}/a && echo fits; head -c 9M /dev/zero >{dir}/b"));
        spec.limits.scratch = 1 << 20;
        let outcome = run(&spec);
        assert_eq!(outcome.out.to_text(), "fits\n", "{dir}");
        assert!(outcome.err.to_text().contains("No space left"), "{dir}: {outcome:?}");
    }
}

#[test]
fn without_limits_nobody_enforces_any() {
    if !possible() {
        return;
    }
    let mut spec = shell("cat big | wc -c");
    let host = scratch();
    std::fs::write(host.path().join("big"), vec![0; 1 << 20]).unwrap();
    spec = with_dir(spec, host.path(), "/world");
    spec.workdir = "/world".into();
    spec.limits.memory = 0;
    spec.limits.processes = 0;
    let running = start(&spec);
    let by = running.limits_enforced_by();
    assert_eq!((by.memory, by.processes), (Enforcer::Nobody, Enforcer::Nobody));
    assert_eq!(running.wait().out.to_text(), "1048576\n");
}
