//! The S3 verbs, against the naive model and rule by rule.

mod content;
mod listing;
mod rules;
mod uploads;

use bytes::Bytes;
use mw_model::ErrorKind;
use mw_world::{Conditions, ListRequest, Listed, ObjectInfo, PutOptions, Session};

pub fn staged(session: &Session, content: &[u8]) -> mw_world::Staged {
    let mut staged = session.stage().expect("staged");
    for piece in content.chunks(70_001) {
        staged.push(piece).expect("pushed");
    }
    staged
}

pub fn put_with(session: &Session, key: &str, content: &[u8], options: &PutOptions) -> mw_world::Result<ObjectInfo> {
    session.put(key.as_bytes(), staged(session, content), options)
}

pub fn put(session: &Session, key: &str, content: &[u8]) -> ObjectInfo {
    put_with(session, key, content, &PutOptions::default()).expect("put")
}

pub fn get(session: &Session, key: &str) -> Option<Vec<u8>> {
    match session.get(key.as_bytes()) {
        Ok(object) => Some(object.read(0, usize::MAX >> 1).expect("read").to_vec()),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::NotFound);
            None
        }
    }
}

pub fn delete(session: &Session, key: &str) -> bool {
    session.delete(key.as_bytes(), &Conditions::default()).expect("deleted")
}

pub fn text(name: &[u8]) -> String {
    String::from_utf8(name.to_vec()).expect("UTF-8")
}

/// Lists page by page; prefixes end in `*`.
pub fn pages(session: &Session, prefix: &str, delimiter: Option<&str>, after: &str, limit: usize) -> Vec<Vec<String>> {
    let mut request = ListRequest {
        prefix: Bytes::copy_from_slice(prefix.as_bytes()),
        delimiter: delimiter.map(|d| Bytes::copy_from_slice(d.as_bytes())),
        after: Bytes::copy_from_slice(after.as_bytes()),
        limit,
    };
    let mut pages = Vec::new();
    loop {
        let page = session.list(&request).expect("listed");
        assert!(page.items.len() <= limit);
        let item = |item: &Listed| match item {
            Listed::Object(info) => {
                assert_eq!(session.head(&info.key).expect("an object that is listed is there"), *info);
                text(&info.key)
            }
            Listed::Prefix(prefix) => format!("{}*", text(prefix)),
        };
        pages.push(page.items.iter().map(item).collect());
        match page.next {
            Some(next) => request.after = next,
            None => return pages,
        }
        assert!(pages.len() < 10_000, "the listing never ends");
    }
}

pub fn list(session: &Session, prefix: &str, delimiter: Option<&str>) -> Vec<String> {
    pages(session, prefix, delimiter, "", 1000).concat()
}

pub fn keys(session: &Session) -> Vec<String> {
    list(session, "", None)
}
