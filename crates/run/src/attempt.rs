//! One attempt: fork, key, sandbox, and the key's death. Judging comes after, on what can no longer change.

use crate::error::{Error, Result};
use crate::events::Event;
use crate::record::State;
use crate::runs::{Live, Runs};
use crate::spec::RunSpec;
use mw_model::{ErrorKind, FileType, Ino};
use mw_sandbox::{Bind, Destination, Exit, Limits, Outcome, Output, Running, Spec, Stream};
use mw_world::{ForkOptions, Grant, KeyRequest, Make, Role, Secret, Session};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Where the store answers inside a sandbox.
const INSIDE_PORT: u16 = 9700;
/// How long a fork and its key outlive the time limit of their command, so that nothing lives for ever after a crash.
const SPARE: Duration = Duration::from_secs(24 * 3600);
/// The bytes of each output stream that the record keeps.
const KEEP: u64 = 64 << 10;

/// Carries output to the watchers.
pub(crate) struct Tell {
    live: Arc<Live>,
    attempt: u32,
    validator: bool,
    /// The beginnings of characters whose ends have not come yet, of standard output and of standard error.
    begun: [Mutex<Vec<u8>>; 2],
}

impl Tell {
    pub(crate) fn new(live: &Arc<Live>, attempt: u32, validator: bool) -> Self {
        Self { live: live.clone(), attempt, validator, begun: Default::default() }
    }

    fn say(&self, stream: Stream, text: String) {
        if !text.is_empty() {
            self.live.events.push(Event::Output { attempt: self.attempt, stream, validator: self.validator, text });
        }
    }

    fn begun(&self, stream: Stream) -> &Mutex<Vec<u8>> {
        match stream {
            Stream::Out => &self.begun[0],
            Stream::Err => &self.begun[1],
        }
    }
}

impl Output for Tell {
    fn write(&self, stream: Stream, bytes: &[u8]) {
        let mut begun = self.begun(stream).lock();
        begun.extend_from_slice(bytes);
        let end = begun.len() - unfinished(&begun);
        let rest = begun.split_off(end);
        let whole = std::mem::replace(&mut *begun, rest);
        self.say(stream, String::from_utf8_lossy(&whole).into_owned());
    }
}

impl Drop for Tell {
    fn drop(&mut self) {
        for stream in [Stream::Out, Stream::Err] {
            let left = std::mem::take(&mut *self.begun(stream).lock());
            self.say(stream, String::from_utf8_lossy(&left).into_owned());
        }
    }
}

/// Returns how many bytes at the end may be the beginning of a UTF-8 character.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(3).position(|byte| byte & 0xC0 == 0xC0);
    let Some(back) = last.map(|at| at + 1) else { return 0 };
    let wanted = match bytes[bytes.len() - back] {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        _ => 4,
    };
    if back < wanted { back } else { 0 }
}

impl Runs {
    /// Makes attempt `n` and judges it. What goes wrong is in its record.
    pub(crate) fn attempt(&self, live: &Arc<Live>, n: u32) {
        let ended = self.try_attempt(live, n);
        let failed = match ended {
            Ok(()) => return,
            Err(e) => e,
        };
        let state = if live.is_cancelled() { State::Cancelled } else { State::Failed };
        let written = live.attempt(&self.journal, n, |attempt| {
            attempt.state = state;
            attempt.passed = Some(false);
            attempt.reason.get_or_insert(failed.to_string());
        });
        if let Err(e) = written {
            tracing::error!(attempt = n, "the end of an attempt could not be written down: {e}");
        }
    }

    fn try_attempt(&self, live: &Arc<Live>, n: u32) -> Result<()> {
        not_cancelled(live)?;
        let id = live.run.lock().id.clone();
        let spec = &live.spec;
        let name = format!("run-{id}-{n}");
        let life = Duration::from_secs(spec.seconds()).saturating_add(SPARE);
        let options = ForkOptions {
            ttl: Some(life),
            run: Some(id.clone()),
            idempotency: Some(format!("{id}/{n}/fork")),
            ..ForkOptions::default()
        };
        self.store.fork(&live.who, &spec.base, &name, &options)?;
        live.attempt(&self.journal, n, |attempt| {
            attempt.state = State::Forked;
            attempt.fork = Some(name.clone());
        })?;
        let secret = self.mint(live, n, &name, life)?;
        live.attempt(&self.journal, n, |attempt| {
            attempt.state = State::Keyed;
            attempt.key = Some(secret.id.clone());
        })?;
        let outcome = self.work(live, n, &name, &secret);
        // Dead before the verdict: nothing may change what is judged.
        self.store.delete_key(&self.root()?, &secret.id)?;
        let outcome = outcome?;
        live.attempt(&self.journal, n, |attempt| {
            attempt.state = State::Finished;
            finish(attempt, &outcome);
        })?;
        not_cancelled(live)?;
        self.judge(live, n, &name, &outcome)
    }

