//! Which imports make a circle.

use super::{Source, check};

fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_straight_line_passes() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use crate::b::B;"),
        ("a.rs", "use crate::b::B;\nuse crate::Error;"),
        ("b.rs", "use crate::B;\nuse std::fmt;"),
    ];
    assert_eq!(check(&sources(&files)), [""; 0]);
}

#[test]
fn a_circle_is_named_with_its_places() {
    let files = [
        ("a.rs", "\nuse crate::b::B;"),
        ("b.rs", "fn f() -> super::c::C {}"),
        ("c/x.rs", "use super::super::a;"),
        ("c.rs", ""),
    ];
    let faults = check(&sources(&files));
    assert_eq!(faults, ["modules in a circle: a imports b (a.rs:2), b imports c (b.rs:1), c imports a (c/x.rs:1)"]);
}

#[test]
fn groups_are_looked_into() {
    let files = [
        ("a.rs", "use crate::{\n    Error,\n    b::{B, c},\n    d,\n};"),
        ("b.rs", ""),
        ("c.rs", "use crate::a;"),
        ("d.rs", "use crate::a;"),
    ];
    let faults = check(&sources(&files));
    assert_eq!(faults, ["modules in a circle: a imports d (a.rs:1), d imports a (d.rs:1)"]);
}

#[test]
fn modules_within_a_module_are_its_own_affair() {
    let files =
        [("a/x.rs", "use super::b;\nuse crate::a::y;"), ("a/y.rs", "use crate::a::x;"), ("b.rs", "use crate::a;")];
    assert_eq!(check(&sources(&files)), [""; 0]);
}

#[test]
fn comments_and_tests_do_not_count() {
    let files = [
        (
            "a.rs",
            "//! See [`crate::b`].\n#[cfg(test)]\nmod tests {\n    use crate::b;\n    fn f() {\n    }\n}\nuse crate::c;",
        ),
        ("a/tests.rs", "use crate::b;"),
        ("b.rs", "use crate::a;\n#[cfg(test)]\nmod tests;"),
        ("c.rs", "use mycrate::a;"),
    ];
    assert_eq!(check(&sources(&files)), [""; 0]);
}

#[test]
fn a_line_after_a_test_module_counts_again() {
    let files =
        [("a.rs", "#[cfg(test)]\nmod tests;\nuse crate::b;"), ("b.rs", "#[cfg(test)]\nuse x::{\n y };\nuse crate::a;")];
    assert_eq!(check(&sources(&files)).len(), 1);
}
