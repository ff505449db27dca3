//! From a [`Spec`] and what the host has to bubblewrap's arguments: a pure function. What is not written here is not in the
//! sandbox.

use super::host::{Features, Host};
use crate::spec::{Bind, Spec};
use crate::wire::Step;
use crate::{Error, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Where the inner half lies inside.
pub(super) const INIT: &str = "/run/mw/init";
/// The home directory inside: empty, bounded, gone with the sandbox.
pub(super) const HOME: &str = "/home/agent";
/// The user's name inside.
pub(super) const USER: &str = "agent";

/// Refuses what no sandbox can be made of.
pub(super) fn check(spec: &Spec) -> Result<()> {
    let invalid = |message: String| Err(Error::Invalid(message));
    if spec.command.first().is_none_or(|program| program.is_empty()) {
        return invalid(String::from("no command to run"));
    }
    if spec.command.iter().any(|a| a.as_bytes().contains(&0)) {
        return invalid(String::from("an argument contains a NUL byte"));
    }
    if let Some((name, _)) = spec.env.iter().find(|(n, v)| n.is_empty() || n.contains(['=', '\0']) || v.contains('\0'))
    {
        return invalid(format!("`{}` cannot be an environment variable", name.escape_debug()));
    }
    if spec.endpoint.is_some() && spec.inside_port == 0 {
        return invalid(String::from("the store needs a port inside the sandbox"));
    }
    // It is written to `/etc/hosts`, so it must be one word.
    let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if spec.hostname.is_empty() || spec.hostname.len() > 64 || !spec.hostname.chars().all(fit) {
        return invalid(format!("`{}` is not a host name of 1 to 64 letters and digits", spec.hostname.escape_debug()));
    }
    if !spec.workdir.is_absolute() {
        return invalid(format!("the working directory {} is not absolute", spec.workdir.display()));
    }
    spec.binds.iter().try_for_each(check_bind)
}

fn check_bind(bind: &Bind) -> Result<()> {
    let inside = &bind.inside;
    let plain = inside.is_absolute() && inside.components().skip(1).all(|c| matches!(c, Component::Normal(_)));
    // Over these, a bind would undo what keeps the sandbox shut.
    let kept =
        ["/proc", "/dev", "/sys", "/run/mw"].iter().any(|k| inside.starts_with(k) || Path::new(k).starts_with(inside));
    if !plain || kept || inside.as_os_str().as_bytes().contains(&0) {
        return Err(Error::Invalid(format!("nothing can be shown at {} in a sandbox", inside.display())));
    }
    if !bind.host.is_absolute() || bind.host.as_os_str().as_bytes().contains(&0) {
        return Err(Error::Invalid(format!("{} is not an absolute path", bind.host.display())));
    }
    Ok(())
}

/// The arguments as they grow.
struct Plan<'a> {
    steps: Vec<Step>,
    spec: &'a Spec,
    features: &'a Features,
}

/// Returns the arguments that make the sandbox of `spec` and run `init` with `init_arguments` in it.
pub(super) fn plan(
    spec: &Spec,
    host: &Host,
    features: &Features,
    init: &Path,
    init_arguments: &[String],
    filter: Option<Vec<u8>>,
) -> Vec<Step> {
    let mut plan = Plan { steps: Vec::new(), spec, features };
    plan.namespaces();
    plan.system(host);
    plan.etc(host);
    plan.kernel(host);
    plan.scratch();
    plan.bind("--ro-bind", init, Path::new(INIT));
    plan.binds();
    // Last, when every mount point exists: the root itself would otherwise be memory without a bound.
    plan.text(["--remount-ro", "/", "--chdir", "/"]);
    if let Some(filter) = filter {
        plan.text(["--seccomp"]);
        plan.steps.push(Step::Data(filter));
    }
    plan.text(["--", INIT]);
    plan.text(init_arguments);
    plan.steps
}

