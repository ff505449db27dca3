//! Versions over the wire: ids, markers, listings and deletions, as the AWS reference has them.

use crate::client::{Answer, Ask, Client, encode};
use crate::house::House;
use mw_world::Role;

const ENABLED: &str = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
const SUSPENDED: &str = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";

fn versioned() -> House {
    let house = House::with_base();
    house.root.put("/base?versioning=", ENABLED).ok();
    house
}

#[track_caller]
fn put(client: &Client, key: &str, body: &str) -> String {
    client.put(&format!("/base/{key}"), body).ok().header("x-amz-version-id").unwrap().to_owned()
}

/// What a listing shows: each version or deletion in the order of its list, with what clients ask of it.
fn listed(answer: &Answer) -> Vec<(String, String, String, bool)> {
    let mut all = Vec::new();
    for (name, marker) in [("Version", false), ("DeleteMarker", true)] {
        for part in answer.tags(name) {
            let one = Answer { status: 200, headers: Vec::new(), body: part.into_bytes() };
            all.push((one.tag("Key"), one.tag("VersionId"), one.tag("IsLatest"), marker));
        }
    }
    all
}

#[test]
fn the_setting_is_answered_as_it_was_put() {
    let house = House::with_base();
    let root = &house.root;
    let status = || root.get("/base?versioning=").ok().tag("Status");
    assert_eq!(status(), "");
    let answer = root.put("/base/k", "x").ok();
    assert_eq!(answer.header("x-amz-version-id"), None);
    let listed = root.get("/base?versions=").ok();
    assert_eq!((listed.tags("VersionId"), listed.tags("IsLatest")), (vec!["null".to_owned()], vec!["true".to_owned()]));
    for bad in ["<VersioningConfiguration/>", "<VersioningConfiguration><Status>On</Status></VersioningConfiguration>"]
    {
        assert_eq!(root.put("/base?versioning=", bad).fault().0, 400, "{bad}");
    }
    root.put("/base?versioning=", ENABLED).ok();
    assert_eq!(status(), "Enabled");
    root.put("/base?versioning=", SUSPENDED).ok();
    assert_eq!(status(), "Suspended");
    for role in [Role::Reader, Role::Editor] {
        let key = house.key(&[("base", role)]);
        assert_eq!(key.put("/base?versioning=", ENABLED).fault(), (403, "AccessDenied".into()));
        assert_eq!(key.get("/base?versioning=").ok().tag("Status"), "Suspended");
    }
    assert_eq!(root.put("/none?versioning=", ENABLED).fault(), (404, "NoSuchBucket".into()));
}

