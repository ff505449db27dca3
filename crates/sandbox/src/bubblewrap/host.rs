//! What of the host a sandbox shows, found by looking: the system's programs, the few files of `/etc` that they read, and the
//! parts of `/proc` that must not be as they are.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files and directories of `/etc` that programs need and that hold no secret. A trailing `*` stands for any end.
const ETC: &[&str] = &[
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "fonts",
    "gai.conf",
    "inputrc",
    "java*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "magic.mime",
    "maven",
    "mime.types",
    "os-release",
    "perl",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "protocols",
    "python3*",
    "services",
    "shells",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
    "xdg",
];

/// Top-level directories with programs. On most systems all but the first are links into it.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// Parts of `/proc` that the machine's root user may write to by owning them, without any capability: a sandbox that root
/// starts would otherwise own the machine (`/proc/sys/kernel/core_pattern` names a program that the kernel runs).
const PROC_READ_ONLY: &[&str] =
    &["acpi", "bus", "driver", "dynamic_debug", "fs", "irq", "mtrr", "pressure", "sys", "sysrq-trigger", "tty"];

/// Parts of `/proc` that tell about the machine, its memory or its other tenants.
const PROC_HIDDEN: &[&str] = &[
    "asound",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "pagetypeinfo",
    "sched_debug",
    "scsi",
    "slabinfo",
    "timer_list",
    "timer_stats",
    "vmallocinfo",
];

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// System directories that are real.
    pub(super) system: Vec<PathBuf>,
    /// System directories that are links, and where they lead.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
    /// Paths beneath `/etc` to show.
    pub(super) etc: Vec<PathBuf>,
    /// Paths beneath `/proc` to make read-only.
    pub(super) proc_read_only: Vec<PathBuf>,
    /// Paths beneath `/proc` to hide, and whether each is a directory.
    pub(super) proc_hidden: Vec<(PathBuf, bool)>,
}

impl Host {
    /// Looks at this machine.
    pub(super) fn look() -> Self {
        let mut host = Self::default();
        for dir in SYSTEM.iter().map(PathBuf::from) {
            match fs::read_link(&dir) {
                Ok(target) => host.links.push((dir, target)),
                Err(_) if dir.is_dir() => host.system.push(dir),
                Err(_) => {}
            }
        }
        host.etc = ETC.iter().flat_map(|pattern| matching(Path::new("/etc"), pattern)).collect();
        let existing =
            |names: &[&str]| names.iter().map(|n| Path::new("/proc").join(n)).filter(|p| p.exists()).collect();
        host.proc_read_only = existing(PROC_READ_ONLY);
        let hidden: Vec<PathBuf> = existing(PROC_HIDDEN);
        host.proc_hidden = hidden.into_iter().map(|p| (p.clone(), p.is_dir())).collect();
        host
    }
}

fn matching(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    let Some(start) = pattern.strip_suffix('*') else {
        return Some(dir.join(pattern)).filter(|p| p.exists()).into_iter().collect();
    };
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<_> =
        entries.filter(|e| e.file_name().to_string_lossy().starts_with(start)).map(|e| e.path()).collect();
    found.retain(|p| p.exists());
    found.sort();
    found
}

/// What this machine's bubblewrap can do.
#[derive(Debug, Clone, Default)]
pub(super) struct Features {
    /// Binds by file descriptor (`--bind-fd`, 0.10 and backports).
    pub(super) bind_fd: bool,
    /// Shuts user namespaces (`--disable-userns`, 0.8), which it cannot do when it is set-user-id.
    pub(super) disable_userns: bool,
    /// Bounds its tmpfs (`--size`, 0.7).
    pub(super) size: bool,
}

impl Features {
    /// Asks `program`. `None`: it cannot be run.
    pub(super) fn of(program: &Path) -> Option<Self> {
        let help = Command::new(program).arg("--help").env_clear().output().ok()?;
        let help = String::from_utf8_lossy(&help.stdout).into_owned() + &String::from_utf8_lossy(&help.stderr);
        let set_user_id = fs::metadata(program).is_ok_and(|m| m.permissions().mode() & 0o4000 != 0);
        Some(Self {
            bind_fd: help.contains("--ro-bind-fd "),
            disable_userns: help.contains("--disable-userns") && !set_user_id,
            size: help.contains("--size "),
        })
    }
}
