//! `read`: a range of a file, as text or base64.

use crate::bound::Bound;
use crate::error::{Refusal, Result};
use crate::place;
use crate::tool::{Effect, Tool};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mw_model::ErrorKind;
use mw_model::text::path_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much is read when nothing is asked for, and at most.
const USUAL: u64 = 32 << 10;
const MOST: u64 = 1 << 20;

pub(crate) struct Read;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    Text,
    Base64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    /// The file.
    path: String,
    /// The first byte to read, usually 0.
    #[serde(default)]
    offset: u64,
    /// How many bytes to read: 1 to 1048576, usually 32768.
    length: Option<u64>,
    /// How the bytes come. Left out: as text where they are UTF-8, else in base64.
    encoding: Option<Encoding>,
    /// A past instant: a version, an RFC 3339 time or a snapshot's label. Left out: now.
    at: Option<String>,
    /// A fork of the world. Left out: the world itself.
    fork: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    path: String,
    /// The size of the whole file, in bytes.
    size: u64,
    /// The first byte that was read.
    offset: u64,
    /// The bytes as text; or else `base64` is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The bytes in base64; or else `text` is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// The `offset` to go on with; missing at the end of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// Names this content: give it to `write` as `if_etag` to be sure that nobody changed the file meanwhile.
    etag: String,
}

impl Tool for Read {
    const NAME: &'static str = "read";
    const TITLE: &'static str = "Read a file";
    const ABOUT: &'static str = "Reads a file or a range of its bytes. Text is never cut inside a character. A long file comes in parts: go \
                                 on with `offset` = `next`.";
    const EFFECT: Effect = Effect::Reads;
    type Ask = Ask;
    type Answer = Answer;

    fn run(bound: &Bound, ask: Ask) -> Result<Answer> {
        let session = bound.at(ask.fork.as_deref(), ask.at.as_deref())?;
        let path = place::below_root(&ask.path, "read")?;
        let length = ask.length.unwrap_or(USUAL);
        if !(1..=MOST).contains(&length) {
            return Err(Refusal::invalid(format!("length {length} is out of range; use 1 to {MOST}")));
        }
        place::file(&session, &path)?;
        let object = session.get(&path)?;
        let (size, etag) = (object.info.size, object.info.etag.clone());
        if ask.offset > size {
            return Err(Refusal::invalid(format!(
                "offset {} is behind the end of {:?}, which has {size} bytes",
                ask.offset, ask.path
            )));
        }
        // Three bytes more, so that the last character can be whole.
        let bytes = object.read(ask.offset, length as usize + 3)?;
        let wanted = (length as usize).min(bytes.len());
        let text = match ask.encoding {
            Some(Encoding::Base64) => None,
            Some(Encoding::Text) => Some(text(&bytes, wanted).ok_or_else(|| {
                Refusal::plain(
                    ErrorKind::Invalid,
                    format!(
                        "the bytes of {:?} at {} are not text; read them with the encoding base64",
                        ask.path, ask.offset
                    ),
                )
            })?),
            None => text(&bytes, wanted),
        };
        let taken = text.map_or(wanted, str::len);
        let end = ask.offset + taken as u64;
        Ok(Answer {
            path: path_text(&path),
            size,
            offset: ask.offset,
            text: text.map(str::to_owned),
            base64: text.is_none().then(|| STANDARD.encode(&bytes[..wanted])),
            next: (end < size).then_some(end),
            etag,
        })
    }
}

/// Returns the first `wanted` bytes as text, with the rest of the last character; none when they are not text.
fn text(bytes: &[u8], wanted: usize) -> Option<&str> {
    let more = bytes[wanted..].iter().take_while(|&&b| b & 0xC0 == 0x80).count();
    std::str::from_utf8(&bytes[..wanted + more]).ok().filter(|text| !text.contains('\0'))
}
