//! Which files a sandbox sees, and which it may change.

use crate::acts::{inside, inside_with};
use crate::{backend, possible, run, said, scratch, shell, with_dir};
use mw_model::ErrorKind;
use mw_sandbox::{Backend, Bind, Discard, Exit};
use std::fs;
use std::sync::Arc;

#[test]
fn the_hosts_files_are_not_there() {
    if !possible() {
        return;
    }
    let host = scratch();
    let secret = host.path().join("secret");
    fs::write(&secret, "s3cret").unwrap();
    let secret = secret.to_str().unwrap().to_owned();
    for path in ["/etc/shadow", "/etc/ssh/sshd_config", "/root", "/var/log", "/sys", "/proc/1/root/etc/shadow", &secret]
    {
        let errno = inside(&format!("open {path}"));
        assert!([libc::ENOENT, libc::EACCES].contains(&errno), "{path}: {errno}");
    }
    // Control: the same file, shown.
    let shown = inside_with("open /secret", |spec| {
        spec.binds.push(Bind { host: secret.clone().into(), inside: "/secret".into(), writable: false });
    });
    assert_eq!(shown, 0);
    let (homes, _) = said("ls -A /home /home/agent /tmp /workspace 2>/dev/null; cat /etc/passwd");
    assert!(homes.contains("agent:x:1000:") && !homes.contains("syslog"), "{homes}");
    assert!(homes.starts_with("/home:\nagent\n\n/home/agent:\n\n/tmp:\n"), "{homes}");
}

#[test]
fn the_system_is_read_only() {
    if !possible() {
        return;
    }
    for path in ["/usr/bin/x", "/usr/bin/env", "/etc/passwd", "/x", "/etc/x", "/dev/x", "/run/mw/x", "/opt/x"] {
        let errno = inside(&format!("write {path}"));
        assert!([libc::EROFS, libc::EACCES].contains(&errno), "{path}: {errno}");
    }
    for path in ["/tmp/x", "/home/agent/x", "/dev/shm/x", "/var/tmp/x", "/dev/null"] {
        assert_eq!(inside(&format!("write {path}")), 0, "{path}");
    }
}

#[test]
fn a_writable_directory_is_the_callers_and_a_read_only_one_stays() {
    if !possible() {
        return;
    }
    let (world, fixed) = (scratch(), scratch());
    fs::write(world.path().join("old"), "old").unwrap();
    fs::write(fixed.path().join("f"), "fixed").unwrap();
    let script = "set -e; cat old; echo new >old; mkdir d; echo x >d/x; chmod 640 d/x; ln -s x d/l; mv d e; cat /fixed/f; \
                  ! echo y >/fixed/f; id -u; stat -c %u e/x";
    let mut spec = with_dir(shell(script), world.path(), "/world");
    spec.binds.push(Bind { host: fixed.path().into(), inside: "/fixed".into(), writable: false });
    spec.workdir = "/world".into();
    let outcome = run(&spec);
    assert_eq!((outcome.exit, outcome.out.to_text().as_str()), (Exit::Code(0), "oldfixed1000\n1000\n"), "{outcome:?}");
    assert!(outcome.err.to_text().contains("Read-only"));
    assert_eq!(fs::read_to_string(world.path().join("old")).unwrap(), "new\n");
    let made = fs::metadata(world.path().join("e/x")).unwrap();
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    use std::os::unix::fs::MetadataExt;
    assert_eq!((made.uid(), made.gid(), made.mode() & 0o777), (uid, gid, 0o640));
    assert_eq!(fs::read_to_string(fixed.path().join("f")).unwrap(), "fixed");
}

#[test]
fn a_link_left_in_a_world_does_not_lead_the_host_astray() {
    if !possible() {
        return;
    }
    let host = scratch();
    let world = host.path().join("world");
    fs::create_dir_all(world.join("real/workspace")).unwrap();
    fs::create_dir(host.path().join("secrets")).unwrap();
    fs::write(host.path().join("secrets/key"), "s3cret").unwrap();
    let script = "cat /workspace/key; echo pwned >/workspace/new";
    let spec = |beneath: &str| {
        let mut spec = with_dir(shell(script), &world, "/world");
        spec.binds.push(Bind { host: world.join(beneath), inside: "/workspace".into(), writable: true });
        spec
    };
    for (name, target) in [("absolute", host.path().join("secrets")), ("relative", "../secrets".into())] {
        std::os::unix::fs::symlink(target, world.join(name)).unwrap();
        let error = backend().start(&spec(name), Arc::new(Discard)).unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
    }
    std::os::unix::fs::symlink("../secrets", world.join("real/up")).unwrap();
    assert!(backend().start(&spec("absolute/../secrets"), Arc::new(Discard)).is_err());
    assert!(!host.path().join("secrets/new").exists());
    // Control: the directory itself.
    assert_eq!(run(&spec("real/workspace")).exit, Exit::Code(0));
    assert_eq!(fs::read_to_string(world.join("real/workspace/new")).unwrap(), "pwned\n");
}

#[test]
fn what_cannot_be_shown_or_run_is_an_error_that_names_it() {
    if !possible() {
        return;
    }
    let kind = |spec| {
        let error = backend().start(&spec, Arc::new(Discard)).unwrap_err();
        (error.kind(), error.to_string())
    };
    let (what, message) = kind(shell("true").tap(|s| s.command = vec!["no-such-program".into()]));
    assert_eq!(what, ErrorKind::NotFound);
    assert!(message.contains("no-such-program"), "{message}");
    let (what, message) = kind(shell("true").tap(|s| s.workdir = "/no/such/place".into()));
    assert_eq!(what, ErrorKind::NotFound);
    assert!(message.contains("/no/such/place"), "{message}");
    let (what, _) = kind(shell("true").tap(|s| s.command = vec!["/etc/passwd".into()]));
    assert_eq!(what, ErrorKind::Denied);
    let (_, message) = kind(with_dir(shell("true"), "/no/such/dir".as_ref(), "/world"));
    assert!(message.contains("/no/such/dir"), "{message}");
    let error = backend().with_program("/no/bwrap".into()).probe().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("install"), "{error}");
}

/// Changes a value in passing.
trait Tap: Sized {
    fn tap(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl Tap for mw_sandbox::Spec {}
