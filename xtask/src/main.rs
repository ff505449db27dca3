//! Checks of the house that no compiler makes: `cargo run -q -p xtask -- layers`.
//!
//! - [`layers`]: a crate uses only crates of lower layers;
//! - [`modules`]: the modules of a crate do not import each other in a circle.

mod layers;
mod modules;

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let outcome = match task.as_deref() {
        Some("layers") => house(),
        _ => {
            eprintln!("usage: cargo run -q -p xtask -- layers");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(crates) => {
            println!("layers: {crates} crates in order, no module cycles");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Checks every crate under `crates/` and returns how many there are.
fn house() -> anyhow::Result<usize> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent directory")?;
    let mut faults = Vec::new();
    let dirs = crates(&root.join("crates"))?;
    for dir in &dirs {
        let shown = dir.strip_prefix(root).unwrap_or(dir).display().to_string();
        let manifest = read(&dir.join("Cargo.toml"))?;
        faults.extend(layers::check(&manifest).into_iter().map(|fault| format!("{shown}/Cargo.toml: {fault}")));
        let sources = modules::sources(&dir.join("src"))?;
        faults.extend(modules::check(&sources).into_iter().map(|fault| format!("{shown}: {fault}")));
    }
    if !faults.is_empty() {
        bail!("{}\n{} faults; the layers stand in xtask/src/layers.rs", faults.join("\n"), faults.len());
    }
    Ok(dirs.len())
}

fn crates(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry?.path();
        if path.join("Cargo.toml").exists() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
