//! Measures the mount beside the disk beneath it, memory, other FUSE file systems, and the floor: `make bench-fs`.
//!
//! Every case runs on one file system after the other, for some rounds, so that what else the machine does falls on all of them; the
//! table shows medians, and how many times the floor's and the disk's figure that is. `--help` lists the options.

#![allow(clippy::disallowed_methods, reason = "a stopwatch and a file system for comparison, not a part of the store")]

mod beds;
mod cases;
mod engine;
mod floor;
mod forks;
mod programs;
mod tree;

use beds::Bed;
use cases::{CASES, Scale, Unit};
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static REQUESTS: AtomicU64 = AtomicU64::new(0);

const USAGE: &str = "\
usage: bench_fs [OPTION VALUE]...

  --files N      files of the tree (20000)
  --rounds N     how often every case is measured (3)
  --calls N      how often a call is repeated (10000)
  --large MIB    the large file (1024)
  --wide N       entries of one directory (100000)
  --beds A,B     these file systems alone: manyworlds, floor, disk, tmpfs, btrfs, bindfs, fuse-overlayfs, rclone; and writeback, which is
                 manyworlds with write-back and measured only when it is named
  --cases A,B    these cases alone, by their names in the table
  --disk DIR     where to work
  --seed N       of the tree
  --threads N    that answer requests; 0: as many as there are processors
  --engine N     measures the verbs with N files, without a kernel
  --forks N      measures forks of a mount straight after N files were written
";

/// What was measured of one case on one bed.
#[derive(Default)]
struct Figures {
    figures: Vec<f64>,
    /// Seconds of this process's processor time.
    busy: Vec<f64>,
    requests: u64,
}

/// Makes a directory to work in that other users get through: PostgreSQL runs as one of its own.
pub fn work_dir(under: &Path) -> io::Result<tempfile::TempDir> {
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o711)).tempdir_in(under)
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [what, name, calls, large] = &args[..]
        && what == "--do"
    {
        let number = |text: &String| text.parse().map_err(io::Error::other);
        println!("{}", cases::act(name, number(calls)?, number(large)?)?);
        return Ok(());
    }
    let is_option = |arg: &str| USAGE.lines().any(|line| line.trim_start().split(' ').next() == Some(arg));
    let known = args.chunks(2).all(|pair| pair.len() == 2 && pair[0].starts_with("--") && is_option(&pair[0]));
    if !known {
        print!("{USAGE}");
        let asked = args.iter().any(|arg| arg == "--help" || arg == "-h");
        return if asked { Ok(()) } else { Err(io::Error::other("what is asked for is not understood")) };
    }
    let option = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1)).cloned();
    let number = |name: &str, default: usize| option(name).and_then(|n| n.parse().ok()).unwrap_or(default);
    let chosen =
        |list: &Option<String>, name: &str| list.as_ref().is_none_or(|list| list.split(',').any(|n| n == name));

    let under = option("--disk").map_or_else(std::env::temp_dir, PathBuf::from);
    let disk = work_dir(&under)?;
    if let Some(files) = option("--engine").and_then(|n| n.parse().ok()) {
        return engine::measure(disk.path(), files);
    }
    if let Some(files) = option("--forks").and_then(|n| n.parse().ok()) {
        return forks::measure(disk.path(), files);
    }
    let files = number("--files", 20_000);
    println!("{files} files; work in {}", disk.path().display());
    let trees = tree::make(disk.path(), files, number("--seed", 1) as u64)?;
    let scale = Scale {
        trees: &trees,
        calls: number("--calls", 10_000),
        large: number("--large", 1024),
        wide: number("--wide", 100_000),
    };
    let only = option("--beds");
    let named = |name: &str| chosen(&only, name) && (only.is_some() || name != beds::WRITEBACK);
    let beds = beds::all(disk.path(), &named, number("--threads", 0), &REQUESTS);
    let only = option("--cases");

    let mut table: HashMap<(&str, &str), Figures> = HashMap::new();
    for _ in 0..number("--rounds", 3) {
        for case in CASES.iter().filter(|case| chosen(&only, case.name)) {
            for bed in &beds {
                let (busy, asked) = (busy(), REQUESTS.load(Ordering::Relaxed));
                let figure = case.measure(&bed.dir, &scale);
                let figure = figure.unwrap_or_else(|e| {
                    println!("no figure: {} on {}: {e}", case.name, bed.name);
                    f64::NAN
                });
                let row = table.entry((case.name, &bed.name)).or_default();
                row.figures.push(figure);
                row.busy.push(self::busy() - busy);
                row.requests = REQUESTS.load(Ordering::Relaxed) - asked;
            }
        }
    }
    let cases: Vec<_> = CASES.iter().filter(|case| chosen(&only, case.name)).collect();
    print(&table, &cases, &beds);
    println!("memory of this process at most: {} MiB", peak_mib());
    Ok(())
}

fn print(table: &HashMap<(&str, &str), Figures>, cases: &[&cases::Case], beds: &[Bed]) {
    let mut head = format!("{:<16}", "");
    beds.iter().for_each(|bed| head += &format!("{:>15}", bed.name));
    let first = beds.first().map(|bed| bed.name.as_str()).unwrap_or_default();
    println!("\n{head}   {first}: x floor, x disk; busy s; requests of the floor");
    for case in cases {
        let unit = match case.unit {
            Unit::Seconds => "s",
            Unit::Micros => "us",
            Unit::Rate => "MiB/s",
            Unit::Often => "1/s",
        };
        let mut line = format!("{:<16}", case.name);
        let figure = |bed: &str| table.get(&(case.name, bed)).map(|row| median(&row.figures));
        for bed in beds {
            line += &figure(&bed.name).map_or_else(|| " ".repeat(15), |f| format!("{f:>9.3} {unit:<5}"));
        }
        let times = |bed: &str| match (figure(first), figure(bed)) {
            (Some(own), Some(other)) => format!("{:5.2}", own / other),
            _ => "    -".to_owned(),
        };
        let disk = beds.iter().find(|bed| bed.dir.ends_with("plain")).map(|bed| bed.name.as_str()).unwrap_or_default();
        line += &format!("   {} {}", times("floor"), times(disk));
        for bed in beds.iter().filter(|bed| bed.ours) {
            if let Some(row) = table.get(&(case.name, bed.name.as_str())) {
                line += &format!("  {:6.2}", median(&row.busy));
                if row.requests > 0 {
                    line += &format!(" {:8}", row.requests);
                }
            }
        }
        println!("{line}");
    }
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The seconds of processor time that this process has used.
fn busy() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The fields after the name, which may contain anything but ends with the last parenthesis.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |n: usize| fields.get(n).and_then(|t| t.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap_or("VmHWM: 0 kB");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) / 1024
}
