//! What a sandbox can do to the kernel and to processes outside.

use crate::acts::inside;
use crate::{possible, run, said, shell};
use mw_sandbox::Exit;
use std::process::{Command, Stdio};

#[test]
fn nothing_of_the_kernels_settings_can_be_written() {
    if !possible() {
        return;
    }
    // What root owns without a capability would do: the kernel runs the program that core_pattern names.
    let script = "find /proc -maxdepth 8 -writable ! -type l ! -path '/proc/[0-9]*' ! -path '/proc/self*' \
                  ! -path '/proc/thread-self*' 2>/dev/null | while read f; do (: >>\"$f\") 2>/dev/null && echo \"$f\"; done";
    let (open, _) = said(script);
    let masks = open.lines().all(is_covered);
    assert!(masks, "writable: {open}");
    // Owned by root; for another user the refusal comes sooner.
    let errno = inside("write /proc/sys/kernel/core_pattern");
    assert!([libc::EROFS, libc::EACCES].contains(&errno), "{errno}");
    let (hidden, _) = said("cat /proc/kallsyms /proc/keys /proc/kcore 2>/dev/null | head -c 100");
    assert_eq!(hidden, "");
}

/// Says whether `path` is one that the sandbox covers with `/dev/null`.
fn is_covered(path: &str) -> bool {
    ["kallsyms", "kcore", "keys", "key-users", "kmsg", "timer_list", "slabinfo", "vmallocinfo"]
        .iter()
        .any(|f| path == format!("/proc/{f}"))
        || path.starts_with("/proc/kpage")
        || path == "/proc/pagetypeinfo"
        || path.starts_with("/proc/sched")
        || path.starts_with("/proc/latency")
        || path.starts_with("/proc/timer")
}

#[test]
fn there_is_no_privilege_and_no_way_to_one() {
    if !possible() {
        return;
    }
    let (status, _) = said("grep -E '^(NoNewPrivs|CapInh|CapPrm|CapEff|CapAmb|CapBnd|Seccomp):' /proc/self/status");
    let value = |name: &str| {
        let line = status.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("{name}: {status}"));
        u64::from_str_radix(line.split(':').nth(1).unwrap().trim(), 16).unwrap()
    };
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"] {
        assert_eq!(value(set), 0, "{set}");
    }
    assert_eq!((value("NoNewPrivs"), value("Seccomp")), (1, 2));
    for script in [
        "unshare -Ur true",
        "unshare -m true",
        "mount -t tmpfs x /tmp",
        "mount --bind /tmp /opt",
        "umount /proc/sys",
        "mknod /tmp/d b 8 0",
        "chroot /usr true",
        "hostname other",
        "su -c true",
        "dmesg",
    ] {
        let (text, exit) = said(script);
        assert!(matches!(exit, Exit::Code(1..)), "{script}: {exit:?} {text}");
    }
    // Control: an ordinary system call beside each of these works.
    assert_eq!(said("mkfifo /tmp/f && hostname && id -un").0, "world\nagent\n");
}

#[test]
fn sockets_that_pass_by_the_network_namespace_are_shut() {
    if !possible() {
        return;
    }
    for family in [libc::AF_VSOCK, libc::AF_ALG, libc::AF_PACKET, libc::AF_BLUETOOTH] {
        assert_eq!(inside(&format!("socket {family}")), libc::EAFNOSUPPORT, "{family}");
    }
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
        assert_eq!(inside(&format!("socket {family}")), 0, "{family}");
    }
}

#[test]
fn processes_outside_cannot_be_seen_or_reached() {
    if !possible() {
        return;
    }
    let mut outside = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let pid = outside.id();
    assert!(rustix::process::test_kill_process(rustix::process::Pid::from_child(&outside)).is_ok());
    for n in [pid, std::process::id(), 99999] {
        assert_eq!(inside(&format!("exists {n}")), libc::ESRCH, "{n}");
    }
    let (text, exit) = said("ls -d /proc/[0-9]* | wc -l; kill -9 1; kill -9 -1; echo after");
    // `kill -9 -1` reaches everything but process 1 and the caller.
    assert_eq!(exit, Exit::Code(0), "{text}");
    assert!(text.contains("after"), "{text}");
    let count: u32 = text.lines().next().unwrap().trim().parse().unwrap();
    assert!(count <= 5, "{count} processes to see");
    assert!(outside.try_wait().unwrap().is_none(), "a process outside died");
    outside.kill().unwrap();
    outside.wait().unwrap();
}

#[test]
fn process_1_cannot_be_taken_over() {
    if !possible() {
        return;
    }
    let (text, _) = said("ls /proc/1/fd; cat /proc/1/environ; head -c 1 /proc/1/mem; readlink /proc/1/fd/0");
    assert!(text.contains("ermission denied") && !text.contains("socket:"), "{text}");
    // Signals to it have no effect; the command's own end is what ends the sandbox.
    let outcome = run(&shell("for s in 1 2 3 9 15 19; do kill -$s 1; done; exit 7"));
    assert_eq!(outcome.exit, Exit::Code(7));
}

#[test]
fn no_open_file_of_the_store_is_inherited() {
    if !possible() {
        return;
    }
    // A directory that whoever started the store left open, and everything a bind beneath another needs.
    let (left, world) = (crate::scratch(), crate::scratch());
    std::fs::create_dir(world.path().join("workspace")).unwrap();
    let open = rustix::fs::open(left.path(), rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    assert!(rustix::io::fcntl_getfd(&open).unwrap().is_empty(), "an inheritable file");
    let mut spec = crate::with_dir(shell("ls -l /proc/self/fd"), world.path(), "/world");
    spec = crate::with_dir(spec, &world.path().join("workspace"), "/workspace");
    let text = run(&spec).out.to_text();
    let numbers: Vec<_> =
        text.lines().filter_map(|l| l.split_once(" -> ")?.0.rsplit(' ').next()?.parse::<u32>().ok()).collect();
    assert_eq!(numbers, [0, 1, 2, 3], "{text}");
}
