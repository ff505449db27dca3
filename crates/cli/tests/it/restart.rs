//! A restart in place: `mw restart`, SIGUSR2, and what is refused. Programs in the middle of everything: `tests/real/restart.sh`.

use crate::bench::{MW, Server, command, temp};
use crate::host::{FUSE, RUN, has};
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks without a client of its own, so that a refused or broken connection is seen.
fn healthy(endpoint: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(endpoint.strip_prefix("http://").unwrap())?;
    stream.write_all(b"GET /-/healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("HTTP/1.1 200") && answer.contains("\"ok\":true"))
}

const HEALTH: &[u8] = b"GET /-/healthz HTTP/1.1\r\nhost: x\r\n\r\n";

/// A client with one connection.
struct Client(TcpStream);

impl Client {
    fn new(endpoint: &str) -> Self {
        Self(TcpStream::connect(endpoint.strip_prefix("http://").unwrap()).unwrap())
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Waits until the server has read what was sent.
    fn settle(&self) {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }

    /// Sends what ends a request and reads the answer, whose content is one document.
    fn ask(&mut self, bytes: &[u8]) {
        self.send(bytes);
        let mut answer = Vec::new();
        while !answer.ends_with(b"}") {
            let mut piece = [0; 4096];
            let n = self.0.read(&mut piece).unwrap();
            assert!(n > 0, "the connection ended: {:?}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&piece[..n]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{:?}", String::from_utf8_lossy(&answer));
    }
}

#[test]
fn neither_clients_nor_programs_notice_a_restart() {
    if !has(FUSE) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let dir = temp();
    let at = dir.path().to_str().unwrap();
    s.ok(&["mount", "base", at]);
    let announced = fs::read(s.path().join("server.json")).unwrap();
    let mut open = File::options().read(true).write(true).create_new(true).open(dir.path().join("f")).unwrap();
    let mut unnamed = File::options().read(true).write(true).create_new(true).open(dir.path().join("u")).unwrap();
    fs::remove_file(dir.path().join("u")).unwrap();
    unnamed.write_all(b"kept").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut asked = 0;
            while !stop.load(Ordering::Relaxed) {
                assert!(healthy(&s.endpoint).unwrap(), "asked {asked} times");
                asked += 1;
            }
            asked
        });
        for n in 0..5 {
            writeln!(open, "line {n}").unwrap();
            let report = s.json(&["restart"]);
            assert_eq!((report["state"].as_str(), report["mounts"].as_u64()), (Some("done"), Some(1)), "{report}");
            assert_eq!((report["open"].as_u64(), report["listeners"].as_u64()), (Some(2), Some(1)), "{report}");
            assert_eq!(report["pid"].as_u64(), Some(u64::from(s.pid())), "{report}");
            assert!(report["problem"].is_null(), "{report}");
        }
        stop.store(true, Ordering::Relaxed);
        assert!(client.join().unwrap() > 0);
    });
    // A connection goes on too: before its first request, between two, and in the middle of a head.
    let mut streams: Vec<_> = (0..3).map(|_| Client::new(&s.endpoint)).collect();
    streams[1].ask(HEALTH);
    streams[2].ask(HEALTH);
    streams[2].send(&HEALTH[..9]);
    streams[2].settle();
    s.ok(&["restart"]);
    streams[2].ask(&HEALTH[9..]);
    streams.iter_mut().for_each(|client| client.ask(HEALTH));
    let mut text = String::new();
    open.rewind().unwrap();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "line 0\nline 1\nline 2\nline 3\nline 4\n");
    assert_eq!(s.ok(&["cat", "mw://base/f"]), text);
    unnamed.rewind().unwrap();
    text.clear();
    unnamed.read_to_string(&mut text).unwrap();
    assert_eq!(text, "kept");
    assert_eq!(fs::read(s.path().join("server.json")).unwrap(), announced, "commands find the same server");
    let human = s.ok(&["restart"]);
    assert!(human.contains("1 mount, 2 open files in them, 1 listener") && human.contains("clients waited"), "{human}");
    // What is unmounted lazily, and still used, comes along too.
    s.ok(&["unmount", "--lazy", at]);
    let report = s.json(&["restart"]);
    assert_eq!((report["mounts"].as_u64(), report["open"].as_u64()), (Some(1), Some(2)), "{report}");
    write!(open, "late").unwrap();
    assert!(s.ok(&["cat", "mw://base/f"]).ends_with("late"));
    assert!(s.json(&["mounts"])["mounts"].as_array().unwrap().is_empty());
    drop((open, unnamed));
    s.ok(&["fsck"]);
}

#[test]
fn locks_outlive_a_restart_also_between_two_mounts() {
    if !has(FUSE) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let (one, other) = (temp(), temp());
    s.ok(&["mount", "base", one.path().to_str().unwrap()]);
    s.ok(&["mount", "base", other.path().to_str().unwrap()]);
    let holder = File::create(one.path().join("lock")).unwrap();
    holder.lock().unwrap();
    let seeker = File::open(other.path().join("lock")).unwrap();
    let waits = std::thread::spawn(move || {
        seeker.lock().unwrap();
        seeker
    });
    // Until it waits in the kernel, for an answer of the server.
    let waiting = || {
        let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
        tasks
            .into_iter()
            .any(|task| fs::read_to_string(task.path().join("wchan")).is_ok_and(|at| at == "request_wait_answer"))
    };
    while !waiting() {
        std::thread::yield_now();
    }
    let refused = || {
        let third = File::open(other.path().join("lock")).unwrap();
        third.try_lock().is_err()
    };
    assert!(refused());
    for _ in 0..2 {
        assert_eq!(s.json(&["restart"])["mounts"].as_u64(), Some(2));
        assert!(refused() && !waits.is_finished());
    }
    holder.unlock().unwrap();
    let seeker = waits.join().unwrap();
    assert!(holder.try_lock().is_err());
    s.ok(&["restart"]);
    assert!(holder.try_lock().is_err());
    seeker.unlock().unwrap();
    holder.lock().unwrap();
    for dir in [&one, &other] {
        s.ok(&["unmount", "--lazy", dir.path().to_str().unwrap()]);
    }
}

