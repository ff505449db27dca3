//! `search`: lines by their content.
//!
//! A call looks at a bounded number of files and bytes for a bounded time and says where the next goes on, in the middle of a large file
//! if need be. Patterns are matched in time linear in what they look at; how much of it each byte takes is the pattern's size, which is
//! bounded too.

use crate::bound::Bound;
use crate::error::{Refusal, Result};
use crate::scan::Keys;
use crate::tool::{Effect, Tool};
use crate::tools::find::Names;
use crate::{page, place};
use bytes::Bytes;
use mw_env::Env;
use mw_model::FileType;
use mw_model::text::path_text;
use mw_world::{Object, ObjectInfo, Session};
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many keys and bytes one call looks at.
const KEYS: usize = 20_000;
const BYTES: u64 = 64 << 20;
/// How long one call looks, in nanoseconds.
const TIME: u64 = 5_000_000_000;
/// How much of a file is read at a time.
const PIECE: usize = 256 << 10;
/// A longer line is looked at in parts, in bytes.
const LINE: usize = 64 << 10;
/// How much of a line is shown, in bytes.
const SHOWN: usize = 240;
/// The longest pattern, and the most memory that it, and what is remembered while it is matched, may take, in bytes.
const LONGEST: usize = 4096;
const COMPILED: usize = 1 << 20;
const REMEMBERED: usize = 4 << 20;

pub(crate) struct Search;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The text to look for, letter by letter; or else give `regex`.
    text: Option<String>,
    /// A regular expression (RE2 syntax: no look-around, no back-references), matched line by line; or else give `text`.
    regex: Option<String>,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
    /// The directory or file in which to look; left out: the whole world.
    #[serde(default)]
    path: String,
    /// Look only into files that this glob names, as in `find`: `*.rs`.
    glob: Option<String>,
    /// The most matches to return: 1 to 500, usually 50.
    limit: Option<u32>,
    /// `next` of the last answer, to go on behind it.
    cursor: Option<String>,
    /// A past instant: a version, an RFC 3339 time or a snapshot's label. Left out: now.
    at: Option<String>,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// In byte order of paths, then by line.
    matches: Vec<Match>,
    /// How many files were looked into.
    searched: u64,
    /// How many were left out because they are not text.
    binary: u64,
    /// The cursor for what comes behind; missing when everything was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Match {
    path: String,
    /// The number of the line, from 1.
    line: u64,
    /// Where the line begins, in bytes: an `offset` for `read`.
    offset: u64,
    /// The line, or the part of a long one around the match.
    text: String,
}

fn wrong_cursor() -> Refusal {
    Refusal::invalid("this is no cursor of `search` for this file; leave it out to start over")
}

/// Where a search goes on: in a file, or behind it.
struct Place {
    key: Bytes,
    inside: Option<(u64, u64)>,
}

impl Place {
    fn parse(cursor: Option<&str>) -> Result<Option<Self>> {
        let Some(bytes) = page::place(cursor)? else { return Ok(None) };
        let (head, key) = bytes.split_at_checked(16).ok_or_else(wrong_cursor)?;
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        let (offset, line) = (number(&head[..8]), number(&head[8..]));
        let inside = (line > 0).then_some((offset, line));
        Ok(Some(Self { key: Bytes::copy_from_slice(key), inside }))
    }

    fn text(&self) -> String {
        let (offset, line) = self.inside.unwrap_or_default();
        page::cursor(&[&offset.to_be_bytes(), &line.to_be_bytes(), &self.key[..]].concat())
    }
}

impl Tool for Search {
    const NAME: &'static str = "search";
    const TITLE: &'static str = "Search in files";
    const ABOUT: &'static str = "Finds lines by a text or a regular expression, in all files or those that a glob names. A match has its \
                                 line number, and the offset with which `read` shows what is around it. Files that are not text are left out.";
    const EFFECT: Effect = Effect::Reads;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.at(ask.fork.as_deref(), ask.at.as_deref())?;
        let path = place::parse(&ask.path)?;
        let place = Place::parse(ask.cursor.as_deref())?;
        let mut looking = Looking {
            session: &session,
            pattern: pattern(&ask)?,
            limit: page::limit(ask.limit, 50, 500)?,
            bytes: BYTES,
            env: bound.store().env(),
            until: bound.store().env().monotonic().saturating_add(TIME),
            answer: Answer::default(),
        };
        let names = ask.glob.as_deref().map(Names::new).transpose()?;
        let attr = place::stat(&session, &path)?;
        if attr.kind != FileType::Directory {
            place::need_file(&session, &path, &attr)?;
            let from = place.and_then(|place| place.inside);
            looking.file(&path, from)?;
            return Ok(looking.answer);
        }
        let skip = place::prefix(&path).len();
        let mut after = Bytes::new();
        if let Some(place) = place {
            if place.inside.is_some() && !looking.file(&place.key, place.inside)? {
                return Ok(looking.answer);
            }
            after = place.key;
        }
        let mut keys = Keys::new(&session, &path, after.clone(), KEYS);
        let meant = |info: &ObjectInfo| {
            info.kind == FileType::File
                && names.as_ref().is_none_or(|names| names.has(info.key.get(skip..).unwrap_or_default()))
        };
        while let Some(info) = keys.next()? {
            if meant(&info) && !looking.file(&info.key, None)? {
                return Ok(looking.answer);
            }
            after = info.key;
        }
        looking.answer.next = keys.spent().then(|| Place { key: after, inside: None }.text());
        Ok(looking.answer)
    }
}

