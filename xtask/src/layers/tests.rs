//! Which manifests pass.

use super::check;

fn manifest(name: &str, lines: &str) -> String {
    format!("[package]\nname = \"mw-{name}\"\n\n[dependencies]\nbytes.workspace = true\n{lines}\n")
}

#[test]
fn lower_layers_are_allowed() {
    assert!(check(&manifest("world", "mw-model.workspace = true\nmw-tree = { path = \"x\" }")).is_empty());
    assert!(check(&manifest("env", "mw-model.workspace = true")).is_empty());
    assert!(check(&manifest("cli", "mw-s3.workspace = true\nmw-fuse.workspace = true")).is_empty());
}

#[test]
fn own_and_higher_layers_are_not() {
    assert!(check(&manifest("meta", "mw-segments.workspace = true"))[0].contains("own layer 1"));
    assert!(check(&manifest("tree", "mw-world.workspace = true"))[0].contains("above"));
    assert!(check(&manifest("model", "mw-env.workspace = true"))[0].contains("own layer"));
    assert!(check(&manifest("s3", "mw-fuse.workspace = true"))[0].contains("own layer 6"));
    assert!(check(&manifest("tree", "[dev-dependencies]\nmw-world.workspace = true"))[0].contains("above"));
}

#[test]
fn every_way_to_write_a_dependency_counts() {
    assert_eq!(check("[package]\nname = \"mw-tree\"\n[dependencies.mw-world]\nworkspace = true\n").len(), 1);
    assert_eq!(check("[package]\nname = \"mw-tree\"\n[target.'cfg(unix)'.dependencies]\nmw-world = \"1\"\n").len(), 1);
    assert_eq!(check("[package]\nname = \"mw-tree\"\n[build-dependencies]\nmw-world = \"1\" # why\n").len(), 1);
    assert_eq!(check("[package]\nname = \"mw-tree\"\n# mw-world = \"1\"\n").len(), 0);
}

#[test]
fn test_crates_are_for_tests() {
    assert!(
        check(&manifest("tree", "[dev-dependencies]\nmw-sim.workspace = true\nmw-testkit.workspace = true")).is_empty()
    );
    assert!(check(&manifest("tree", "mw-sim.workspace = true"))[0].contains("dev-dependencies"));
    assert!(check(&manifest("testkit", "mw-model.workspace = true")).is_empty());
    assert!(check(&manifest("testkit", "mw-world.workspace = true"))[0].contains("may use only"));
}

#[test]
fn a_crate_without_a_layer_is_named() {
    assert!(check(&manifest("new", ""))[0].contains("no layer"));
    assert!(check(&manifest("cli", "mw-new = \"1\""))[0].contains("no layer"));
}
