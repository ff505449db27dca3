//! JSON combined by keys. Members keep their order and their spelling (numbers of any length above all): what only one side
//! changed is copied as that side wrote it, and only objects that both changed are written anew.

use blake3::{Hash, Hasher};
use serde::de::IgnoredAny;
use std::collections::{HashMap, HashSet};

/// Combines two versions of a document with a common one.
pub(super) fn combine(common: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let (common, ours, theirs) = (checked(common)?, checked(ours)?, checked(theirs)?);
    let (c, o, t) = (Reader::read(common)?, Reader::read(ours)?, Reader::read(theirs)?);
    let style = Style::of(ours);
    let mut text = String::with_capacity(ours.len().max(theirs.len()));
    style.merge(Some(&c), &o, &t, 0, &mut text)?;
    text.push_str(&ours[ours.trim_end().len()..]);
    Some(text.into_bytes())
}

/// Returns the text of a valid document. What follows may then take it for valid, and its depth for bounded.
fn checked(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    Some(text)
}

/// A value: as it is written, and what is in it.
#[derive(Debug)]
struct Node<'a> {
    raw: &'a str,
    /// The hash of the value without white space between its parts.
    hash: Hash,
    /// The members of an object, in order; the keys with their quotes.
    members: Option<Vec<(&'a str, Node<'a>)>>,
}

/// Returns where each member stands.
fn places<'a>(members: &[(&'a str, Node<'_>)]) -> HashMap<&'a str, usize> {
    members.iter().enumerate().map(|(at, (key, _))| (*key, at)).collect()
}

impl Node<'_> {
    fn same(&self, other: &Node<'_>) -> bool {
        self.hash == other.hash
    }
}

/// Reads a document that is known to be valid.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// Returns none for an object that says a key twice.
    fn read(text: &'a str) -> Option<Node<'a>> {
        let mut reader = Self { text, at: 0 };
        reader.space();
        reader.value()
    }

    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// Steps over a character and what white space follows it.
    fn step(&mut self) {
        self.at += 1;
        self.space();
    }

    fn value(&mut self) -> Option<Node<'a>> {
        let start = self.at;
        let mut hash = Hasher::new();
        let mut members = None;
        match self.peek() {
            b'{' => {
                let list = self.object()?;
                hash.update(b"{");
                for (key, value) in &list {
                    hash.update(blake3::hash(key.as_bytes()).as_bytes());
                    hash.update(value.hash.as_bytes());
                }
                members = Some(list);
            }
            b'[' => {
                hash.update(b"[");
                self.step();
                while self.peek() != b']' {
                    hash.update(self.value()?.hash.as_bytes());
                    self.space();
                    if self.peek() == b',' {
                        self.step();
                    }
                }
                self.at += 1;
            }
            b'"' => {
                hash.update(self.string().as_bytes());
            }
            _ => {
                while !matches!(self.peek(), b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r' | 0) {
                    self.at += 1;
                }
                hash.update(&self.text.as_bytes()[start..self.at]);
            }
        }
        Some(Node { raw: &self.text[start..self.at], hash: hash.finalize(), members })
    }

    fn object(&mut self) -> Option<Vec<(&'a str, Node<'a>)>> {
        let mut list: Vec<(&str, Node<'_>)> = Vec::new();
        let mut seen = HashSet::new();
        self.step();
        while self.peek() != b'}' {
            let key = self.string();
            if !seen.insert(key) {
                return None;
            }
            self.space();
            // The colon.
            self.step();
            list.push((key, self.value()?));
            self.space();
            if self.peek() == b',' {
                self.step();
            }
        }
        self.at += 1;
        Some(list)
    }

    fn string(&mut self) -> &'a str {
        let start = self.at;
        self.at += 1;
        while !matches!(self.peek(), b'"' | 0) {
            self.at += if self.peek() == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        &self.text[start..self.at]
    }
}

/// How objects are laid out: on one line, or a member a line.
struct Style<'a> {
    indent: Option<&'a str>,
}

impl<'a> Style<'a> {
    /// Does as `text` does with its first member.
    fn of(text: &'a str) -> Self {
        let inside = text.trim_start().get(1..).unwrap_or("");
        let space = &inside[..inside.len() - inside.trim_start().len()];
        Self { indent: space.rfind('\n').map(|at| &space[at + 1..]) }
    }