#[test]
fn each_put_is_a_version_and_a_deletion_is_one_too() {
    let house = versioned();
    let root = &house.root;
    let (one, two) = (put(root, "k", "one"), put(root, "k", "two!"));
    assert!(one.parse::<u64>().unwrap() < two.parse::<u64>().unwrap() && one.len() == 19);
    let got = root.get("/base/k").ok();
    assert_eq!((got.text(), got.header("x-amz-version-id")), ("two!".into(), Some(two.as_str())));
    for method in ["GET", "HEAD"] {
        let old = root.ask(&Ask::new(method, &format!("/base/k?versionId={one}"))).ok();
        assert_eq!((old.header("x-amz-version-id"), old.header("content-length")), (Some(one.as_str()), Some("3")));
    }
    let part = root.ask(&Ask::new("GET", &format!("/base/k?versionId={one}")).header("range", "bytes=1-1"));
    assert_eq!((part.status, part.text()), (206, "n".into()));
    let deleted = root.delete("/base/k");
    let marker = deleted.header("x-amz-version-id").unwrap().to_owned();
    assert_eq!((deleted.status, deleted.header("x-amz-delete-marker")), (204, Some("true")));
    for method in ["GET", "HEAD"] {
        let gone = root.ask(&Ask::new(method, "/base/k"));
        assert_eq!(gone.status, 404);
        assert_eq!(gone.header("x-amz-delete-marker"), Some("true"));
        assert_eq!(gone.header("x-amz-version-id"), Some(marker.as_str()));
        let named = root.ask(&Ask::new(method, &format!("/base/k?versionId={marker}")));
        assert_eq!((named.status, named.header("allow")), (405, Some("DELETE")));
        assert_eq!(named.header("x-amz-delete-marker"), Some("true"));
        assert!(named.header("last-modified").is_some());
    }
    assert_eq!(root.get("/base/k").code(), "NoSuchKey");
    assert_eq!(root.get(&format!("/base/k?versionId={marker}")).code(), "MethodNotAllowed");
    assert!(root.get("/base").ok().tags("Key").is_empty());
    let all = listed(&root.get("/base?versions=").ok());
    let row = |id: &str, latest: &str, marker| ("k".to_owned(), id.to_owned(), latest.to_owned(), marker);
    assert_eq!(all, [row(&two, "false", false), row(&one, "false", false), row(&marker, "true", true)]);
    // The deletion deleted: the object is there again.
    let undone = root.delete(&format!("/base/k?versionId={marker}"));
    assert_eq!((undone.status, undone.header("x-amz-delete-marker")), (204, Some("true")));
    assert_eq!(undone.header("x-amz-version-id"), Some(marker.as_str()));
    assert_eq!(root.get("/base/k").ok().text(), "two!");
    // The current version deleted for good: the one before is current.
    let gone = root.delete(&format!("/base/k?versionId={two}"));
    assert_eq!((gone.status, gone.header("x-amz-delete-marker")), (204, None));
    assert_eq!(root.get("/base/k").ok().text(), "one");
    assert_eq!(root.get(&format!("/base/k?versionId={two}")).fault(), (404, "NoSuchVersion".into()));
    assert_eq!(root.delete(&format!("/base/k?versionId={two}")).status, 204);
    for bad in ["x", "-1", "007", "18446744073709551616"] {
        assert_eq!(root.get(&format!("/base/k?versionId={bad}")).fault(), (400, "InvalidArgument".into()), "{bad}");
        assert_eq!(root.delete(&format!("/base/k?versionId={bad}")).fault(), (400, "InvalidArgument".into()), "{bad}");
    }
    // A key that never was gets a marker too.
    let never = root.delete("/base/never");
    assert_eq!((never.status, never.header("x-amz-delete-marker")), (204, Some("true")));
    assert_eq!(root.delete("/base").fault(), (409, "BucketNotEmpty".into()));
}

#[test]
fn what_was_there_before_is_null_and_a_suspended_bucket_has_one_null_of_each_key() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/k", "before").ok();
    root.put("/base?versioning=", ENABLED).ok();
    assert_eq!(root.get("/base/k").ok().header("x-amz-version-id"), Some("null"));
    let one = put(root, "k", "one");
    assert_eq!(root.get("/base/k?versionId=null").ok().text(), "before");
    root.put("/base?versioning=", SUSPENDED).ok();
    assert_eq!(put(root, "k", "null two"), "null");
    assert_eq!(put(root, "k", "null three"), "null");
    assert_eq!(root.get("/base/k?versionId=null").ok().text(), "null three");
    assert_eq!(root.get(&format!("/base/k?versionId={one}")).ok().text(), "one");
    assert_eq!(listed(&root.get("/base?versions=").ok()).len(), 2);
    let deleted = root.delete("/base/k");
    assert_eq!(
        (deleted.header("x-amz-version-id"), deleted.header("x-amz-delete-marker")),
        (Some("null"), Some("true"))
    );
    assert_eq!(root.get("/base/k?versionId=null").fault(), (405, "MethodNotAllowed".into()));
    let all = listed(&root.get("/base?versions=").ok());
    assert_eq!(all.iter().map(|v| (v.1.as_str(), v.3)).collect::<Vec<_>>(), [(one.as_str(), false), ("null", true)]);
    root.delete("/base/k?versionId=null").ok();
    assert_eq!(root.get("/base/k").ok().text(), "one");
}

