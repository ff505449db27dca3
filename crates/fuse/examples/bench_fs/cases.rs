//! What is measured: each case does one thing to one file system and says how long it took.
//!
//! Cases run in their order: the first ones make what later ones read, and the last ones remove it. What loops over system calls
//! runs in a process of its own (`--do`), because this one answers the requests.

use crate::programs;
use crate::tree::{Dice, Trees, run};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// One case.
pub struct Case {
    pub name: &'static str,
    /// What a figure counts.
    pub unit: Unit,
    run: fn(&Path, &Scale<'_>) -> io::Result<f64>,
}

/// What a figure counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    /// Microseconds for one call.
    Micros,
    /// MiB a second: more is better.
    Rate,
    /// Transactions a second: more is better.
    Often,
}

/// How much there is to do.
pub struct Scale<'a> {
    pub trees: &'a Trees,
    /// How often a call is repeated.
    pub calls: usize,
    /// The bytes of the large file, in MiB.
    pub large: usize,
    /// The entries of the wide directory.
    pub wide: usize,
}

const BLOCK: usize = 4096;
const MIB: usize = 1 << 20;

/// All cases, in order.
pub const CASES: &[Case] = &[
    Case { name: "untar", unit: Unit::Seconds, run: untar },
    Case { name: "find", unit: Unit::Seconds, run: |dir, _| shell(dir, "find tree -type f | wc -l") },
    Case { name: "read all", unit: Unit::Seconds, run: read_all },
    Case { name: "read again", unit: Unit::Seconds, run: read_all },
    Case { name: "git add", unit: Unit::Seconds, run: |dir, _| shell(dir, "cd tree && git init -q && git add .") },
    Case { name: "git status", unit: Unit::Seconds, run: |dir, _| shell(dir, "cd tree && git status -s") },
    Case { name: "cp -r", unit: Unit::Seconds, run: |dir, _| shell(dir, "cp -r tree copy") },
    Case { name: "mv directory", unit: Unit::Seconds, run: |dir, _| shell(dir, "mv copy copy2 && mv copy2 copy") },
    Case { name: "rm -r", unit: Unit::Seconds, run: |dir, _| shell(dir, "rm -r copy") },
    Case { name: "rm -r (git)", unit: Unit::Seconds, run: |dir, _| shell(dir, "rm -rf tree") },
    Case { name: "git clone", unit: Unit::Seconds, run: clone },
    Case { name: "rm -r (clone)", unit: Unit::Seconds, run: |dir, _| shell(dir, "rm -rf clone") },
    Case { name: "create+close", unit: Unit::Micros, run: |dir, scale| again("create", dir, scale) },
    Case { name: "stat", unit: Unit::Micros, run: |dir, scale| again("stat", dir, scale) },
    Case { name: "rename", unit: Unit::Micros, run: |dir, scale| again("rename", dir, scale) },
    Case { name: "unlink", unit: Unit::Micros, run: |dir, scale| again("unlink", dir, scale) },
    Case { name: "write 4 KiB", unit: Unit::Micros, run: |dir, scale| again("write", dir, scale) },
    Case { name: "append 100 B", unit: Unit::Micros, run: |dir, scale| again("append", dir, scale) },
    Case { name: "read 4 KiB cold", unit: Unit::Micros, run: |dir, scale| again("read", dir, scale) },
    Case { name: "read 4 KiB warm", unit: Unit::Micros, run: |dir, scale| again("reread", dir, scale) },
    Case { name: "rewrite 4 KiB", unit: Unit::Micros, run: |dir, scale| again("rewrite", dir, scale) },
    Case { name: "write+fsync", unit: Unit::Micros, run: |dir, scale| again("fsync", dir, scale) },
    Case { name: "write large", unit: Unit::Rate, run: |dir, scale| again("write-large", dir, scale) },
    Case { name: "read large", unit: Unit::Rate, run: |dir, scale| again("read-large", dir, scale) },
    Case { name: "read large again", unit: Unit::Rate, run: |dir, scale| again("reread-large", dir, scale) },
    Case { name: "sqlite rows", unit: Unit::Seconds, run: |dir, _| programs::sqlite_rows(dir) },
    Case { name: "sqlite commits", unit: Unit::Micros, run: |dir, _| programs::sqlite_commits(dir) },
    Case { name: "pgbench", unit: Unit::Often, run: |dir, _| programs::pgbench(dir) },
    Case { name: "npm ci", unit: Unit::Seconds, run: |dir, scale| programs::npm_ci(dir, &scale.trees.tar) },
    Case { name: "rm -r (npm)", unit: Unit::Seconds, run: |dir, _| shell(dir, "rm -rf npm") },
    Case { name: "cargo build", unit: Unit::Seconds, run: |dir, _| programs::cargo_build(dir) },
    Case { name: "wide create", unit: Unit::Micros, run: |dir, scale| wide("create", dir, scale) },
    Case { name: "wide list", unit: Unit::Seconds, run: |dir, _| shell(dir, "ls -f many | wc -l") },
    Case { name: "wide stat", unit: Unit::Micros, run: |dir, scale| wide("stat", dir, scale) },
    Case { name: "wide mv", unit: Unit::Seconds, run: |dir, _| shell(dir, "mv many many2 && mv many2 many") },
    Case { name: "wide rm", unit: Unit::Seconds, run: |dir, _| shell(dir, "rm -r many") },
];

