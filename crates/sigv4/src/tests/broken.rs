//! Properties of what reads bytes of strangers. Known troublemakers lie in `corpus/`, and every run edits them further.

use super::super::*;
use super::*;
use proptest::prelude::*;

fn corpus() -> Vec<String> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/authorization");
    std::fs::read_dir(dir).unwrap().map(|e| std::fs::read_to_string(e.unwrap().path()).unwrap()).collect()
}

fn edited() -> impl Strategy<Value = String> {
    let edits = prop::collection::vec(
        (any::<prop::sample::Index>(), 0..3u8, prop::sample::select(&b" ,;=/-AaZz09%\t"[..])),
        0..6,
    );
    (prop::sample::select(corpus()), edits).prop_map(|(text, edits)| {
        let mut bytes = text.into_bytes();
        for (at, what, byte) in edits {
            let at = at.index(bytes.len() + 1);
            match what {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

proptest! {
    /// A header that is not the signed one is never believed, whatever it says.
    #[test]
    fn authorizations(text in edited()) {
        let mut headers = signed(GET, EMPTY);
        if let Ok(value) = hyper::header::HeaderValue::from_str(&text) {
            headers.insert("authorization", value);
            prop_assert!(check(GET, &headers, NOW).is_err());
        }
        if let Some(given) = parse(&text) {
            prop_assert!(!given.key.is_empty() && !given.key.contains('/'));
            prop_assert!(text.starts_with("AWS4-HMAC-SHA256 "));
        }
        let _ = service_of(&text);
    }

    /// Encoding and decoding are each other's inverse, and the canonical form is its own.
    #[test]
    fn escapes(bytes in prop::collection::vec(any::<u8>(), 0..60), keep: bool) {
        let text = uri::encode(&bytes, keep);
        prop_assert_eq!(&uri::decode(&text).unwrap(), &bytes);
        prop_assert_eq!(uri::encode(&uri::decode(&text).unwrap(), keep), text);
    }

    /// Broken escapes are errors, and nothing else is.
    #[test]
    fn decoding(text in "[%0-9a-fg-z/&=+ ]{0,40}") {
        let broken = text.split('%').skip(1).any(|rest| {
            rest.len() < 2 || !rest.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit)
        });
        prop_assert_eq!(uri::decode(&text).is_err(), broken);
        prop_assert!(uri::pairs(&text).is_ok() || broken);
    }
}