#[test]
fn listings_go_on_behind_a_key_and_a_version_at_every_size() {
    let house = versioned();
    let root = &house.root;
    for key in ["a", "b/1", "b/2", "c"] {
        for n in 0..3 {
            put(root, key, &format!("{n}"));
        }
    }
    root.delete("/base/a").ok();
    root.delete("/base/b/1").ok();
    let whole = root.get("/base?versions=").ok();
    let mut all = listed(&whole);
    assert_eq!((all.len(), whole.tag("IsTruncated")), (14, "false".into()));
    all.sort();
    for size in [1, 2, 3, 5, 13, 14] {
        let (mut found, mut marker) = (Vec::new(), String::new());
        loop {
            let page = root.get(&format!("/base?versions=&max-keys={size}{marker}")).ok();
            let items = listed(&page);
            assert!(items.len() <= size && page.tag("MaxKeys") == size.to_string());
            found.extend(items);
            if page.tag("IsTruncated") == "false" {
                break;
            }
            marker = format!(
                "&key-marker={}&version-id-marker={}",
                encode(&page.tag("NextKeyMarker")),
                page.tag("NextVersionIdMarker")
            );
        }
        found.sort();
        assert_eq!(found, all, "pages of {size}");
    }
    let rolled = root.get("/base?versions=&delimiter=%2F").ok();
    assert_eq!((listed(&rolled).len(), rolled.tags("CommonPrefixes").len()), (7, 1));
    let only = root.get("/base?versions=&prefix=b%2F1").ok();
    assert_eq!(listed(&only).len(), 4);
    let behind = root.get("/base?versions=&key-marker=b%2F2").ok();
    assert!(listed(&behind).iter().all(|v| v.0 == "c"));
    let none = root.get("/base?versions=&max-keys=0").ok();
    assert_eq!((listed(&none).len(), none.tag("IsTruncated")), (0, "false".into()));
    let lone = root.get("/base?versions=&version-id-marker=1");
    assert_eq!(lone.fault(), (400, "InvalidArgument".into()));
    // Empty parameters are as absent ones.
    let empty = root.get("/base?versions=&prefix=&key-marker=&version-id-marker=").ok();
    assert_eq!(listed(&empty).len(), 14);
}

#[test]
fn bulk_deletes_name_markers_and_versions() {
    let house = versioned();
    let root = &house.root;
    let (one, _) = (put(root, "k", "one"), put(root, "k", "two"));
    let body = format!(
        "<Delete><Object><Key>k</Key></Object><Object><Key>none</Key></Object>\
         <Object><Key>k</Key><VersionId>{one}</VersionId></Object><Object><Key>k</Key><VersionId>x</VersionId></Object></Delete>"
    );
    let answer = root.post("/base?delete=", &body).ok();
    let deleted: Vec<Answer> = answer
        .tags("Deleted")
        .into_iter()
        .map(|part| Answer { status: 200, headers: Vec::new(), body: part.into_bytes() })
        .collect();
    assert_eq!(deleted.len(), 3);
    for at in [0, 1] {
        assert_eq!((deleted[at].tag("DeleteMarker"), deleted[at].tag("VersionId")), ("true".into(), String::new()));
        assert_eq!(deleted[at].tag("DeleteMarkerVersionId").len(), 19);
    }
    assert_eq!((deleted[2].tag("VersionId"), deleted[2].tag("DeleteMarker")), (one.clone(), String::new()));
    assert_eq!((answer.tag("Code"), answer.tags("Error").len()), ("InvalidArgument".into(), 1));
    assert_eq!(root.get(&format!("/base/k?versionId={one}")).fault(), (404, "NoSuchVersion".into()));
    let marker = deleted[0].tag("DeleteMarkerVersionId");
    let body = format!("<Delete><Object><Key>k</Key><VersionId>{marker}</VersionId></Object></Delete>");
    let answer = root.post("/base?delete=", &body).ok();
    assert_eq!((answer.tag("DeleteMarker"), answer.tag("DeleteMarkerVersionId")), ("true".into(), marker));
    assert_eq!(root.get("/base/k").ok().text(), "two");
}

