//! The layer order of the crates. It reads manifests as text: sections and keys, nothing else of TOML.

/// Every crate and its layer. Those of one layer do not use each other, which keeps the doors apart; `model` alone lies
/// under its neighbour `env`, because it is nouns without I/O.
const LAYERS: &[(&str, u8)] = &[
    ("model", 0),
    ("env", 0),
    ("sigv4", 0),
    ("meta", 1),
    ("segments", 1),
    ("tree", 2),
    ("world", 3),
    ("sandbox", 4),
    ("run", 5),
    ("s3", 6),
    ("fuse", 6),
    ("nfs", 6),
    ("http", 6),
    ("mcp", 6),
    ("sql", 6),
    ("cli", 7),
];

/// Crates for tests, and what they may use. Others may use them as dev-dependencies alone.
const TEST_CRATES: &[(&str, &[&str])] = &[("testkit", &["model"]), ("sim", &["model", "env"])];

#[derive(Debug, PartialEq, Eq)]
struct Manifest {
    name: String,
    /// Names without the prefix `mw-`, and whether the section is `dev-dependencies`.
    uses: Vec<(String, bool)>,
}

/// Returns what is wrong with one manifest.
pub(crate) fn check(text: &str) -> Vec<String> {
    let Manifest { name, uses } = parse(text);
    let allowed = TEST_CRATES.iter().find(|(test, _)| *test == name).map(|(_, allowed)| *allowed);
    let layer = layer_of(&name);
    if allowed.is_none() && layer.is_none() {
        return vec![format!("mw-{name} has no layer; give it one")];
    }
    let mut faults = Vec::new();
    for (used, dev) in uses {
        let for_tests = TEST_CRATES.iter().any(|(test, _)| *test == used);
        let fault = match (allowed, layer, layer_of(&used)) {
            _ if for_tests && dev => None,
            _ if for_tests => Some(format!("mw-{used} is for tests; move it to [dev-dependencies]")),
            (_, _, None) => Some(format!("mw-{used} has no layer; give it one")),
            (Some(allowed), _, _) if allowed.contains(&used.as_str()) => None,
            (Some(allowed), _, _) => Some(format!("mw-{name} may use only {allowed:?}, not mw-{used}")),
            (None, Some(own), Some(other)) if other < own || used == "model" && name != "model" => None,
            (None, Some(own), Some(other)) if other == own => {
                Some(format!("mw-{name} uses mw-{used} of its own layer {own}; let both use a layer below"))
            }
            (None, own, Some(other)) => Some(format!(
                "mw-{name} (layer {}) uses mw-{used} (layer {other}), which is above it",
                own.unwrap_or(0)
            )),
        };
        faults.extend(fault);
    }
    faults
}

fn layer_of(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

fn parse(text: &str) -> Manifest {
    let mut manifest = Manifest { name: String::new(), uses: Vec::new() };
    let mut section = "";
    for line in text.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').trim();
            // `[dependencies.mw-tree]` names the crate in the header.
            if let Some((kind, name)) = section.rsplit_once('.') {
                note(&mut manifest, kind, name);
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim();
        if section == "package" && key == "name" {
            let name = value.trim().trim_matches('"');
            manifest.name = name.strip_prefix("mw-").unwrap_or(name).to_owned();
        }
        note(&mut manifest, section, key.split('.').next().unwrap_or(key).trim());
    }
    manifest
}

fn note(manifest: &mut Manifest, section: &str, key: &str) {
    // `target.'cfg(unix)'.dependencies` counts too.
    let kind = section.rsplit('.').next().unwrap_or(section);
    if let Some(name) = key.trim_matches('"').strip_prefix("mw-")
        && kind.ends_with("dependencies")
    {
        manifest.uses.push((name.to_owned(), kind == "dev-dependencies"));
    }
}

#[cfg(test)]
mod tests;
