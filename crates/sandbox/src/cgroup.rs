//! Control groups: the limits that hold for a sandbox as a whole, where the caller may make groups.
//!
//! Groups are made beneath the caller's own, so that whatever bounds the caller bounds its sandboxes too; in the unified
//! hierarchy, where a group with processes cannot have limited children, beside it. What cannot be made is left to
//! resource limits, and said.

mod layout;

use crate::spec::{Enforcer, Enforcers, Limits};
use layout::{Hierarchy, Layout};
use mw_env::Env;
use rustix::process::Pid;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What the name of every group begins with; the process id of its maker and a number follow.
const PREFIX: &str = "manyworlds-";

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The groups of one sandbox. Removed when dropped, by when they must be empty.
#[derive(Debug)]
pub(crate) struct Groups {
    env: Env,
    dirs: Vec<PathBuf>,
    memory: Option<(Hierarchy, PathBuf)>,
    processes: Option<(Hierarchy, PathBuf)>,
    limits: Limits,
}

impl Groups {
    /// Makes the groups that can be made for `limits`.
    pub(crate) fn new(limits: &Limits, env: &Env) -> Self {
        let mut groups =
            Self { env: env.clone(), dirs: Vec::new(), memory: None, processes: None, limits: limits.clone() };
        if limits.memory == 0 && limits.processes == 0 {
            return groups;
        }
        let layout = Layout::of_this_process();
        for parent in layout.unified() {
            if let Err(e) = groups.join_unified(&parent) {
                tracing::debug!(parent = %parent.display(), error = %e, "no group here");
            }
        }
        for (controller, parent) in ["memory", "pids"].iter().filter_map(|c| Some((*c, layout.legacy(c)?))) {
            if let Err(e) = groups.join_legacy(controller, &parent) {
                tracing::debug!(parent = %parent.display(), error = %e, "no group here");
            }
        }
        groups
    }

    /// Returns who holds each limit. What no group holds is left to the resource limits of process 1.
    pub(crate) fn enforcers(&self) -> Enforcers {
        let by = |group: &Option<(Hierarchy, PathBuf)>, wanted: bool, otherwise| match group {
            Some((Hierarchy::Unified, _)) => Enforcer::CgroupV2,
            Some((Hierarchy::Legacy, _)) => Enforcer::CgroupV1,
            None if wanted => otherwise,
            None => Enforcer::Nobody,
        };
        // The kernel exempts the machine's root user from its limit on processes, in whatever namespace.
        let processes = if rustix::process::getuid().is_root() { Enforcer::Nobody } else { Enforcer::Rlimit };
        Enforcers {
            memory: by(&self.memory, self.limits.memory > 0, Enforcer::Rlimit),
            processes: by(&self.processes, self.limits.processes > 0, processes),
        }
    }

    /// Puts `pid`, and what it will start, under the limits.
    pub(crate) fn add(&self, pid: Pid) -> io::Result<()> {
        self.dirs.iter().try_for_each(|dir| fs::write(dir.join("cgroup.procs"), pid.as_raw_nonzero().to_string()))
    }

    /// Kills every member at once, where the kernel offers that.
    pub(crate) fn kill(&self) {
        for dir in &self.dirs {
            let _ = fs::OpenOptions::new().write(true).open(dir.join("cgroup.kill")).map(|mut file| {
                use std::io::Write;
                let _ = file.write_all(b"1");
            });
        }
    }