impl Case {
    /// Runs the case in `dir`.
    pub fn measure(&self, dir: &Path, scale: &Scale<'_>) -> io::Result<f64> {
        (self.run)(dir, scale)
    }
}

fn timed(work: impl FnOnce() -> io::Result<()>) -> io::Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

fn shell(dir: &Path, script: &str) -> io::Result<f64> {
    timed(|| run(dir, "sh", &["-ec", script]))
}

fn untar(dir: &Path, scale: &Scale<'_>) -> io::Result<f64> {
    let tar = scale.trees.tar.to_string_lossy();
    timed(|| run(dir, "tar", &["xf", &tar]))
}

fn clone(dir: &Path, scale: &Scale<'_>) -> io::Result<f64> {
    let from = format!("file://{}", scale.trees.repository.display());
    timed(|| run(dir, "git", &["clone", "-q", &from, "clone"]))
}

fn read_all(dir: &Path, _: &Scale<'_>) -> io::Result<f64> {
    shell(dir, "find tree -name .git -prune -o -type f -print0 | xargs -0 cat | wc -c")
}

/// Does a loop to the entries of one wide directory.
fn wide(what: &str, dir: &Path, scale: &Scale<'_>) -> io::Result<f64> {
    apart(what, dir, scale.wide, scale.large)
}

fn again(what: &str, dir: &Path, scale: &Scale<'_>) -> io::Result<f64> {
    apart(what, dir, scale.calls, scale.large)
}

/// Runs a loop of system calls in a process of its own, which prints its figure.
fn apart(what: &str, dir: &Path, calls: usize, large: usize) -> io::Result<f64> {
    let me = std::env::current_exe()?;
    let args = ["--do", what, &calls.to_string(), &large.to_string()];
    let output = std::process::Command::new(me).args(args).current_dir(dir).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| io::Error::other(format!("{what}: {}", String::from_utf8_lossy(&output.stderr))))
}

/// The other end of [`again`]: works in the current directory and returns the figure.
pub fn act(what: &str, calls: usize, large: usize) -> io::Result<f64> {
    let micros = |calls: usize, seconds: f64| seconds * 1e6 / calls as f64;
    let every = |calls: usize, mut call: Box<dyn FnMut(usize) -> io::Result<()>>| {
        timed(|| (0..calls).try_for_each(&mut call)).map(|seconds| micros(calls, seconds))
    };
    let block = Dice(7).text(BLOCK);
    let mut dice = Dice(11);
    match what {
        "create" => {
            std::fs::create_dir("many")?;
            every(calls, Box::new(|n| File::create(format!("many/{n}")).map(drop)))
        }
        "stat" => every(calls, Box::new(|n| std::fs::metadata(format!("many/{n}")).map(drop))),
        "rename" => every(calls, Box::new(|n| std::fs::rename(format!("many/{n}"), format!("many/to{n}")))),
        "unlink" => {
            let figure = every(calls, Box::new(|n| std::fs::remove_file(format!("many/to{n}"))))?;
            std::fs::remove_dir("many")?;
            Ok(figure)
        }
        "write" => {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open("blocks")?;
            every(calls, Box::new(move |n| file.write_all_at(&block, (n * BLOCK) as u64)))
        }
        "append" => {
            let mut file = OpenOptions::new().create(true).append(true).open("log")?;
            every(calls, Box::new(move |_| file.write_all(&block[..100])))
        }
        "read" | "reread" => {
            let mut file = File::open("blocks")?;
            let blocks = file.metadata()?.len() / BLOCK as u64;
            let mut out = vec![0; BLOCK];
            if what == "reread" {
                // Now the kernel has all of it.
                io::copy(&mut file, &mut io::sink())?;
            }
            every(calls, Box::new(move |_| file.read_exact_at(&mut out, (dice.roll() % blocks) * BLOCK as u64)))
        }
        "rewrite" => {
            // As databases do: read and written at random places through one descriptor.
            let file = OpenOptions::new().read(true).write(true).open("blocks")?;
            let blocks = file.metadata()?.len() / BLOCK as u64;
            let figure =
                every(calls, Box::new(move |_| file.write_all_at(&block, (dice.roll() % blocks) * BLOCK as u64)));
            std::fs::remove_file("blocks")?;
            figure
        }
        "fsync" => {
            let mut file = File::create("synced")?;
            let calls = calls.div_ceil(20);
            let figure = every(calls, Box::new(move |_| file.write_all(&block).and_then(|()| file.sync_data())));
            std::fs::remove_file("synced")?;
            figure
        }
        "write-large" => {
            let content = dice.text(MIB);
            let mut file = File::create("large")?;
            let seconds = timed(|| (0..large).try_for_each(|_| file.write_all(&content)))?;
            Ok(large as f64 / seconds)
        }
        "read-large" | "reread-large" => {
            let mut file = File::open("large")?;
            if what == "read-large" {
                // What was written may be in the kernel's memory, which would measure nothing: on a mount opening drops nothing. What
                // is not on the disk yet cannot be dropped.
                file.sync_all()?;
                rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
            }
            let mut out = vec![0; MIB];
            file.seek(SeekFrom::Start(0))?;
            let seconds = timed(|| {
                while file.read(&mut out)? > 0 {}
                Ok(())
            })?;
            if what == "reread-large" {
                std::fs::remove_file("large")?;
            }
            Ok(large as f64 / seconds)
        }
        other => Err(io::Error::other(format!("there is no loop {other}"))),
    }
}