#[test]
fn copies_tags_attributes_and_uploads_know_versions() {
    let house = versioned();
    let root = &house.root;
    let (one, two) = (put(root, "k", "one"), put(root, "k", "two"));
    let copy = |source: &str, to: &str| root.ask(&Ask::new("PUT", to).header("x-amz-copy-source", source));
    let back = copy(&format!("/base/k?versionId={one}"), "/base/k").ok();
    assert_eq!(back.header("x-amz-copy-source-version-id"), Some(one.as_str()));
    let three = back.header("x-amz-version-id").unwrap().to_owned();
    assert!(three > two);
    assert_eq!(root.get("/base/k").ok().text(), "one");
    let plain = copy("/base/k", "/base/c").ok();
    assert_eq!(plain.header("x-amz-copy-source-version-id"), Some(three.as_str()));
    assert_eq!(copy("/base/k?versionId=1", "/base/c").fault(), (404, "NoSuchVersion".into()));
    let marker = root.delete("/base/k").header("x-amz-version-id").unwrap().to_owned();
    assert_eq!(copy("/base/k", "/base/c").fault(), (404, "NoSuchKey".into()));
    assert_eq!(copy(&format!("/base/k?versionId={marker}"), "/base/c").fault(), (400, "InvalidRequest".into()));
    // Tags and attributes of a version.
    let tagging = "<Tagging><TagSet><Tag><Key>t</Key><Value>v</Value></Tag></TagSet></Tagging>";
    let tagged = root.put(&format!("/base/k?tagging=&versionId={one}"), tagging).ok();
    assert_eq!(tagged.header("x-amz-version-id"), Some(one.as_str()));
    assert_eq!(root.get(&format!("/base/k?tagging=&versionId={one}")).ok().tags("Value"), ["v"]);
    assert!(root.get(&format!("/base/k?tagging=&versionId={two}")).ok().tags("Value").is_empty());
    assert_eq!(root.put("/base/k?tagging=", tagging).fault(), (404, "NoSuchKey".into()));
    let attributes = root.ask(
        &Ask::new("GET", &format!("/base/k?attributes=&versionId={two}"))
            .header("x-amz-object-attributes", "ObjectSize"),
    );
    assert_eq!((attributes.header("x-amz-version-id"), attributes.tag("ObjectSize")), (Some(two.as_str()), "3".into()));
    // An upload makes a version, and copies a part from one.
    let id = root.post("/base/m?uploads=", "").ok().tag("UploadId");
    let part = root
        .ask(
            &Ask::new("PUT", &format!("/base/m?partNumber=1&uploadId={id}"))
                .header("x-amz-copy-source", &format!("/base/k?versionId={two}")),
        )
        .ok();
    assert_eq!(part.header("x-amz-copy-source-version-id"), Some(two.as_str()));
    let body = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part></CompleteMultipartUpload>",
        part.tag("ETag")
    );
    let done = root.post(&format!("/base/m?uploadId={id}"), &body).ok();
    assert_eq!(done.header("x-amz-version-id").unwrap().len(), 19);
    assert_eq!(root.get("/base/m").ok().text(), "two");
}

#[test]
fn an_instant_of_a_bucket_without_versions_is_a_version_id() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/k", "one").ok();
    let then = house.store.session(&house.root_principal(), "base").unwrap().info().unwrap().version;
    root.put("/base/k", "two").ok();
    assert_eq!(root.get(&format!("/base/k?versionId={then}")).ok().text(), "one");
    assert_eq!(root.get("/base/k?versionId=null").ok().text(), "two");
    assert_eq!(root.get("/base/k?versionId=x").fault(), (400, "InvalidArgument".into()));
    assert_eq!(root.delete(&format!("/base/k?versionId={then}")).status, 204);
    assert_eq!(root.get("/base/k").ok().text(), "two");
    assert_eq!(root.delete("/base/k?versionId=null").status, 204);
    assert_eq!(root.get("/base/k").fault(), (404, "NoSuchKey".into()));
}

