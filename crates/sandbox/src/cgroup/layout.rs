//! Where the control groups of this process are, read from `/proc` (cgroups(7), proc_pid_mountinfo(5)). It changes nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// The two generations of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hierarchy {
    /// Version 2: one tree.
    Unified,
    /// Version 1: a tree for each controller.
    Legacy,
}

/// The groups a process is in, and where their trees are mounted.
#[derive(Debug)]
pub(super) struct Layout {
    groups: String,
    mounts: String,
}

impl Layout {
    /// Reads the layout of this process; empty where there is none.
    pub(super) fn of_this_process() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self { groups: read("/proc/self/cgroup"), mounts: read("/proc/self/mountinfo") }
    }

    /// Returns the directories in the unified hierarchy under which a group may be made: the process's own, then the one
    /// above.
    pub(super) fn unified(&self) -> Vec<PathBuf> {
        let Some(path) = self.groups.lines().find_map(|l| l.strip_prefix("0::")) else { return Vec::new() };
        let Some((mount, root)) = self.mount("cgroup2", None) else { return Vec::new() };
        let Some(own) = place(mount, root, path) else { return Vec::new() };
        let above = own.parent().filter(|p| p.starts_with(mount)).map(Path::to_owned);
        [Some(own), above].into_iter().flatten().collect()
    }

    /// Returns the process's own directory in the version 1 hierarchy of `controller`.
    pub(super) fn legacy(&self, controller: &str) -> Option<PathBuf> {
        let path = self.groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            parts.next()?.split(',').any(|c| c == controller).then(|| parts.next())?
        })?;
        let (mount, root) = self.mount("cgroup", Some(controller))?;
        place(mount, root, path)
    }

    /// Finds a mount by type and super-block option: its mount point, and which directory of the tree it shows.
    fn mount(&self, kind: &str, option: Option<&str>) -> Option<(&str, &str)> {
        self.mounts.lines().find_map(|line| {
            let (front, back) = line.split_once(" - ")?;
            let mut front = front.split(' ').skip(3);
            let (root, point) = (front.next()?, front.next()?);
            let mut back = back.split(' ');
            let fits = back.next()? == kind
                && option.is_none_or(|o| back.next_back().is_some_and(|all| all.split(',').any(|x| x == o)));
            fits.then_some((point, root))
        })
    }
}

/// Returns where the group `path` lies when `root` is shown at `mount`.
fn place(mount: &str, root: &str, path: &str) -> Option<PathBuf> {
    let beneath = Path::new(path).strip_prefix(root).ok()?;
    // A process in a group outside its cgroup namespace sees `..` here; nothing can be made there.
    let inside = !beneath.components().any(|c| matches!(c, std::path::Component::ParentDir));
    inside.then(|| Path::new(mount).join(beneath))
}

#[cfg(test)]
mod tests {
    //! Real layouts, as text.

    use super::*;

    fn layout(groups: &str, mounts: &str) -> Layout {
        Layout { groups: groups.into(), mounts: mounts.into() }
    }

    #[test]
    fn a_pure_unified_machine() {
        let l = layout(
            "0::/user.slice/app.slice/x.scope\n",
            "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        let base = Path::new("/sys/fs/cgroup/user.slice/app.slice");
        assert_eq!(l.unified(), [base.join("x.scope"), base.to_owned()]);
        assert_eq!(l.legacy("memory"), None);
    }

    #[test]
    fn the_root_group_has_nothing_above() {
        let l = layout("0::/\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        assert_eq!(l.unified(), [Path::new("/sys/fs/cgroup")]);
    }

    #[test]
    fn a_hybrid_machine_and_a_container_that_sees_a_part() {
        let groups = "8:pids:/\n4:cpu,memory:/box/abc\n0::/../other\n";
        let mounts = "1 2 0:3 /box /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n\
                      1 2 0:4 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      1 2 0:5 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let l = layout(groups, mounts);
        assert_eq!(l.legacy("memory").unwrap(), Path::new("/sys/fs/cgroup/memory/abc"));
        assert_eq!(l.legacy("pids").unwrap(), Path::new("/sys/fs/cgroup/pids"));
        assert_eq!(l.unified(), Vec::<PathBuf>::new());
    }
}