    /// Runs one command on a world itself (`mw exec`).
    pub(crate) fn exec(&self, live: &Arc<Live>) -> Result<()> {
        let life = Duration::from_secs(live.spec.seconds()).saturating_add(SPARE);
        let secret = self.mint(live, 1, &live.spec.base, life)?;
        live.attempt(&self.journal, 1, |attempt| {
            attempt.state = State::Keyed;
            attempt.key = Some(secret.id.clone());
        })?;
        let outcome = self.work(live, 1, &live.spec.base, &secret);
        self.store.delete_key(&self.root()?, &secret.id)?;
        let outcome = outcome?;
        live.attempt(&self.journal, 1, |attempt| {
            attempt.state = State::Finished;
            finish(attempt, &outcome);
        })?;
        self.end(live, |run| run.state = State::Finished);
        Ok(())
    }

    /// Makes the key of an attempt: editor on its fork, and nothing else.
    fn mint(&self, live: &Live, n: u32, fork: &str, life: Duration) -> Result<Secret> {
        let id = live.run.lock().id.clone();
        let request = KeyRequest {
            name: format!("run {id} attempt {n}"),
            grants: vec![Grant::new(fork, Role::Editor)],
            ttl: Some(life),
            idempotency: Some(format!("{id}/{n}/key")),
            run: Some(id),
            ..KeyRequest::default()
        };
        // An editor may run a command on its world, with a key that can do no more than its own, but makes no keys itself.
        let maker = if live.spec.exec { self.root()? } else { live.who.clone() };
        Ok(self.store.create_key(&maker, &request)?)
    }

    /// Shows the fork in a directory and runs the command on it.
    fn work(&self, live: &Arc<Live>, n: u32, fork: &str, secret: &Secret) -> Result<Outcome> {
        let who = self.store.principal(&secret.id)?;
        let session = self.store.session(&who, fork)?;
        let made = make_workspace(&session)?;
        let files = self.place.workspace.open(session.clone()).map_err(unavailable)?;
        let mut env = vec![
            ("FORK".to_owned(), fork.to_owned()),
            ("MW_ATTEMPT".to_owned(), n.to_string()),
            ("MW_RUN".to_owned(), live.run.lock().id.clone()),
        ];
        env.extend(credentials(secret));
        let spec = self.sandbox_spec(live, files.dir(), env, live.spec.words(n), true)?;
        live.attempt(&self.journal, n, |attempt| attempt.state = State::Started)?;
        let outcome = self.run_in_sandbox(live, &spec, Tell::new(live, n, false))?;
        drop(files);
        if made {
            // Made for the sandbox's sake; it stays only when something is in it.
            session.rmdir(Ino::ROOT, b"workspace").ok();
        }
        session.sync()?;
        Ok(outcome)
    }

    /// Starts a sandbox, and waits for its end in a way that `cancel` can cut short.
    pub(crate) fn run_in_sandbox(&self, live: &Arc<Live>, spec: &Spec, tell: Tell) -> Result<Outcome> {
        let typed = !tell.validator;
        let running: Arc<dyn Running> = Arc::from(self.place.backend.start(spec, Arc::new(tell))?);
        live.sandboxes.lock().push(running.clone());
        if typed {
            live.console.open(&running);
        }
        if live.is_cancelled() {
            running.kill();
        }
        let outcome = running.wait();
        live.sandboxes.lock().retain(|other| !Arc::ptr_eq(other, &running));
        Ok(outcome)
    }

    /// Says what a sandbox sees: the world at `/world`, its `workspace/` at `/workspace`. Only the attempt itself, not its
    /// validator, reaches the store and is typed to.
    pub(crate) fn sandbox_spec(
        &self,
        live: &Live,
        dir: &Path,
        mut env: Vec<(String, String)>,
        words: Vec<String>,
        attempt: bool,
    ) -> Result<Spec> {
        let asked: &RunSpec = &live.spec;
        env.extend(asked.env.iter().map(|(k, v)| (k.clone(), v.clone())));
        let mut binds = vec![
            Bind { host: dir.to_owned(), inside: "/world".into(), writable: true },
            Bind { host: dir.join("workspace"), inside: "/workspace".into(), writable: true },
        ];
        for path in &asked.read_only {
            binds.push(Bind { host: path.clone(), inside: path.clone(), writable: false });
        }
        let allow: std::result::Result<Vec<Destination>, _> = asked.allow.iter().map(|d| d.parse()).collect();
        let defaults = Limits::default();
        let limits = Limits {
            memory: asked.memory.unwrap_or(defaults.memory),
            processes: asked.processes.unwrap_or(defaults.processes),
            timeout: Some(Duration::from_secs(asked.seconds())),
            output: KEEP,
            ..defaults
        };
        Ok(Spec {
            command: words.into_iter().map(Into::into).collect(),
            env,
            binds,
            workdir: "/workspace".into(),
            endpoint: attempt.then_some(self.place.endpoint),
            inside_port: INSIDE_PORT,
            allow: if attempt { allow? } else { Vec::new() },
            limits,
            tty: attempt && asked.tty,
            stdin: attempt && asked.stdin,
            ..Spec::default()
        })
    }
}