#[test]
fn conditions_are_about_the_object_that_is_there_or_the_version_that_is_named() {
    let house = versioned();
    let root = &house.root;
    let ask = |method: &str, path: &str, name: &str, value: &str| {
        root.ask(&Ask::new(method, path).header(name, value).body(if method == "PUT" { "new" } else { "" }))
    };
    let one = ask("PUT", "/base/k", "if-none-match", "*").ok();
    let (id, tag) = (one.header("x-amz-version-id").unwrap().to_owned(), one.header("etag").unwrap().to_owned());
    let two = put(root, "k", "two");
    assert_eq!(ask("PUT", "/base/k", "if-none-match", "*").fault(), (412, "PreconditionFailed".into()));
    assert_eq!(ask("PUT", "/base/k", "if-match", &tag).status, 412, "that is an older version's");
    let named = format!("/base/k?versionId={id}");
    assert_eq!(ask("GET", &named, "if-none-match", &tag).status, 304);
    assert_eq!(ask("GET", &named, "if-match", "\"x\"").status, 412);
    assert_eq!(ask("DELETE", &named, "if-match", "\"x\"").fault(), (412, "PreconditionFailed".into()));
    assert_eq!(ask("DELETE", &named, "if-match", &tag).status, 204);
    assert_eq!(ask("DELETE", &named, "if-match", "\"x\"").status, 204, "it is gone already");
    assert_eq!(ask("DELETE", "/base/k", "if-match", &tag).status, 412);
    assert_eq!(root.get("/base/k").ok().header("x-amz-version-id"), Some(two.as_str()));
    root.delete("/base/k").ok();
    assert_eq!(
        ask("PUT", "/base/k", "if-match", "*").fault(),
        (404, "NoSuchKey".into()),
        "a deleted key has no object"
    );
    ask("PUT", "/base/k", "if-none-match", "*").ok();
}

#[test]
fn many_writers_of_one_key_lose_no_version_and_many_deleters_leave_none() {
    let house = versioned();
    let root = &house.root;
    let mut ids: Vec<String> = std::thread::scope(|scope| {
        let writer = |n: usize| (0..6).map(|i| put(root, "k", &format!("{n} {i}"))).collect::<Vec<_>>();
        let threads: Vec<_> = (0..6).map(|n| scope.spawn(move || writer(n))).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 36);
    let shown = listed(&root.get("/base?versions=").ok());
    assert_eq!(shown.len(), 36);
    assert_eq!(shown.iter().filter(|v| v.2 == "true").count(), 1);
    let newest_first: Vec<&String> = shown.iter().map(|v| &v.1).collect();
    assert!(newest_first.is_sorted_by(|a, b| a > b));
    let objects: String =
        ids.iter().map(|id| format!("<Object><Key>k</Key><VersionId>{id}</VersionId></Object>")).collect();
    let body = format!("<Delete>{objects}</Delete>");
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| root.post("/base?delete=", &body))).collect();
        for answer in threads {
            assert!(answer.join().unwrap().ok().tags("Error").is_empty());
        }
    });
    assert!(listed(&root.get("/base?versions=").ok()).is_empty());
    root.delete("/base").ok();
}

#[test]
fn keys_of_every_kind_have_versions() {
    let house = versioned();
    let root = &house.root;
    for key in ["_", ":", " ", "a/b/", "a//b", "%2F", "é", "\u{1}x", "k\u{0}"] {
        let path = crate::client::path("base", key);
        let first = root.put(&path, "one").ok().header("x-amz-version-id").unwrap().to_owned();
        root.put(&path, "two").ok();
        root.delete(&path).ok();
        assert_eq!(root.get(&format!("{path}?versionId={first}")).ok().text(), "one", "{key:?}");
        let all = root.get(&format!("/base?versions=&encoding-type=url&prefix={}", encode(key))).ok();
        let written = key.split('/').map(encode).collect::<Vec<_>>().join("/");
        let of_key = listed(&all).into_iter().filter(|v| v.0 == written).count();
        assert_eq!(of_key, 3, "{key:?} {}", all.text());
    }
}