    /// Says whether the kernel killed a member for want of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let Some((hierarchy, dir)) = &self.memory else { return false };
        let file = match hierarchy {
            Hierarchy::Unified => "memory.events",
            Hierarchy::Legacy => "memory.oom_control",
        };
        let text = fs::read_to_string(dir.join(file)).unwrap_or_default();
        text.lines().any(|l| l.strip_prefix("oom_kill ").is_some_and(|n| n.trim() != "0"))
    }

    /// Returns the most bytes that the members used at once.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let (hierarchy, dir) = self.memory.as_ref()?;
        let file = match hierarchy {
            Hierarchy::Unified => "memory.peak",
            Hierarchy::Legacy => "memory.max_usage_in_bytes",
        };
        fs::read_to_string(dir.join(file)).ok()?.trim().parse().ok()
    }

    fn join_unified(&mut self, parent: &Path) -> io::Result<()> {
        let want_memory = self.limits.memory > 0 && self.memory.is_none();
        let want_processes = self.limits.processes > 0 && self.processes.is_none();
        if !want_memory && !want_processes {
            return Ok(());
        }
        let offered = fs::read_to_string(parent.join("cgroup.controllers"))?;
        let has = |controller: &str| offered.split_whitespace().any(|c| c == controller);
        for controller in ["memory", "pids"].into_iter().filter(|c| has(c)) {
            // Fails while the parent has processes of its own, unless somebody has done it before.
            let _ = fs::write(parent.join("cgroup.subtree_control"), format!("+{controller}"));
        }
        let given = fs::read_to_string(parent.join("cgroup.subtree_control"))?;
        let gives = |controller: &str| given.split_whitespace().any(|c| c == controller);
        let (want_memory, want_processes) = (want_memory && gives("memory"), want_processes && gives("pids"));
        if !want_memory && !want_processes {
            return Ok(());
        }
        let dir = self.make(parent)?;
        if want_memory {
            fs::write(dir.join("memory.max"), self.limits.memory.to_string())?;
            // Swap would only put the end off. Killed together, the members leave nobody waiting for a missing half.
            let _ = fs::write(dir.join("memory.swap.max"), "0");
            let _ = fs::write(dir.join("memory.oom.group"), "1");
            self.memory = Some((Hierarchy::Unified, dir.clone()));
        }
        if want_processes {
            fs::write(dir.join("pids.max"), self.limits.processes.to_string())?;
            self.processes = Some((Hierarchy::Unified, dir));
        }
        Ok(())
    }

    fn join_legacy(&mut self, controller: &str, parent: &Path) -> io::Result<()> {
        match controller {
            "memory" if self.limits.memory > 0 && self.memory.is_none() => {
                let dir = self.make(parent)?;
                fs::write(dir.join("memory.limit_in_bytes"), self.limits.memory.to_string())?;
                // Memory and swap together; absent where swap is not counted.
                let both = dir.join("memory.memsw.limit_in_bytes");
                if both.exists() {
                    fs::write(both, self.limits.memory.to_string())?;
                }
                self.memory = Some((Hierarchy::Legacy, dir));
            }
            "pids" if self.limits.processes > 0 && self.processes.is_none() => {
                let dir = self.make(parent)?;
                fs::write(dir.join("pids.max"), self.limits.processes.to_string())?;
                self.processes = Some((Hierarchy::Legacy, dir));
            }
            _ => {}
        }
        Ok(())
    }

    /// Makes a fresh group in `parent`, after clearing away those of processes that died with theirs.
    fn make(&mut self, parent: &Path) -> io::Result<PathBuf> {
        sweep(parent);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let dir = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match fs::create_dir(&dir) {
                Ok(()) => {
                    self.dirs.push(dir.clone());
                    return Ok(dir);
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for dir in &self.dirs {
            // A group stays busy for a moment after its last member was reaped.
            let gone = (0..50).any(|_| {
                let gone = fs::remove_dir(dir).is_ok();
                if !gone {
                    self.env.sleep(Duration::from_millis(2));
                }
                gone
            });
            if !gone {
                tracing::warn!(group = %dir.display(), "a sandbox's group stays behind");
            }
        }
    }
}

/// Removes the groups of makers that are gone. A group with members cannot be removed, so nothing alive is touched.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|n| n.strip_prefix(PREFIX)).and_then(|n| n.split('-').next());
        if maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}
