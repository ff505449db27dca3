//! Contents that both sides changed, combined on request: text by lines, JSON by keys. Pure functions of three contents;
//! `None` means that the sides contradict each other, or that the content is not of this sort.

mod json;

/// What may be combined. Nothing is by default: a merge of lines can be clean and wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Combine {
    /// Text, by lines: changes of different lines are both kept.
    pub text: bool,
    /// JSON in files called `*.json`, by keys: changes of different members are both kept.
    pub json: bool,
}

/// The largest content that is combined, in bytes.
pub(crate) const MOST: u64 = 8 << 20;

/// A NUL among the first so many bytes makes a content binary, as it does for git.
const LOOKED_AT: usize = 8000;

impl Combine {
    /// Returns whether a file of this name and size may be combined at all.
    pub(crate) fn takes(self, size: u64) -> bool {
        (self.text || self.json) && size <= MOST
    }

    /// Combines what two sides made of a common content. The name is that of the file.
    pub(crate) fn combine(self, name: &[u8], common: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
        if self.json && is_json(name) {
            // Lines that merge cleanly need not be JSON any more.
            return json::combine(common, ours, theirs);
        }
        if !self.text || [common, ours, theirs].iter().any(|bytes| is_binary(bytes)) {
            return None;
        }
        diffy::merge_bytes(common, ours, theirs).ok()
    }
}

fn is_json(name: &[u8]) -> bool {
    name.len() > 5 && name[name.len() - 5..].eq_ignore_ascii_case(b".json")
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(LOOKED_AT)].contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Combine = Combine { text: true, json: true };

    #[test]
    fn different_lines_are_both_kept() {
        let common = b"a\nb\nc\nd\ne\n";
        let merged = BOTH.combine(b"f.txt", common, b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\nf\n");
        assert_eq!(merged.as_deref(), Some(&b"A\nb\nc\nd\nE\nf\n"[..]));
        assert_eq!(BOTH.combine(b"f.txt", common, b"a\nb\nC\nd\ne\n", b"a\nb\nX\nd\ne\n"), None);
        assert_eq!(BOTH.combine(b"f.txt", common, b"a\nb\nd\ne\n", b"a\nb\nC\nd\ne\n"), None, "deleted and changed");
    }

    #[test]
    fn bytes_that_are_no_utf8_are_lines_too_and_binaries_are_not() {
        let merged = BOTH.combine(b"f", b"\xff\nb\nc\nd\n", b"\xfe\nb\nc\nd\n", b"\xff\nb\nc\n\xfd\n");
        assert_eq!(merged.as_deref(), Some(&b"\xfe\nb\nc\n\xfd\n"[..]));
        assert_eq!(BOTH.combine(b"f", b"\0\nb\nc\nd\n", b"\0a\nb\nc\nd\n", b"\0\nb\nc\ne\n"), None);
    }

    #[test]
    fn nothing_is_combined_unasked() {
        let none = Combine::default();
        assert!(!none.takes(1));
        assert_eq!(none.combine(b"f", b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n"), None);
        let text = Combine { text: true, json: false };
        assert!(text.combine(b"f.json", b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n").is_some());
        assert!(!text.takes(MOST + 1));
    }
}
