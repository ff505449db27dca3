//! The hostile program: one system call each, and the error it got, by number.

use crate::{command, run};
use mw_sandbox::Spec;
use rustix::io::Errno;
use std::net::{SocketAddr, TcpStream};

/// Not a test: does what `MW_ACT` says and prints how it went.
#[test]
fn acts_inside() {
    let Ok(act) = std::env::var("MW_ACT") else { return };
    let (verb, object) = act.split_once(' ').unwrap_or((&act, ""));
    let errno = match verb {
        "connect" => errno_of(TcpStream::connect(object.parse::<SocketAddr>().unwrap())),
        "socket" => of(rustix::net::socket(
            rustix::net::AddressFamily::from_raw(object.parse().unwrap()),
            rustix::net::SocketType::STREAM,
            None,
        )),
        "open" => errno_of(std::fs::File::open(object)),
        "write" => errno_of(std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(object)),
        "kill" => of(rustix::process::kill_process(pid(object), rustix::process::Signal::KILL)),
        "exists" => of(rustix::process::test_kill_process(pid(object))),
        "unshare" => errno_of(std::process::Command::new("unshare").args(["-Ur", "true"]).status().map(drop)),
        other => panic!("unknown act {other}"),
    };
    println!("ACT {errno}");
    std::process::exit(0);
}

fn pid(text: &str) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(text.parse().unwrap()).unwrap()
}

fn of<T>(result: Result<T, Errno>) -> i32 {
    result.map_or_else(Errno::raw_os_error, |_| 0)
}

fn errno_of<T>(result: std::io::Result<T>) -> i32 {
    result.map_or_else(|e| e.raw_os_error().unwrap_or(-1), |_| 0)
}

/// The program as run inside, with the act in its environment.
fn act(what: &str) -> Spec {
    let mut spec = command(&["/run/mw/init", "--exact", "acts::acts_inside", "--nocapture", "--test-threads=1"]);
    spec.env.push(("MW_ACT".into(), what.into()));
    spec
}

/// Does `what` in the sandbox of `change`d [`Spec`]; returns the error number, or 0.
pub fn inside_with(what: &str, change: impl FnOnce(&mut Spec)) -> i32 {
    let mut spec = act(what);
    change(&mut spec);
    let outcome = run(&spec);
    let text = outcome.out.to_text();
    let line = text.lines().find_map(|l| l.split_once("ACT ")).unwrap_or_else(|| panic!("{what}: {outcome:?}"));
    line.1.trim().parse().unwrap()
}

/// Does `what` in a sandbox; returns the error number, or 0.
pub fn inside(what: &str) -> i32 {
    inside_with(what, |_| {})
}