fn pattern(ask: &Ask) -> Result<Regex> {
    let text = match (&ask.text, &ask.regex) {
        (Some(text), None) => regex::escape(text),
        (None, Some(regex)) => regex.clone(),
        _ => return Err(Refusal::invalid("give either `text` or `regex`")),
    };
    if text.is_empty() || text.len() > LONGEST {
        return Err(Refusal::invalid(format!("a pattern has 1 to {LONGEST} bytes")));
    }
    RegexBuilder::new(&text)
        .case_insensitive(ask.ignore_case)
        .size_limit(COMPILED)
        .dfa_size_limit(REMEMBERED)
        .build()
        .map_err(|e| Refusal::invalid(format!("the regular expression is not taken: {e}")))
}

/// A search under way.
struct Looking<'a> {
    session: &'a Session,
    pattern: Regex,
    limit: usize,
    /// How many bytes may still be read, and until when.
    bytes: u64,
    env: &'a Env,
    until: u64,
    answer: Answer,
}

impl Looking<'_> {
    /// Looks into a file, from an offset where a line of that number starts. Returns false when the answer is full; then it says
    /// where to go on.
    fn file(&mut self, key: &Bytes, from: Option<(u64, u64)>) -> Result<bool> {
        let object = match self.session.get(key) {
            // Removed meanwhile.
            Err(e) if e.kind() == mw_model::ErrorKind::NotFound => return Ok(true),
            other => other?,
        };
        let (offset, line) = from.unwrap_or((0, 1));
        if offset > object.info.size || line > object.info.size.saturating_add(1) {
            return Err(wrong_cursor());
        }
        let mut lines = Lines::new(&object, offset, line);
        self.answer.searched += u64::from(from.is_none());
        loop {
            let read = lines.read;
            let Some((offset, number, text)) = lines.next()? else { return Ok(true) };
            if offset == 0 && text.contains(&0) {
                self.answer.binary += 1;
                self.bytes = self.bytes.saturating_sub(lines.read - read);
                if self.bytes > 0 {
                    return Ok(true);
                }
                self.answer.next = Some(Place { key: key.clone(), inside: None }.text());
                return Ok(false);
            }
            if let Some(found) = self.pattern.find(text) {
                let text = shown(text, found.start());
                self.answer.matches.push(Match { path: path_text(key), line: number, offset, text });
            }
            self.bytes = self.bytes.saturating_sub(lines.read - read);
            if self.answer.matches.len() >= self.limit || self.bytes == 0 || self.env.monotonic() >= self.until {
                let place = Place { key: key.clone(), inside: lines.place() };
                self.answer.next = Some(place.text());
                return Ok(false);
            }
        }
    }
}

/// The lines of an object, each with its offset and its number. A line that is too long comes in parts of the same number.
struct Lines<'a> {
    object: &'a Object,
    buffer: Vec<u8>,
    /// Where in the buffer the next line starts, and where the buffer starts in the object.
    at: usize,
    start: u64,
    number: u64,
    /// How many bytes have been read.
    read: u64,
}

impl<'a> Lines<'a> {
    fn new(object: &'a Object, start: u64, number: u64) -> Self {
        Self { object, buffer: Vec::new(), at: 0, start, number, read: 0 }
    }

    /// Where the next line starts, with its number; none when there is none.
    fn place(&self) -> Option<(u64, u64)> {
        Some((self.start + self.at as u64, self.number))
    }

    fn next(&mut self) -> Result<Option<(u64, u64, &[u8])>> {
        let mut known = self.at;
        loop {
            if let Some(end) = self.buffer[known..].iter().position(|&b| b == b'\n') {
                return Ok(Some(self.take(known + end, known + end + 1, 1)));
            }
            known = self.buffer.len();
            if known - self.at >= LINE {
                return Ok(Some(self.take(known, known, 0)));
            }
            let end = self.start + known as u64;
            let piece = self.object.read(end, PIECE)?;
            if piece.is_empty() {
                return Ok((known > self.at).then(|| self.take(known, known, 0)));
            }
            self.read += piece.len() as u64;
            self.buffer.drain(..self.at);
            self.start += self.at as u64;
            known -= self.at;
            self.at = 0;
            self.buffer.extend_from_slice(&piece);
        }
    }

    fn take(&mut self, end: usize, next: usize, lines: u64) -> (u64, u64, &[u8]) {
        let (from, number) = (self.at, self.number);
        self.at = next;
        self.number += lines;
        (self.start + from as u64, number, &self.buffer[from..end])
    }
}

/// Returns a line as text, or the part of it around a match.
fn shown(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= SHOWN {
        return String::from_utf8_lossy(line).into_owned();
    }
    let from = at.saturating_sub(SHOWN / 4).min(line.len() - SHOWN);
    let part = &line[from..from + SHOWN];
    // Characters that the cut divided are left out.
    let start = part.iter().position(|b| b & 0xC0 != 0x80).unwrap_or_default();
    let text = String::from_utf8_lossy(&part[start..]);
    let text = text.trim_end_matches('\u{FFFD}');
    let (before, after) = (if from > 0 { "…" } else { "" }, if from + SHOWN < line.len() { "…" } else { "" });
    format!("{before}{text}{after}")
}
