//! What is refused, and what the arguments say.

use super::*;
use std::path::PathBuf;

fn bind(host: &str, inside: &str, writable: bool) -> Bind {
    Bind { host: PathBuf::from(host), inside: PathBuf::from(inside), writable }
}

fn spec() -> Spec {
    Spec { command: vec!["true".into()], ..Spec::default() }
}

fn words(spec: &Spec, features: &Features) -> Vec<String> {
    let steps = plan(spec, &Host::default(), features, Path::new("/x/mw"), &["serve".into()], Some(vec![1]));
    let word = |s| match s {
        Step::Text(text) => String::from_utf8(text).unwrap(),
        Step::Data(_) => "DATA".into(),
        Step::Beneath { base, rest, by_path } => {
            format!("BENEATH {} {} {by_path}", String::from_utf8(base).unwrap(), String::from_utf8(rest).unwrap())
        }
    };
    steps.into_iter().map(word).collect()
}

#[test]
fn a_bind_cannot_undo_the_sandbox() {
    for inside in ["/", "/proc", "/proc/sys", "/dev/shm", "/run", "/run/mw/init", "/sys/fs", "relative", "/a/../proc"] {
        assert!(check(&Spec { binds: vec![bind("/x", inside, true)], ..spec() }).is_err(), "{inside}");
    }
    assert!(check(&Spec { binds: vec![bind("x", "/x", false)], ..spec() }).is_err());
    assert!(check(&Spec { binds: vec![bind("/x", "/world", true)], ..spec() }).is_ok());
}

#[test]
fn what_cannot_be_run_is_refused() {
    assert!(check(&Spec::default()).is_err());
    assert!(check(&Spec { command: vec!["a".into(), "b\0".into()], ..spec() }).is_err());
    assert!(check(&Spec { env: vec![("A=B".into(), "c".into())], ..spec() }).is_err());
    assert!(check(&Spec { workdir: "tmp".into(), ..spec() }).is_err());
    for hostname in ["", "a b", "a\n127.0.0.1 b"] {
        assert!(check(&Spec { hostname: hostname.into(), ..spec() }).is_err());
    }
}

#[test]
fn a_bind_beneath_a_writable_one_is_opened_without_links() {
    let binds = vec![
        bind("/m/w", "/world", true),
        bind("/m/w/workspace", "/workspace", true),
        bind("/m/w/workspace/ro", "/ro", false),
        bind("/m/word", "/word", false),
    ];
    let spec = Spec { binds, ..spec() };
    let with_fd = words(&spec, &Features { bind_fd: true, ..Features::default() }).join(" ");
    let expected = "--bind /m/w /world --bind-fd BENEATH /m/w workspace false /workspace \
                    --ro-bind-fd BENEATH /m/w workspace/ro false /ro --ro-bind /m/word /word --remount-ro /";
    assert!(with_fd.contains(expected), "{with_fd}");
    let without = words(&spec, &Features::default()).join(" ");
    assert!(without.contains("--bind BENEATH /m/w workspace true /workspace"), "{without}");
}

#[test]
fn every_namespace_is_the_sandboxes_own_and_the_root_is_read_only() {
    let words = words(&spec(), &Features { disable_userns: true, size: true, bind_fd: true });
    for name in ["user", "ipc", "pid", "net", "uts", "cgroup"] {
        assert!(words.contains(&format!("--unshare-{name}")), "{name}");
    }
    assert!(words.contains(&"--disable-userns".into()) && words.contains(&"--die-with-parent".into()));
    assert!(words.join(" ").ends_with("--remount-ro / --chdir / --seccomp DATA -- /run/mw/init serve"));
    assert_eq!(words.iter().filter(|w| *w == "--size").count(), 3);
}
