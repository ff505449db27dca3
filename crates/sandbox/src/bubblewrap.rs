//! The backend over Linux namespaces, through bubblewrap. Works for an ordinary user as for root; for both, what runs inside
//! has a user namespace of its own and no capability.
//!
//! It knows what is shown inside (`plan`, `host`), not how the sandbox is started or watched.

mod host;
mod plan;

use crate::handle;
use crate::launch::{Build, Launch};
use crate::proxy::{Resolve, SystemResolver};
use crate::wire::{Blueprint, Task};
use crate::{Backend, Discard, Error, Exit, Output, Result, Running, Spec, seccomp};
use host::{Features, Host};
use mw_env::Env;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where bubblewrap is looked for. Not in `PATH`: a directory that somebody put there must not become the builder of walls.
const PROGRAMS: &[&str] = &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

/// Runs commands in namespaces made by bubblewrap.
#[derive(Debug, Clone)]
pub struct Bubblewrap {
    env: Env,
    init: PathBuf,
    init_arguments: Vec<String>,
    program: Option<PathBuf>,
    resolve: Arc<dyn Resolve>,
}

impl Bubblewrap {
    /// Makes a backend. `init` is a program that calls [`crate::init_main`] when its one argument is `sandbox-init`, and that
    /// runs with the libraries in `/usr` alone.
    pub fn new(init: PathBuf) -> Self {
        Self {
            // The kernel waits for the deadlines, so the clock must be its own.
            env: Env::real(),
            init,
            init_arguments: vec![String::from("sandbox-init")],
            program: None,
            resolve: Arc::new(SystemResolver),
        }
    }

    /// Starts `init` with these arguments instead.
    #[must_use]
    pub fn with_init_arguments<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.init_arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Uses this bubblewrap.
    #[must_use]
    pub fn with_program(mut self, program: PathBuf) -> Self {
        self.program = Some(program);
        self
    }

    /// Resolves the names of allowed destinations by `resolve`.
    #[must_use]
    pub fn with_resolver(mut self, resolve: Arc<dyn Resolve>) -> Self {
        self.resolve = resolve;
        self
    }

    fn builder(&self) -> Result<(PathBuf, Features)> {
        let missing = || {
            let remedy = "install the package `bubblewrap` (0.5 or newer)";
            match &self.program {
                Some(program) => Error::Unavailable(format!("{} cannot be run; {remedy}", program.display())),
                None => Error::Unavailable(format!("bubblewrap was not found; {remedy}")),
            }
        };
        let found = || PROGRAMS.iter().map(PathBuf::from).find(|p| p.exists());
        let program = self.program.clone().or_else(found).ok_or_else(missing)?;
        let features = Features::of(&program).ok_or_else(missing)?;
        Ok((program, features))
    }
}

impl Backend for Bubblewrap {
    fn start(&self, spec: &Spec, output: Arc<dyn Output>) -> Result<Box<dyn Running>> {
        plan::check(spec)?;
        let (program, features) = self.builder()?;
        let filter = seccomp::program();
        let steps = plan::plan(spec, &Host::look(), &features, &self.init, &self.init_arguments, filter);
        let build = Build {
            stage: self.init.clone(),
            stage_arguments: self.init_arguments.clone(),
            blueprint: Blueprint { program: program.into_os_string().into_vec(), steps },
        };
        let launch = Launch {
            env: self.env.clone(),
            build,
            task: task(spec),
            own_env: spec.env.clone(),
            endpoint: spec.endpoint,
            inside_port: spec.inside_port,
            allow: spec.allow.clone(),
            resolve: Arc::clone(&self.resolve),
            limits: spec.limits.clone(),
            tty: spec.tty,
            stdin: spec.stdin,
        };
        handle::start(launch, output).map_err(explain)
    }

    fn probe(&self) -> Result<()> {
        let mut spec = Spec { command: vec!["true".into()], ..Spec::default() };
        spec.limits.timeout = Some(Duration::from_secs(30));
        let outcome = self.start(&spec, Arc::new(Discard))?.wait();
        match outcome.exit {
            Exit::Code(0) => Ok(()),
            other => Err(Error::Setup(format!("a trial of `true` ended with {other:?}: {}", outcome.err.to_text()))),
        }
    }
}

/// What every program expects to find in its environment. The caller's variables come over these.
fn task(spec: &Spec) -> Task {
    let usual = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", plan::HOME),
        ("USER", plan::USER),
        ("LOGNAME", plan::USER),
        ("SHELL", "/bin/sh"),
        ("TMPDIR", "/tmp"),
        ("LANG", "C.UTF-8"),
    ];
    let usual = usual.into_iter().chain(spec.tty.then_some(("TERM", "xterm-256color")));
    Task {
        command: spec.command.iter().map(|a| a.as_bytes().to_vec()).collect(),
        env: usual.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        workdir: Path::new(&spec.workdir).as_os_str().as_bytes().to_vec(),
        data: 0,
        processes: 0,
    }
}

/// Adds the remedy where the builder's own words tell the cause but not what to do.
fn explain(error: Error) -> Error {
    let Error::Setup(message) = &error else { return error };
    let refused = ["new namespace", "uid map", "userns", "Creating new", "clone"].iter().any(|w| message.contains(w));
    if !refused {
        return error;
    }
    Error::Unavailable(format!(
        "{message}. This system keeps its users from making namespaces; allow it with `sysctl -w \
         kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu), `kernel.unprivileged_userns_clone=1` (Debian) or a \
         `user.max_user_namespaces` above 0, or in a container by its security options"
    ))
}
