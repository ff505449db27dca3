//! Patterns of policies: `*` stands for any characters, none included, `?` for exactly one. Bytes compare as they are.

use std::fmt;

/// A pattern.
#[derive(Clone, PartialEq, Eq)]
pub struct Glob(Vec<u8>);

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({:?})", String::from_utf8_lossy(&self.0))
    }
}

/// Returns the length of the first character; a byte that starts none counts as one.
fn step(text: &[u8]) -> usize {
    let wide = match text.first() {
        Some(0xC2..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF4) => 4,
        _ => 1,
    };
    let whole = text.get(..wide).is_some_and(|c| std::str::from_utf8(c).is_ok());
    if whole { wide } else { 1 }
}

impl Glob {
    /// Takes a pattern. Stars side by side are one.
    pub fn new(pattern: impl Into<Vec<u8>>) -> Self {
        let mut pattern = pattern.into();
        pattern.dedup_by(|a, b| *a == b'*' && *b == b'*');
        Self(pattern)
    }

    /// Makes the pattern of everything that starts with `prefix`, whatever characters that has; none when it holds `*` or `?`, which
    /// a pattern cannot say literally.
    pub fn under(prefix: &[u8]) -> Option<Self> {
        let plain = !prefix.iter().any(|b| matches!(b, b'*' | b'?'));
        plain.then(|| Self([prefix, b"*"].concat()))
    }

    /// Whether the whole of `text` matches. Takes at most the product of both lengths.
    pub fn matches(&self, text: &[u8]) -> bool {
        let pattern = &self.0;
        let (mut p, mut t) = (0, 0);
        // Where to go on when a later part does not fit: after the last star, one character further in the text.
        let mut again: Option<(usize, usize)> = None;
        while t < text.len() {
            match pattern.get(p) {
                Some(b'*') => {
                    again = Some((p + 1, t));
                    p += 1;
                }
                Some(b'?') => {
                    t += step(&text[t..]);
                    p += 1;
                }
                Some(c) if *c == text[t] => {
                    t += 1;
                    p += 1;
                }
                _ => match &mut again {
                    Some((after, from)) => {
                        *from += step(&text[*from..]);
                        (p, t) = (*after, *from);
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|c| *c == b'*')
    }

    /// Whether some text that starts with `start` may match.
    pub fn reaches(&self, start: &[u8]) -> bool {
        let mut places = self.open(0);
        for byte in start {
            let mut next: Vec<usize> = Vec::new();
            for place in places {
                match self.0.get(place) {
                    // `?` may be any byte of a longer character, so it may stay where it is: in doubt, yes.
                    Some(b'*' | b'?') => {
                        next.push(place);
                        next.extend(self.open(place + 1));
                    }
                    Some(c) if c == byte => next.extend(self.open(place + 1)),
                    _ => {}
                }
            }
            next.sort_unstable();
            next.dedup();
            if next.is_empty() {
                return false;
            }
            places = next;
        }
        true
    }

    /// Whether every text that starts with `start` matches. In doubt, no.
    pub fn covers(&self, start: &[u8]) -> bool {
        // A star at the end takes the rest of whatever the pattern before it has matched.
        let Some(head) = self.0.strip_suffix(b"*") else { return false };
        let head = Self(head.to_vec());
        (0..=start.len()).any(|end| head.matches(&start[..end]))
    }

    /// Returns the places that can be gone on from without a character, `place` first: each star may stand for nothing.
    fn open(&self, place: usize) -> Vec<usize> {
        let stars = self.0[place.min(self.0.len())..].iter().take_while(|c| **c == b'*').count();
        (place..=place + stars).collect()
    }
}