#[test]
fn a_killed_server_that_was_restarted_leaves_what_any_other_leaves() {
    if !has(FUSE) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let dir = temp();
    s.ok(&["mount", "base", dir.path().to_str().unwrap()]);
    let mut open = File::create(dir.path().join("f")).unwrap();
    open.write_all(b"before").unwrap();
    s.ok(&["restart"]);
    let s = Server::on(s.kill(), &[]);
    // A crash is no restart: who had it open must learn of it.
    assert!(open.write_all(b"after").is_err());
    assert_eq!(fs::read_to_string(dir.path().join("f")).unwrap(), "before");
    s.ok(&["unmount", dir.path().to_str().unwrap()]);
}

#[test]
fn a_signal_restarts_too_and_an_export_keeps_its_port() {
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let port = s.json(&["export", "base"])["port"].as_u64().unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", port as u16)).unwrap();
    let pid = rustix::process::Pid::from_raw(s.pid() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::USR2).unwrap();
    // Its connection ends, and the next one is accepted.
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    drop(TcpStream::connect(("127.0.0.1", port as u16)).unwrap());
    let report = s.json(&["restart"]);
    assert_eq!(report["listeners"].as_u64(), Some(2), "{report}");
    let exports = s.json(&["exports"]);
    assert!(
        exports["exports"][0]["problem"].is_null() && exports["exports"][0]["port"].as_u64() == Some(port),
        "{exports}"
    );
}

/// Puts a program of this text where the server's is.
fn install(program: &Path, text: &str) {
    let beside = program.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(beside, program).unwrap();
}

#[test]
fn a_program_that_cannot_take_over_leaves_the_old_one_at_work() {
    if !has(FUSE) {
        return;
    }
    let place = temp();
    let program: PathBuf = place.path().join("mw");
    fs::copy(MW, &program).unwrap();
    let s = Server::of(&program, temp(), &[]);
    s.ok(&["world", "create", "base"]);
    let dir = temp();
    s.ok(&["mount", "base", dir.path().to_str().unwrap()]);
    let mut open = File::create(dir.path().join("f")).unwrap();
    let mut said = String::new();
    let mut refused = |why: &str| {
        let done = s.mw(&["restart"]);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.err.contains(why), "{done:?}");
        writeln!(open, "{why}").unwrap();
        said.push_str(&format!("{why}\n"));
        assert_eq!(s.ok(&["cat", "mw://base/f"]), said);
        assert!(healthy(&s.endpoint).unwrap());
    };
    fs::rename(&program, place.path().join("kept")).unwrap();
    assert_eq!(s.mw(&["restart"]).code, 4, "there is no program");
    install(&program, "#!/bin/sh\nexit 0\n");
    refused("does not say that it can take over");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(s.mw(&["restart"]).code, 5, "the program may not be run");
    install(&program, "#!/bin/sh\necho '{\"from\":7,\"to\":9,\"device\":[8,1]}'\n");
    refused("cannot take over from this version");
    // One of before the format of the directory, which it would refuse when it has taken over.
    install(&program, "#!/bin/sh\necho '{\"from\":1,\"to\":2,\"device\":[8,1]}'\n");
    refused("does not read a directory of format");
    // One that can be asked, and not run after that: everything stood still, and goes on.
    install(&program, "#!/bin/sh\nchmod 644 \"$0\"\necho '{\"from\":1,\"to\":2,\"device\":[8,1],\"format\":99}'\n");
    refused("the server goes on as it was");
    install(&program, "#!/nowhere/sh\n");
    fs::rename(place.path().join("kept"), &program).unwrap();
    assert_eq!(s.json(&["restart"])["open"].as_u64(), Some(1));
    write!(open, "end").unwrap();
    assert_eq!(s.ok(&["cat", "mw://base/f"]), format!("{said}end"));
    s.ok(&["unmount", "--lazy", dir.path().to_str().unwrap()]);
}

#[test]
fn nobody_is_restarted_by_accident() {
    let dir = temp();
    let done = crate::bench::Done::of(command(dir.path()).arg("restart"));
    assert_eq!(done.code, 4, "{done:?}");
    assert!(!dir.path().join("server.json").exists(), "a server was started to be restarted");
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let key = s.json(&["key", "create", "k", "--grant", "base:admin"]);
    assert_eq!(s.with_key(&key, &["restart"]).code, 5);
    let done = s.mw(&["serve", "--handover"]);
    assert!(done.code != 0 && done.err.contains("nothing to take over"), "{done:?}");
}

#[test]
fn runs_are_waited_for() {
    if !has(RUN) {
        return;
    }
    let s = Server::start();
    s.ok(&["world", "create", "base"]);
    let id = s.ok(&["run", "base", "--detach", "--", "sleep", "600"]);
    let id = id.trim();
    let done = s.mw(&["restart"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains(id) && done.err.contains("--wait"), "{done:?}");
    let waiting = command(s.path()).args(["restart", "--wait", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    s.ok(&["runs", "cancel", id]);
    let done = waiting.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(s.json(&["runs", "show", id])["state"], "cancelled");
}
