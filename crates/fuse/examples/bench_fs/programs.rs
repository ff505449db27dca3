//! Whole programs as cases: databases, which mean what they write, and what installs and builds.
//!
//! A program that is not installed gives no figure (`NaN`), and the other cases go on.

use crate::tree::run;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Rows of one transaction, and transactions of one row.
const ROWS: usize = 200_000;
const COMMITS: usize = 200;

/// One transaction of many rows: seconds.
pub fn sqlite_rows(dir: &Path) -> io::Result<f64> {
    let insert = format!(
        "create table t(i integer primary key, v text); with recursive n(i) as (select 1 union all select i+1 from n where i<{ROWS}) \
         insert into t select i, hex(i*7919) from n;"
    );
    let figure = sqlite(dir, &insert)?;
    std::fs::remove_file(dir.join("db")).or_else(|e| if figure.is_nan() { Ok(()) } else { Err(e) })?;
    Ok(figure)
}

/// Many transactions of one row with a write-ahead log and full synchronisation: microseconds each.
pub fn sqlite_commits(dir: &Path) -> io::Result<f64> {
    let made = sqlite(dir, "pragma journal_mode=wal; create table t(i integer primary key, v text);")?;
    if made.is_nan() {
        return Ok(made);
    }
    let inserts: String = std::iter::once("pragma synchronous=full;".to_owned())
        .chain((0..COMMITS).map(|n| format!("insert into t(v) values('{n}');")))
        .collect();
    let seconds = sqlite(dir, &inserts)?;
    run(dir, "rm", &["-f", "db", "db-wal", "db-shm"])?;
    Ok(seconds * 1e6 / COMMITS as f64)
}

/// Installs the packages of the JavaScript clients that the tests use (`MW_NPM`), from a cache on the disk: seconds.
pub fn npm_ci(dir: &Path, beside: &Path) -> io::Result<f64> {
    let Some(from) = std::env::var_os("MW_NPM").map(PathBuf::from).filter(|at| at.join("package-lock.json").exists())
    else {
        return Ok(f64::NAN);
    };
    let cache = beside.with_file_name("npm-cache");
    let install = |at: &Path| {
        std::fs::create_dir_all(at)?;
        for name in ["package.json", "package-lock.json"] {
            std::fs::copy(from.join(name), at.join(name))?;
        }
        let cache = format!("--cache={}", cache.display());
        let start = Instant::now();
        run(at, "npm", &["ci", "--silent", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", &cache])?;
        Ok(start.elapsed().as_secs_f64())
    };
    if !cache.exists() {
        let first = beside.with_file_name("npm-first");
        install(&first)?;
        std::fs::remove_dir_all(&first)?;
    }
    install(&dir.join("npm"))
}

/// Builds a program with some of this project's own dependencies, fetched already and as its lock file has them: seconds.
pub fn cargo_build(dir: &Path) -> io::Result<f64> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let at = dir.join("built");
    std::fs::create_dir_all(at.join("src"))?;
    let lock = std::fs::read_to_string(project.join("Cargo.lock"))?;
    let version = |name: &str| {
        let (_, after) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
        after.split('"').next().map(|version| format!("{name} = \"={version}\"\n"))
    };
    let dependencies: String = ["serde_json", "clap", "tracing-subscriber"].into_iter().filter_map(version).collect();
    let manifest =
        format!("[package]\nname = \"built\"\nedition = \"2024\"\n[dependencies]\n{dependencies}[workspace]\n");
    std::fs::write(at.join("Cargo.toml"), manifest)?;
    std::fs::write(at.join("Cargo.lock"), &lock)?;
    std::fs::write(at.join("src/main.rs"), "fn main() { println!(\"{}\", serde_json::json!([1])); }\n")?;
    let start = Instant::now();
    run(&at, "cargo", &["build", "-q", "--offline", "--target-dir", "target"])?;
    let seconds = start.elapsed().as_secs_f64();
    std::fs::remove_dir_all(&at)?;
    Ok(seconds)
}

/// Feeds statements to sqlite3 and returns the seconds that it took.
fn sqlite(dir: &Path, statements: &str) -> io::Result<f64> {
    let start = Instant::now();
    let started =
        Command::new("sqlite3").arg("db").current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut child = match started {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(f64::NAN),
        started => started?,
    };
    if let Some(mut input) = child.stdin.take() {
        input.write_all(statements.as_bytes())?;
    }
    match child.wait()? {
        status if status.success() => Ok(start.elapsed().as_secs_f64()),
        status => Err(io::Error::other(format!("sqlite3 ended with {status}"))),
    }
}

/// The transactions a second of pgbench, four clients for ten seconds. PostgreSQL runs as a user of its own, so this needs root.
pub fn pgbench(dir: &Path) -> io::Result<f64> {
    let Some(bin) = postgres() else { return Ok(f64::NAN) };
    let script = format!(
        "mkdir pg && chown postgres pg
         as() {{ setpriv --reuid=postgres --regid=postgres --clear-groups env HOME=\"$PWD/pg\" PGHOST=\"$PWD/pg\" PGUSER=postgres PGDATABASE=postgres \"$@\"; }}
         as {bin}/initdb -D pg/data -A trust >/dev/null
         as {bin}/pg_ctl -s -w -t 60 -D pg/data -l pg/log -o \"-k $PWD/pg -c listen_addresses=\" start >/dev/null
         trap 'as {bin}/pg_ctl -s -w -m fast -D pg/data stop >/dev/null; rm -rf pg' EXIT
         as {bin}/pgbench -q -i -s 5 >/dev/null 2>&1
         as {bin}/pgbench -c 4 -j 2 -T 10 2>/dev/null",
        bin = bin.display()
    );
    let output = Command::new("sh").args(["-ec", &script]).current_dir(dir).stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split_whitespace().next()?.parse().ok());
    rate.ok_or_else(|| io::Error::other(format!("pgbench: {}{text}", String::from_utf8_lossy(&output.stderr))))
}

/// The newest PostgreSQL that is installed and can be used.
fn postgres() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(|e| Some(e.ok()?.path())).collect();
    found.sort();
    let bin = found.pop()?.join("bin");
    let user = std::fs::read_to_string("/etc/passwd").ok()?.contains("postgres:");
    (user && rustix::process::geteuid().is_root() && bin.join("pgbench").exists()).then_some(bin)
}