    fn merge(
        &self,
        common: Option<&Node<'_>>,
        ours: &Node<'_>,
        theirs: &Node<'_>,
        depth: usize,
        out: &mut String,
    ) -> Option<()> {
        if common.is_some_and(|common| common.same(theirs)) || ours.same(theirs) {
            out.push_str(ours.raw);
            return Some(());
        }
        if common.is_some_and(|common| common.same(ours)) {
            out.push_str(theirs.raw);
            return Some(());
        }
        let (our, their) = (ours.members.as_ref()?, theirs.members.as_ref()?);
        let none = Vec::new();
        let old = match common {
            Some(common) => common.members.as_ref()?,
            None => &none,
        };
        let (in_old, in_ours, in_theirs) = (places(old), places(our), places(their));
        // What stays of ours, and behind each, or before all, what they added there.
        let mut parts: Vec<(&str, String)> = Vec::new();
        let mut kept: HashMap<&str, usize> = HashMap::new();
        for (key, mine) in our {
            let was = in_old.get(key).map(|at| &old[*at].1);
            let text = match (in_theirs.get(key).map(|at| &their[*at].1), was) {
                (Some(other), _) => {
                    let mut text = String::new();
                    self.merge(was, mine, other, depth + 1, &mut text)?;
                    text
                }
                // They removed it: it goes, unless we changed it.
                (None, Some(was)) if was.same(mine) => continue,
                (None, Some(_)) => return None,
                (None, None) => mine.raw.to_owned(),
            };
            kept.insert(key, parts.len());
            parts.push((key, text));
        }
        let mut added: Vec<Vec<(&str, String)>> = vec![Vec::new(); parts.len() + 1];
        let known = their.iter().any(|(key, _)| kept.contains_key(key));
        let mut behind = if known { 0 } else { parts.len() };
        for (key, other) in their {
            if let Some(at) = kept.get(key) {
                behind = at + 1;
            }
            if in_ours.contains_key(key) {
                continue;
            }
            match in_old.get(key).map(|at| &old[*at].1) {
                // We removed it.
                Some(was) if was.same(other) => {}
                Some(_) => return None,
                None => added[behind].push((key, other.raw.to_owned())),
            }
        }
        let mut parts = parts.into_iter();
        let parts: Vec<_> = added
            .into_iter()
            .flat_map(|more| more.into_iter().map(Some).chain([None]))
            .filter_map(|part| part.or_else(|| parts.next()))
            .collect();
        self.write(&parts, depth, out);
        Some(())
    }

    fn write(&self, parts: &[(&str, String)], depth: usize, out: &mut String) {
        let line = |out: &mut String, depth: usize| {
            if let Some(indent) = self.indent {
                out.push('\n');
                out.extend(std::iter::repeat_n(indent, depth));
            }
        };
        out.push('{');
        for (at, (key, value)) in parts.iter().enumerate() {
            if at > 0 {
                out.push(',');
                if self.indent.is_none() {
                    out.push(' ');
                }
            }
            line(out, depth + 1);
            out.push_str(key);
            out.push_str(": ");
            out.push_str(value);
        }
        if !parts.is_empty() {
            line(out, depth);
        }
        out.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::combine;

    fn merged(common: &str, ours: &str, theirs: &str) -> Option<String> {
        combine(common.as_bytes(), ours.as_bytes(), theirs.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn members_of_both_sides_come_together_and_keep_their_spelling() {
        let common = "{\n  \"name\": \"x\",\n  \"deps\": {\n    \"a\": 1\n  },\n  \"big\": 12345678901234567890123,\n  \"list\": [1, 2]\n}\n";
        let ours = common.replace("\"a\": 1", "\"a\": 1,\n    \"b\": 2");
        let theirs = common.replace("\"a\": 1", "\"c\": 1e400,\n    \"a\": 1").replace("[1, 2]", "[1,  3]");
        assert_eq!(
            merged(common, &ours, &theirs).unwrap(),
            "{\n  \"name\": \"x\",\n  \"deps\": {\n    \"c\": 1e400,\n    \"a\": 1,\n    \"b\": 2\n  },\n  \"big\": 12345678901234567890123,\n  \"list\": [1,  3]\n}\n"
        );
    }

    #[test]
    fn one_line_stays_one_line() {
        assert_eq!(
            merged(r#"{"a": 1}"#, r#"{"a": 1, "b": {"x": 1}}"#, r#"{"a": 2, "b": {"y": 2}}"#).unwrap(),
            r#"{"a": 2, "b": {"x": 1, "y": 2}}"#
        );
    }

    #[test]
    fn removals_travel() {
        assert_eq!(merged(r#"{"a":1,"b":2,"c":3}"#, r#"{"b":2,"c":3}"#, r#"{"a":1,"b":2}"#).unwrap(), r#"{"b": 2}"#);
        assert_eq!(merged(r#"{"a":1}"#, "{}", r#"{"a":1,"b":2}"#).unwrap(), r#"{"b": 2}"#);
    }

    #[test]
    fn contradictions_and_what_is_no_json_are_left_to_the_user() {
        for (common, ours, theirs) in [
            (r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":3}"#),
            (r#"{"a":1}"#, r#"{}"#, r#"{"a":3}"#),
            (r#"{"a":1}"#, r#"{"a":3}"#, r#"{}"#),
            (r#"{"a":[1]}"#, r#"{"a":[1,2]}"#, r#"{"a":[1,3]}"#),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, r#"{"a":1,"b":3}"#),
            (r#"{"a":1}"#, r#"{"a":1,"a":2}"#, r#"{"a":1,"b":3}"#),
            (r#"{"a":1}"#, r#"{"a":1,}"#, r#"{"a":1,"b":3}"#),
            ("[1]", "[1,2]", "[1,3]"),
            ("", "{}", "[]"),
        ] {
            assert_eq!(merged(common, ours, theirs), None, "{common} {ours} {theirs}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(merged("{}", &deep, "[]"), None);
    }

    #[test]
    fn strings_with_everything_in_them_are_read_to_their_end() {
        let common = r#"{"a\"}": "x\\", "b": "{[,:]}"}"#;
        let theirs = r#"{"a\"}": "x\\", "b": "{[,:]}", "c": "\u0022"}"#;
        let ours = r#"{"a\"}": "y\\\"", "b": "{[,:]}"}"#;
        assert_eq!(merged(common, ours, theirs).unwrap(), r#"{"a\"}": "y\\\"", "b": "{[,:]}", "c": "\u0022"}"#);
    }
}
