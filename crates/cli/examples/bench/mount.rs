//! The mount, beside ext4 (or whatever the bench folder lies on), tmpfs, and Btrfs when a loop device can be had.

use crate::client::Server;
use crate::table::{row, title};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const FILES: usize = 20_000;

fn shell(dir: &Path, line: &str) -> f64 {
    let start = Instant::now();
    let done =
        Command::new("sh").arg("-c").arg(line).current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(done.is_ok_and(|s| s.success()), "{line} in {}", dir.display());
    start.elapsed().as_secs_f64()
}

pub fn run(server: &Server, dir: &Path) {
    title("the mount: 20,000 small files, seconds (the median of three turns)");
    let source = dir.join("source");
    for d in 0..FILES / 100 {
        std::fs::create_dir_all(source.join(format!("d{d:03}"))).unwrap();
        for f in 0..100 {
            let text = format!("file {f} of directory {d}\n").repeat(1 + (f * 7 + d) % 60);
            std::fs::write(source.join(format!("d{d:03}/f{f:02}.txt")), text).unwrap();
        }
    }
    let tar = dir.join("source.tar");
    shell(&source, &format!("tar cf {} .", tar.display()));
    server.client().create("mounted");
    let mount = dir.join("mnt");
    std::fs::create_dir_all(&mount).unwrap();
    assert!(server.command(&["mount", "mounted", mount.to_str().unwrap()]), "mw mount");
    let native = dir.join("native");
    std::fs::create_dir_all(&native).unwrap();
    let tmpfs = PathBuf::from("/dev/shm/mw-bench-tmpfs");
    let _ = std::fs::remove_dir_all(&tmpfs);
    std::fs::create_dir_all(&tmpfs).unwrap();
    let mut places = vec![("mount", mount.clone()), ("disk", native), ("tmpfs", tmpfs.clone())];
    let btrfs = dir.join("btrfs");
    let image = format!(
        "mkdir -p {0} && truncate -s 2G {0}.img && mkfs.btrfs -q {0}.img && mount -o loop {0}.img {0}",
        btrfs.display()
    );
    let made = Command::new("sh").arg("-c").arg(&image).stdout(Stdio::null()).output();
    let has_btrfs = made.as_ref().is_ok_and(|made| made.status.success());
    if has_btrfs {
        places.push(("btrfs", btrfs.clone()));
    } else {
        let why = made
            .map_or_else(|e| e.to_string(), |made| String::from_utf8_lossy(&made.stderr).trim().replace('\n', "; "));
        row("btrfs", "not measured", &format!("it needs root, mkfs.btrfs (btrfs-progs) and a loop device: {why}"));
    }
    let steps: [(&str, String); 5] = [
        ("untar", format!("mkdir t && tar xf {} -C t", tar.display())),
        (
            "git init, add, commit",
            "cd t && git init -q . && git add -A && git -c gc.auto=0 -c maintenance.auto=false -c user.name=a -c user.email=a@b commit -qm x".to_owned(),
        ),
        ("git status", "cd t && git status --porcelain".to_owned()),
        ("read all", "cat t/d*/*.txt".to_owned()),
        ("rm -r", "rm -r t".to_owned()),
    ];
    let mut times = vec![vec![Vec::new(); places.len()]; steps.len()];
    for _ in 0..3 {
        for (p, (_, place)) in places.iter().enumerate() {
            for (s, (_, line)) in steps.iter().enumerate() {
                times[s][p].push(shell(place, line));
            }
        }
    }
    for (s, (name, _)) in steps.iter().enumerate() {
        let medians: Vec<f64> = times[s]
            .iter()
            .map(|t| {
                let mut t = t.clone();
                t.sort_by(f64::total_cmp);
                t[1]
            })
            .collect();
        let beside: Vec<String> = places[1..]
            .iter()
            .zip(&medians[1..])
            .map(|((name, _), m)| format!("{name} {m:.2} s ({:.1} x)", medians[0] / m))
            .collect();
        row(name, &format!("{:.2} s", medians[0]), &beside.join(", "));
    }
    server.command(&["unmount", mount.to_str().unwrap()]);
    if has_btrfs {
        let _ = Command::new("umount").arg(&btrfs).status();
    }
    let _ = std::fs::remove_dir_all(&tmpfs);
}
