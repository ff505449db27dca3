//! Properties of what reads bytes of strangers: the framing of chunks, keys as text, copy sources, queries, documents. Known troublemakers
//! lie in `corpus/`, and every run edits them further.

use crate::bucket_tags;
use crate::chunks::tests::run;
use crate::guard::pairs;
use crate::names::{key_of, text_of, xml_of};
use crate::source::Source;
use proptest::prelude::*;
use s3s::Body;
use s3s::dto::{CORSConfiguration, CompletedMultipartUpload, Delete, Tag, Tagging, VersioningConfiguration};
use s3s::xml::{Deserialize, Deserializer, Serialize, Serializer};

/// The troublemakers of one kind.
fn corpus(kind: &str) -> Vec<Vec<u8>> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(kind);
    let all: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| std::fs::read(e.unwrap().path()).unwrap()).collect();
    assert!(!all.is_empty());
    all
}

/// One of the corpus, with some bytes changed, put in, or taken out.
pub(crate) fn edited(kind: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..3u8, any::<u8>()), 0..6);
    (prop::sample::select(corpus(kind)), edits).prop_map(|(mut bytes, edits)| {
        for (at, what, byte) in edits {
            let at = at.index(bytes.len() + 1);
            match what {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        bytes
    })
}

/// Takes chunks apart the plain way; none for what is no whole sequence of chunks.
fn data_of(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    loop {
        let end = body.windows(2).position(|w| w == b"\r\n")?;
        let line = std::str::from_utf8(&body[..end]).ok()?;
        let size = usize::from_str_radix(line.split(';').next()?, 16).ok()?;
        body = &body[end + 2..];
        if size == 0 {
            return Some(data);
        }
        data.extend_from_slice(body.get(..size)?);
        body = body.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

/// Reads a document as the router does.
fn document<T: for<'xml> Deserialize<'xml>>(bytes: &[u8]) -> Option<T> {
    let mut reader = Deserializer::new(bytes);
    T::deserialize(&mut reader).ok().filter(|_| reader.expect_eof().is_ok())
}

proptest! {
    /// A document of whatever kind ends in an answer, and says no more than it has room for.
    #[test]
    fn documents(bytes in edited("documents")) {
        let room = bytes.len();
        if let Some(delete) = document::<Delete>(&bytes) {
            prop_assert!(delete.objects.iter().map(|object| object.key.len()).sum::<usize>() <= room);
        }
        if let Some(tagging) = document::<Tagging>(&bytes) {
            let texts = tagging.tag_set.iter().flat_map(|tag| [&tag.key, &tag.value]).flatten();
            prop_assert!(texts.map(String::len).sum::<usize>() <= room, "an entity grew");
        }
        let _ = document::<CompletedMultipartUpload>(&bytes);
        let _ = document::<CORSConfiguration>(&bytes);
        let _ = document::<VersioningConfiguration>(&bytes);
        if let Ok(settings) = bucket_tags::of_new(&Body::from(bytes)) {
            prop_assert!(settings.len() <= 1);
        }
    }

    /// The tags of a new bucket are those of its document, in their order, whatever is in them.
    #[test]
    fn tags_of_a_new_bucket(tags in prop::collection::vec(("\\PC{1,9}", "\\PC{0,9}"), 0..5)) {
        let mut text = Vec::new();
        let set: Vec<Tag> =
            tags.iter().map(|(key, value)| Tag { key: Some(key.clone()), value: Some(value.clone()) }).collect();
        Tagging { tag_set: set }.serialize(&mut Serializer::new(&mut text)).unwrap();
        let text = String::from_utf8(text).unwrap();
        let text = text.replace("<Tagging>", "<CreateBucketConfiguration>").replace("TagSet>", "Tags>");
        let text = text.replace("</Tagging>", "</CreateBucketConfiguration>");
        let read = bucket_tags::of_new(&Body::from(text));
        let twice = tags.iter().enumerate().any(|(at, (key, _))| tags[..at].iter().any(|(other, _)| other == key));
        prop_assert_eq!(read.is_err(), twice);
        let kept = read.unwrap_or_default().pop().map(|(_, value)| serde_json::from_slice(&value).unwrap());
        let wanted = (!tags.is_empty() && !twice).then_some(tags);
        prop_assert_eq!(kept, wanted);
    }

    /// Where the network cuts a body changes nothing, and what passes holds the declared data.
    #[test]
    fn chunks(body in edited("chunks"), cut in 1..20usize, declared in 0..8u64, unsigned: bool) {
        let whole = run(&body, body.len(), unsigned, declared);
        let pieces = run(&body, cut, unsigned, declared);
        prop_assert_eq!(whole.is_ok(), pieces.is_ok());
        if let (Ok(whole), Ok(pieces)) = (whole, pieces) {
            let (one, other) = (data_of(&whole), data_of(&pieces));
            prop_assert_eq!(&one, &other);
            prop_assert_eq!(one.as_ref().map(Vec::len), Some(declared as usize));
            prop_assert_eq!(one, data_of(&body), "what goes on is what came");
        }
    }

    /// Every key has a text, and the text leads back to it.
    #[test]
    fn keys_come_back(key in prop_oneof![edited("keys"), prop::collection::vec(any::<u8>(), 0..40)]) {
        prop_assert_eq!(&key_of(&text_of(&key)).unwrap()[..], &key[..]);
        prop_assert_eq!(&key_of(&xml_of(&key)).unwrap()[..], &key[..]);
    }

    /// A text that is taken is one under which its key is shown, so that no third text names that key.
    #[test]
    fn texts_are_unique(text in "\\PC{0,12}") {
        if let Ok(key) = key_of(&text) {
            prop_assert!(text_of(&key) == text || xml_of(&key) == text, "{key:?} is shown otherwise");
        }
    }

    /// A copy source is decoded once: what is encoded comes out, with a leading slash or without.
    #[test]
    fn copy_sources(key in prop_oneof![edited("keys"), prop::collection::vec(any::<u8>(), 1..40)]) {
        prop_assume!(!key.is_empty());
        let text = text_of(&key);
        let escaped: String = text.bytes().map(|b| format!("%{b:02X}")).collect();
        for source in [format!("bucket/{escaped}"), format!("/bucket/{escaped}"), format!("bucket%2F{escaped}")] {
            let read = Source::parse(source.as_bytes()).unwrap();
            prop_assert_eq!(&read.bucket, "bucket");
            prop_assert_eq!(&read.key[..], &key[..]);
        }
    }

    /// Whatever comes ends in an answer.
    #[test]
    fn bytes_of_strangers(bytes in prop_oneof![edited("keys"), edited("chunks"), prop::collection::vec(any::<u8>(), 0..80)]) {
        let _ = Source::parse(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = (pairs(&text), key_of(&text));
    }
}
