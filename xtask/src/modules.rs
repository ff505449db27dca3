//! Cycles among the top-level modules of one crate.
//!
//! A scan of paths, not a compiler: it sees `crate::foo`, `super::foo` and groups of them, wherever they stand. What `lib.rs`
//! re-exports, comments and test modules do not count. `src/foo.rs` and everything in `src/foo/` is the module `foo`.

use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One source file: its path below `src`, with slashes, and its text.
pub(crate) type Source = (String, String);

/// For each module those that it imports, with one place where it does.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

/// Reads every Rust file below `src`.
pub(crate) fn sources(src: &Path) -> anyhow::Result<Vec<Source>> {
    let mut found = Vec::new();
    let mut open = vec![src.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let name = path.strip_prefix(src).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                found.push((name, super::read(&path)?));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns one line for every knot of modules.
pub(crate) fn check(sources: &[Source]) -> Vec<String> {
    let imports = imports(sources);
    let mut faults = Vec::new();
    let mut told = BTreeSet::new();
    for start in imports.keys() {
        if told.contains(start) {
            continue;
        }
        if let Some(circle) = circle(&imports, start) {
            let steps: Vec<String> = circle
                .iter()
                .zip(circle.iter().cycle().skip(1))
                .map(|(from, to)| format!("{from} imports {to} ({})", imports[from][to]))
                .collect();
            faults.push(format!("modules in a circle: {}", steps.join(", ")));
            told.extend(circle);
        }
    }
    faults
}

/// Returns the shortest way from `start` back to it.
fn circle(imports: &Imports, start: &str) -> Option<Vec<String>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut wave = vec![start];
    while !wave.is_empty() {
        let mut next = Vec::new();
        for module in wave {
            for target in imports.get(module).into_iter().flat_map(BTreeMap::keys) {
                if target == start {
                    let mut circle = vec![module.to_owned()];
                    let mut at = module;
                    while at != start {
                        at = from[at];
                        circle.push(at.to_owned());
                    }
                    circle.reverse();
                    return Some(circle);
                }
                if !from.contains_key(target.as_str()) {
                    from.insert(target, module);
                    next.push(target.as_str());
                }
            }
        }
        wave = next;
    }
    None
}

fn imports(sources: &[Source]) -> Imports {
    let files: Vec<(Vec<&str>, &Source)> = sources.iter().map(|source| (module_path(&source.0), source)).collect();
    let known: BTreeSet<&str> = files.iter().filter_map(|(path, _)| path.first().copied()).collect();
    let mut imports = Imports::new();
    for (path, (file, text)) in &files {
        let Some(own) = path.first().filter(|_| !path.contains(&"tests")) else { continue };
        for (name, line) in names(&code_of(text), path.len()) {
            if name != *own && known.contains(name.as_str()) {
                let place = format!("{file}:{line}");
                imports.entry((*own).to_owned()).or_default().entry(name).or_insert(place);
            }
        }
    }
    imports
}

/// Returns the module that a file is; empty for the root.
fn module_path(file: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    if parts.last() == Some(&"mod") {
        parts.pop();
    }
    if matches!(parts[..], ["lib"] | ["main"]) {
        parts.clear();
    }
    parts
}

/// Blanks comments and inline test modules; lines stay where they are.
fn code_of(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or(""));
    let mut code = String::new();
    let (mut test, mut depth) = (false, 0usize);
    for line in lines {
        let marked = line.trim_start().starts_with("#[cfg(test)]");
        if depth > 0 || test && line.contains('{') {
            depth = (depth + line.matches('{').count()).saturating_sub(line.matches('}').count());
            test = false;
        } else {
            // An attribute may stand between the mark and what it marks.
            test = marked || test && line.trim_start().starts_with('#');
            code.push_str(line);
        }
        code.push('\n');
    }
    code
}

/// Returns the first names after `crate::`, or after as many `super::` as lead to the root from `depth` modules below it.
fn names(code: &str, depth: usize) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = code[at..].find("::") {
        let end = at + offset + 2;
        let head = &code[..end];
        at = end;
        let up = "super::".repeat(depth);
        let starts = |root: &str| {
            head.strip_suffix(root)
                .is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'))
        };
        if starts("crate::") || starts(&up) {
            let line = head.matches('\n').count() + 1;
            found.extend(firsts(&code[end..]).into_iter().map(|name| (name, line)));
        }
    }
    found
}

/// Returns the first name of a path, or of each path in a group.
fn firsts(rest: &str) -> Vec<String> {
    let name =
        |text: &str| -> String { text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut parts) = (0usize, vec![String::new()]);
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.iter().map(|part| name(part)).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests;