fn not_cancelled(live: &Live) -> Result<()> {
    if live.is_cancelled() {
        return Err(Error::new(ErrorKind::Cancelled, "the run was cancelled"));
    }
    Ok(())
}

pub(crate) fn unavailable(why: String) -> Error {
    Error::new(ErrorKind::Unsupported, format!("the fork's files cannot be shown to the sandbox: {why}"))
}

fn finish(attempt: &mut crate::record::Attempt, outcome: &Outcome) {
    attempt.exit = Some(outcome.exit.status());
    attempt.milliseconds = Some(outcome.duration.as_millis() as u64);
    attempt.output = Some(text_of(outcome));
    attempt.reason = match outcome.exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("its command ended with exit code {code}")),
        Exit::Signal(signal) => Some(format!("its command was ended by signal {signal}")),
        Exit::Deadline => Some("its time was up".to_owned()),
        Exit::Cancelled => Some("it was cancelled".to_owned()),
        Exit::OutOfMemory => Some("it used up its memory".to_owned()),
    };
}

/// Returns what was kept of both streams.
pub(crate) fn text_of(outcome: &Outcome) -> String {
    let mut bytes = outcome.out.to_bytes();
    bytes.extend(outcome.err.to_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Makes `workspace/` when the world has none; returns whether it did.
pub(crate) fn make_workspace(session: &Session) -> Result<bool> {
    match session.lookup(Ino::ROOT, b"workspace") {
        Ok(attr) if attr.kind == FileType::Directory => Ok(false),
        Ok(_) => Err(Error::new(ErrorKind::NotDirectory, "`workspace` in the world is not a directory")),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let root = session.attr(Ino::ROOT)?;
            let make = Make {
                kind: FileType::Directory,
                mode: 0o755,
                uid: root.uid,
                gid: root.gid,
                rdev: 0,
                target: bytes::Bytes::new(),
            };
            session.make(Ino::ROOT, b"workspace", &make)?;
            Ok(true)
        }
        Err(e) => Err(e.into()),
    }
}

/// Returns the variables that point every S3 client inside at the store, with the key of the fork.
fn credentials(secret: &Secret) -> Vec<(String, String)> {
    let url = format!("http://127.0.0.1:{INSIDE_PORT}");
    let mut env = Vec::new();
    for name in ["AWS_ACCESS_KEY_ID", "TIGRIS_STORAGE_ACCESS_KEY_ID", "TIGRIS_ACCESS_KEY_ID"] {
        env.push((name.to_owned(), secret.id.clone()));
    }
    for name in ["AWS_SECRET_ACCESS_KEY", "TIGRIS_STORAGE_SECRET_ACCESS_KEY", "TIGRIS_SECRET_ACCESS_KEY"] {
        env.push((name.to_owned(), secret.secret.clone()));
    }
    for name in [
        "MW_ENDPOINT",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ENDPOINT_URL_IAM",
        "TIGRIS_ENDPOINT",
        "TIGRIS_STORAGE_ENDPOINT",
        "TIGRIS_MGMT_ENDPOINT",
    ] {
        env.push((name.to_owned(), url.clone()));
    }
    for (name, value) in [
        ("AWS_REGION", "auto"),
        ("AWS_DEFAULT_REGION", "auto"),
        ("TIGRIS_FORCE_PATH_STYLE", "true"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ] {
        env.push((name.to_owned(), value.to_owned()));
    }
    env
}

#[cfg(test)]
mod tests {
    use super::unfinished;

    #[test]
    fn a_character_is_not_cut() {
        let cases: [(&[u8], usize); 8] = [
            (b"", 0),
            (b"ab", 0),
            ("é".as_bytes(), 0),
            (&"é".as_bytes()[..1], 1),
            (&"x€".as_bytes()[..3], 2),
            (&"🌍".as_bytes()[..3], 3),
            ("🌍".as_bytes(), 0),
            (&[0x80, 0x80, 0x80, 0x80], 0),
        ];
        for (bytes, left) in cases {
            assert_eq!(unfinished(bytes), left, "{bytes:?}");
        }
    }
}