impl Plan<'_> {
    fn text<T: AsRef<OsStr>>(&mut self, words: impl IntoIterator<Item = T>) {
        self.steps.extend(words.into_iter().map(|w| Step::Text(w.as_ref().as_bytes().to_vec())));
    }

    fn bind(&mut self, how: &str, host: &Path, inside: &Path) {
        self.text([OsStr::new(how), host.as_os_str(), inside.as_os_str()]);
    }

    fn data(&mut self, inside: &str, content: String) {
        self.text(["--perms", "0444", "--ro-bind-data"]);
        self.steps.push(Step::Data(content.into_bytes()));
        self.text([inside]);
    }

    fn tmpfs(&mut self, mode: &str, inside: &str) {
        if self.features.size && self.spec.limits.scratch > 0 {
            self.text(["--size", &self.spec.limits.scratch.to_string()]);
        }
        self.text(["--perms", mode, "--tmpfs", inside]);
    }

    fn namespaces(&mut self) {
        // The user namespace also when root asks: inside, nobody has a capability, and no one else's files are his.
        self.text(["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]);
        self.text(["--unshare-cgroup", "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"]);
        self.text(["--cap-drop", "ALL"]);
        if self.features.disable_userns {
            self.text(["--disable-userns"]);
        }
        let (uid, gid) = (self.spec.uid.to_string(), self.spec.gid.to_string());
        self.text(["--uid", &uid, "--gid", &gid, "--hostname", &self.spec.hostname]);
    }

    fn system(&mut self, host: &Host) {
        for dir in &host.system {
            self.bind("--ro-bind", dir, dir);
        }
        for (link, target) in &host.links {
            self.bind("--symlink", target, link);
        }
    }

    fn etc(&mut self, host: &Host) {
        for path in &host.etc {
            self.bind("--ro-bind", path, path);
        }
        let Spec { uid, gid, hostname, .. } = self.spec;
        let root = if *uid == 0 { "" } else { "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n" };
        let nobody = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
        self.data("/etc/passwd", format!("{root}{USER}:x:{uid}:{gid}::{HOME}:/bin/sh\n{nobody}"));
        let root = if *gid == 0 { "" } else { "root:x:0:\n" };
        self.data("/etc/group", format!("{root}{USER}:x:{gid}:\nnogroup:x:65534:\n"));
        self.data("/etc/hosts", format!("127.0.0.1 localhost {hostname}\n::1 localhost\n"));
        self.data("/etc/hostname", format!("{hostname}\n"));
        self.data("/etc/resolv.conf", String::new());
        self.data("/etc/nsswitch.conf", String::from("passwd: files\ngroup: files\nhosts: files\nservices: files\n"));
    }

    fn kernel(&mut self, host: &Host) {
        self.text(["--proc", "/proc"]);
        for path in &host.proc_read_only {
            self.bind("--ro-bind", path, path);
        }
        for (path, is_dir) in &host.proc_hidden {
            if *is_dir {
                self.text([OsStr::new("--tmpfs"), path.as_os_str(), OsStr::new("--remount-ro"), path.as_os_str()]);
            } else {
                self.bind("--ro-bind", Path::new("/dev/null"), path);
            }
        }
        self.text(["--dev", "/dev"]);
        self.tmpfs("1777", "/dev/shm");
        self.text(["--remount-ro", "/dev"]);
    }

    fn scratch(&mut self) {
        self.tmpfs("1777", "/tmp");
        self.tmpfs("0700", HOME);
        self.text(["--dir", "/run", "--dir", "/var", "--dir", "/opt", "--dir", "/srv", "--dir", "/mnt"]);
        self.text(["--symlink", "../tmp", "/var/tmp", "--symlink", "../run", "/var/run"]);
    }

    fn binds(&mut self) {
        for bind in &self.spec.binds {
            // A bind beneath a writable one, such as a world's `workspace`, is named by whoever wrote there last.
            let base = self.spec.binds.iter().filter(|b| b.writable && b.host != bind.host);
            let base = base.filter_map(|b| Some((b, bind.host.strip_prefix(&b.host).ok()?)));
            let how = if bind.writable { "--bind" } else { "--ro-bind" };
            // The outermost such base is the one that nobody inside can have replaced.
            match base.min_by_key(|(b, _)| b.host.components().count()) {
                None => self.bind(how, &bind.host, &bind.inside),
                Some((base, rest)) => {
                    let by_path = !self.features.bind_fd;
                    let how = if by_path { how.to_owned() } else { format!("{how}-fd") };
                    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
                    self.text([how]);
                    self.steps.push(Step::Beneath { base: bytes(&base.host), rest: bytes(rest), by_path });
                    self.text([&bind.inside]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
