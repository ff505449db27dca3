//! The Tigris dialect: verbs by header, reads of past instants, JSON beside XML, and what is refused.

use crate::client::{Answer, Ask, Client, path};
use crate::house::House;
use mw_world::Role;
use std::io::Read;

fn put(name: &str, list: &[(&str, &str)]) -> Ask {
    list.iter().fold(Ask::new("PUT", &format!("/{name}/")), |ask, (n, v)| ask.header(n, v))
}

fn snapshot(client: &Client, bucket: &str, value: &str) -> String {
    let answer = client.ask(&put(bucket, &[("x-tigris-snapshot", value)])).ok();
    answer.header("x-tigris-snapshot-version").unwrap().to_owned()
}

fn fork(client: &Client, base: &str, name: &str) -> Answer {
    client.ask(&put(name, &[("x-tigris-fork-source-bucket", base)]))
}

fn at(method: &str, target: &str, version: &str) -> Ask {
    Ask::new(method, target).header("x-tigris-snapshot-version", version)
}

/// A request as clients send it that read JSON.
fn json(method: &str, target: &str) -> Ask {
    Ask::new(method, target).header("accept", "application/json").header("content-type", "application/json")
}

fn head(client: &Client, bucket: &str) -> Answer {
    client.ask(&Ask::new("HEAD", &format!("/{bucket}"))).ok()
}

fn document(answer: &Answer) -> serde_json::Value {
    assert_eq!(answer.header("content-type"), Some("application/json"), "{}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

#[test]
fn snapshots_are_taken_listed_read_and_deleted() {
    let house = House::new();
    let root = &house.root;
    root.ask(&put("base", &[("x-tigris-enable-snapshot", "true")])).ok();
    assert_eq!(head(root, "base").header("x-tigris-enable-snapshot"), Some("true"));
    root.put("/base/k", "one").ok();
    root.put("/base/only-then", "x").ok();
    let first = snapshot(root, "base", "true");
    assert_eq!(first.len(), 19, "UNIX nanoseconds: {first}");
    root.put("/base/k", "two").ok();
    root.delete("/base/only-then").ok();
    root.put("/base/new", "n").ok();
    let second = snapshot(root, "base", "true; name=before the run; 2");
    root.put("/base/k", "three").ok();

    for (version, content) in [(&first, "one"), (&second, "two")] {
        assert_eq!(root.ask(&at("GET", "/base/k", version)).ok().text(), content);
        assert_eq!(root.ask(&at("GET", "/base/k", version).header("range", "bytes=0-0")).ok().text(), content[..1]);
        assert_eq!(root.ask(&at("HEAD", "/base/k", version)).ok().header("content-length"), Some("3"));
    }
    assert_eq!(root.get("/base/k").ok().text(), "three");
    for list in ["/base?list-type=2", "/base"] {
        assert_eq!(root.ask(&at("GET", list, &first)).ok().tags("Key"), ["k", "only-then"]);
        assert_eq!(root.ask(&at("GET", list, &second)).ok().tags("Key"), ["k", "new"]);
    }
    // Any instant of the history, not only a snapshot.
    let between = (second.parse::<u64>().unwrap() - 1).to_string();
    assert_eq!(root.ask(&at("GET", "/base/k", &between)).ok().text(), "two");
    assert_eq!(root.ask(&at("GET", "/base/only-then", &second)).fault(), (404, "NoSuchKey".into()));
    assert_eq!(root.ask(&at("GET", "/base/k", "1")).fault(), (404, "NoSuchVersion".into()));
    for bad in ["x", "9999999999999999999", "1.5"] {
        assert_eq!(root.ask(&at("GET", "/base/k", bad)).fault(), (400, "InvalidArgument".into()), "{bad}");
    }
    // A copy from an instant.
    root.ask(&at("PUT", "/base/back", &first).header("x-amz-copy-source", "base/k")).ok();
    root.ask(&at("PUT", "/base/k", &first).header("x-amz-copy-source", "base/k")).ok();
    assert_eq!((root.get("/base/back").text(), root.get("/base/k").text()), ("one".into(), "one".into()));

    let list = |query: &str| root.ask(&Ask::new("GET", query).header("x-tigris-snapshot", "base")).ok();
    let all = list("/?x-id=ListBuckets");
    assert_eq!(all.tags("Name"), [format!("{second}; name=before the run; 2"), first.clone()]);
    assert!(all.tags("CreationDate").iter().all(|date| date.ends_with('Z')));
    let page = list("/?max-buckets=1");
    assert_eq!(page.tags("Name"), [format!("{second}; name=before the run; 2")]);
    let rest = list(&format!("/?max-buckets=1&continuation-token={}", page.tag("ContinuationToken")));
    assert_eq!((rest.tags("Name"), rest.tags("ContinuationToken").len()), (vec![first.clone()], 0));

    let delete = |version: &str| root.ask(&at("DELETE", "/base/", version));
    assert_eq!(delete(&second).ok().status, 204);
    assert_eq!(list("/").tags("Name"), std::slice::from_ref(&first));
    assert_eq!(delete(&second).fault(), (404, "NoSuchVersion".into()));
    assert_eq!(delete("junk").fault(), (400, "InvalidArgument".into()));
    assert_eq!(root.ask(&at("DELETE", "/base/?cors", &first)).fault(), (400, "InvalidArgument".into()));
    assert_eq!(root.get("/base/k").ok().text(), "one", "the bucket is untouched");
    let forced = at("DELETE", "/base/", &first).header("tigris-force-delete", "true");
    assert_eq!(root.ask(&forced).fault(), (400, "InvalidArgument".into()));
    assert_eq!(list("/").tags("Name"), [first]);
}

#[test]
fn forks_come_from_now_or_from_an_instant_and_say_so() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/k", "one").ok();
    let version = snapshot(root, "base", "true; name=v1");
    root.put("/base/k", "two").ok();
    let made = fork(root, "base", "now").ok();
    assert_eq!(made.header("location"), Some("/now"));
    for (name, given) in [("then", version.clone()), ("named", format!("{version}; name=v1"))] {
        let headers = [("x-tigris-fork-source-bucket", "base"), ("x-tigris-fork-source-bucket-snapshot", &*given)];
        root.ask(&put(name, &headers)).ok();
        let told = head(root, name);
        assert_eq!(told.header("x-tigris-fork-source-bucket"), Some("base"));
        assert_eq!(told.header("x-tigris-fork-source-bucket-snapshot"), Some(&*version));
    }
    assert_eq!((root.get("/now/k").text(), root.get("/then/k").text()), ("two".into(), "one".into()));
    assert_eq!(head(root, "base").header("x-tigris-is-fork-parent"), Some("true"));
    assert_eq!(head(root, "now").header("x-tigris-is-fork-parent"), None);
    assert_eq!(head(root, "now").header("x-tigris-enable-snapshot"), Some("false"));

    assert_eq!(fork(root, "base", "now").fault(), (409, "BucketAlreadyOwnedByYou".into()));
    assert!(fork(root, "base", "now").text().contains("already exists"), "clients look for these words");
    assert_eq!(fork(root, "nowhere", "other").fault(), (404, "NoSuchBucket".into()));
    let unkept = [("x-tigris-fork-source-bucket", "base"), ("x-tigris-fork-source-bucket-snapshot", "17")];
    assert_eq!(root.ask(&put("other", &unkept)).fault(), (404, "NoSuchVersion".into()));
    assert_eq!(root.ask(&Ask::new("HEAD", "/other")).status, 404);

    // A base may go before its forks; forced or not, as its client says it.
    fork(root, "now", "deep").ok();
    assert_eq!(root.delete("/base").fault(), (409, "BucketNotEmpty".into()));
    assert_eq!(root.ask(&Ask::new("DELETE", "/base/").header("tigris-force-delete", "true")).status, 204);
    assert_eq!(root.ask(&Ask::new("DELETE", "/then").header("x-tigris-force-delete", "true")).status, 204);
    assert_eq!(root.get("/deep/k").ok().text(), "two");
}

#[test]
fn a_merge_brings_the_fork_home_or_says_what_stands_against_it() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/same", "0").ok();
    root.put("/base/gone", "0").ok();
    fork(root, "base", "run").ok();
    fork(root, "run", "deep").ok();
    root.put("/run/new", "n").ok();
    root.delete("/run/gone").ok();
    let merge = |target: &str, source: &str| root.ask(&put(target, &[("x-tigris-merge-source-bucket", source)]));
    let merged = merge("base", "run").ok();
    let version = merged.header("x-tigris-snapshot-version").unwrap().to_owned();
    assert_eq!(document(&merged)["changes"], 2);
    assert_eq!(root.get("/base?list-type=2").tags("Key"), ["new", "same"]);
    root.put("/base/later", "l").ok();
    assert_eq!(root.ask(&at("GET", "/base?list-type=2", &version)).ok().tags("Key"), ["new", "same"]);

    for (target, source) in [("base", "deep"), ("run", "base"), ("base", "base")] {
        assert_eq!(merge(target, source).fault(), (400, "InvalidArgument".into()), "{target} <- {source}");
    }
    assert_eq!(merge("base", "nowhere").fault(), (404, "NoSuchBucket".into()));
    assert_eq!(merge("nowhere", "run").fault(), (404, "NoSuchBucket".into()));

    let rebase = |bucket: &str| root.ask(&put(bucket, &[("x-tigris-rebase", "true")]));
    assert!(rebase("run").ok().header("x-tigris-snapshot-version").is_some());
    assert_eq!(root.get("/run/later").ok().text(), "l");
    assert_eq!(rebase("base").fault(), (400, "InvalidArgument".into()));

    // Both sides change one key, and the fork something else beside it: nothing of it comes.
    root.put("/base/same", "base").ok();
    root.put("/run/same", "run").ok();
    root.put("/run/beside", "b").ok();
    let before = root.get("/base?list-type=2").text();
    let refused = merge("base", "run");
    assert_eq!(refused.fault(), (409, "MergeConflict".into()));
    assert_eq!((refused.tags("Path"), refused.tags("Kind")), (vec!["same".into()], vec!["both-modified".into()]));
    assert!(refused.text().contains("<RequestId>"));
    let ask = json("PUT", "/base").header("x-tigris-merge-source-bucket", "run");
    let refused = root.ask(&ask);
    assert_eq!((refused.status, &document(&refused)["Code"]), (409, &"MergeConflict".into()));
    let conflict = document(&refused)["Conflicts"][0].clone();
    assert_eq!((&conflict["Path"], &conflict["Kind"]), (&"same".into(), &"both-modified".into()));
    assert_eq!(document(&refused)["RequestId"], refused.header("x-amz-request-id").unwrap());
    assert_eq!(rebase("run").fault(), (409, "MergeConflict".into()));
    let untouched = |text: String| text.split("<RequestId>").next().unwrap().to_owned();
    assert_eq!(untouched(root.get("/base?list-type=2").text()), untouched(before));
    assert_eq!((root.get("/base/same").text(), root.get("/run/same").text()), ("base".into(), "run".into()));
}

#[test]
fn a_header_that_is_not_understood_changes_nothing() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/k", "kept").ok();
    let cases: &[(&str, &str, &[(&str, &str)], u16)] = &[
        ("DELETE", "/base", &[("x-tigris-soft-delete", "true")], 501),
        ("DELETE", "/base", &[("x-tigris-force", "true")], 501),
        ("DELETE", "/base", &[("x-tigris-force-delete", "1")], 400),
        ("DELETE", "/base", &[("x-tigris-merge-source-bucket", "f")], 400),
        ("PUT", "/made", &[("x-tigris-soft-delete", "7")], 501),
        ("PUT", "/made", &[("x-tigris-snapshot-version", "17")], 400),
        ("PUT", "/made", &[("x-tigris-force-delete", "true")], 400),
        ("PUT", "/made", &[("x-tigris-enable-snapshot", "yes")], 400),
        ("PUT", "/made", &[("x-tigris-snapshot", "true"), ("x-tigris-rebase", "true")], 400),
        ("PUT", "/made", &[("x-tigris-fork-source-bucket-snapshot", "17")], 400),
        ("PUT", "/base/k", &[("x-tigris-rename", "true")], 400),
        ("PUT", "/base/k", &[("x-tigris-snapshot-version", "17")], 400),
        ("DELETE", "/base/k", &[("x-tigris-snapshot-version", "17")], 400),
        ("GET", "/base?list-type=2", &[("x-tigris-query", "WHERE x = 1")], 501),
    ];
    for (method, target, headers, status) in cases {
        let ask = headers.iter().fold(Ask::new(method, target), |ask, (n, v)| ask.header(n, v));
        let answer = root.ask(&ask);
        assert_eq!(answer.status, *status, "{method} {target} {headers:?}: {}", answer.text());
        assert!(answer.text().contains(headers[0].0), "it is named: {}", answer.text());
    }
    // The force of a deletion is part of what is signed.
    let mut wire = root.sign(&Ask::new("DELETE", "/base"));
    wire.headers.push(("tigris-force-delete".into(), "true".into()));
    assert_eq!(root.raw(&wire).fault(), (403, "AccessDenied".into()));
    let twice = Ask::new("DELETE", "/base").header("x-tigris-force-delete", "false");
    assert_eq!(root.ask(&twice).fault(), (409, "BucketNotEmpty".into()));
    assert_eq!(root.get("/base/k").ok().text(), "kept");
    assert_eq!(root.ask(&Ask::new("HEAD", "/made")).status, 404);
    // Where to place data may be said, and means nothing.
    root.ask(&put("made", &[("x-tigris-regions", "fra"), ("x-amz-acl", "private")])).ok();
}

#[test]
fn a_rename_is_one_change() {
    let house = House::with_base();
    let root = &house.root;
    let object =
        Ask::new("PUT", "/base/d/a").body("content").header("content-type", "text/x").header("x-amz-meta-m", "1");
    let etag = root.ask(&object).ok().header("etag").unwrap().to_owned();
    root.put("/base/there", "old").ok();
    let rename = |from: &str, to: &str| {
        Ask::new("PUT", &path("base", to)).header("x-amz-copy-source", from).header("x-tigris-rename", "true")
    };
    for to in ["e/f/g ü+", "there"] {
        let from = if to == "there" { "base/e/f/g%20%C3%BC%2B" } else { "base/d/a" };
        root.ask(&rename(from, to).header("content-type", "application/json")).ok();
        let got = root.get(&path("base", to)).ok();
        assert_eq!((got.text(), got.header("content-type")), ("content".into(), Some("text/x")));
        assert_eq!((got.header("x-amz-meta-m"), got.header("etag")), (Some("1"), Some(&*etag)));
    }
    assert_eq!(root.get("/base?list-type=2").tags("Key"), ["there"], "nothing stays behind, no directory either");
    root.put("/base/x", "x").ok();
    for (from, ask, fault) in [
        ("base/none", rename("base/none", "x"), (404, "NoSuchKey")),
        ("base/x", rename("base/x", "x"), (400, "InvalidRequest")),
        ("base/x", rename("base/x", "there").header("if-none-match", "*"), (412, "PreconditionFailed")),
        ("base/x", rename("base/x", "y").header("x-amz-copy-source-if-match", "\"0\""), (412, "PreconditionFailed")),
        ("base/x", rename("base/x", "y").header("x-amz-metadata-directive", "REPLACE"), (400, "InvalidRequest")),
        ("base/x", rename("base/x?versionId=17", "y"), (400, "InvalidRequest")),
        ("base/x", rename("base/x", "y").header("x-tigris-snapshot-version", "17"), (400, "InvalidRequest")),
    ] {
        assert_eq!(root.ask(&ask).fault(), (fault.0, fault.1.into()), "{from} {:?}", ask.headers);
    }
    root.put("/other", "").ok();
    let across = Ask::new("PUT", "/other/x").header("x-amz-copy-source", "base/x").header("x-tigris-rename", "true");
    assert_eq!(root.ask(&across).fault(), (400, "InvalidRequest".into()));
    assert_eq!(root.get("/base?list-type=2").tags("Key"), ["there", "x"]);
    assert_eq!((root.get("/base/x").text(), root.get("/base/there").text()), ("x".into(), "content".into()));
    // A marker of a directory goes alone.
    root.put("/base/m/", "").ok();
    root.put("/base/m/f", "f").ok();
    root.ask(&rename("base/m/", "n/")).ok();
    assert_eq!(root.get("/base?list-type=2").tags("Key"), ["m/f", "n/", "there", "x"]);
    // What was renamed in a fork comes home as a rename: an append in the base goes along.
    fork(root, "base", "run").ok();
    root.ask(&Ask::new("PUT", "/run/y").header("x-amz-copy-source", "run/x").header("x-tigris-rename", "true")).ok();
    root.ask(&put("base", &[("x-tigris-merge-source-bucket", "run")])).ok();
    assert_eq!(root.get("/base?list-type=2").tags("Key"), ["m/f", "n/", "there", "y"]);
}

#[test]
fn json_noise_on_a_copy_does_not_change_its_type() {
    let house = House::with_base();
    let root = &house.root;
    root.ask(&Ask::new("PUT", "/base/k").body("x").header("content-type", "text/plain")).ok();
    let copy =
        Ask::new("PUT", "/base/copy").header("content-type", "application/json").header("x-amz-copy-source", "/base/k");
    root.ask(&copy).ok();
    assert_eq!(root.get("/base/copy").ok().header("content-type"), Some("text/plain"));
    let missing = root.ask(&json("PUT", "/base/copy").header("x-amz-copy-source", "base/none"));
    assert_eq!((missing.status, &document(&missing)["Code"]), (404, &"NoSuchKey".into()));
}

#[test]
fn buckets_and_forks_are_listed_in_json() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/k", "12345").ok();
    root.ask(&put("snap", &[("x-tigris-enable-snapshot", "true")])).ok();
    for name in ["fork-1", "fork-2", "fork-3"] {
        fork(root, "base", name).ok();
    }
    let names = |d: &serde_json::Value| -> Vec<String> {
        let list = d["Buckets"]["Bucket"].as_array().unwrap();
        list.iter().map(|b| b["Name"].as_str().unwrap().to_owned()).collect()
    };
    let list = |query: &str| document(&root.ask(&json("GET", query)).ok());
    let all = list("/?IncludeVisibility=true&IncludeOwnerInfo=true&IncludeRegionsInfo=true&IncludeTypeInfo=true");
    assert_eq!(names(&all), ["base", "fork-1", "fork-2", "fork-3", "snap"]);
    assert_eq!(all["ContinuationToken"], "");
    let types: Vec<_> = all["Buckets"]["Bucket"].as_array().unwrap().iter().map(|b| b["Type"].clone()).collect();
    assert_eq!(types, ["Regular", "Regular", "Regular", "Regular", "Snapshot"]);
    assert!(all["Buckets"]["Bucket"][0].get("ForkInfo").is_none());
    let (mut token, mut pages) = (String::new(), Vec::new());
    loop {
        let page = list(&format!("/?max-buckets=2&continuation-token={token}"));
        pages.push(names(&page));
        token = page["ContinuationToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(pages, [vec!["base", "fork-1"], vec!["fork-2", "fork-3"], vec!["snap"]]);
    let stats = list("/?IncludeForkInfo=true&IncludeStats=true");
    assert_eq!(stats["Stats"]["ActiveBuckets"], 5);
    assert_eq!((&stats["Stats"]["TotalObjects"], &stats["Stats"]["TotalStorageBytes"]), (&4.into(), &20.into()));
    assert_eq!(stats["Buckets"]["Bucket"][0]["ForkInfo"]["HasChildren"], true);
    assert_eq!(stats["Buckets"]["Bucket"][0]["ForkInfo"]["Parents"], serde_json::Value::Null);
    assert_eq!(stats["Buckets"]["Bucket"][1]["ForkInfo"]["Parents"][0]["BucketName"], "base");
    assert_eq!(names(&list("/?OnlyForked=true")), ["fork-1", "fork-2", "fork-3"]);
    assert!(names(&list("/?OnlyDeleted=true")).is_empty());
    assert!(names(&list("/?OwnedBy=somebody")).is_empty());

    let forks = |of: &str, query: &str| root.ask(&json("GET", query).header("x-tigris-fork", of));
    let found = document(&forks("base", "/").ok());
    assert_eq!(names(&found), ["fork-1", "fork-2", "fork-3"]);
    assert!(
        found["Buckets"]["Bucket"]
            .as_array()
            .unwrap()
            .iter()
            .all(|b| b["ForkInfo"]["Parents"][0]["BucketName"] == "base")
    );
    let page = document(&forks("base", "/?max-buckets=2").ok());
    assert_eq!((names(&page), &page["ContinuationToken"]), (vec!["fork-1".into(), "fork-2".into()], &"fork-2".into()));
    assert!(names(&document(&forks("snap", "/").ok())).is_empty());
    let missing = forks("nowhere", "/");
    assert_eq!((missing.status, &document(&missing)["Code"]), (404, &"NoSuchBucket".into()));
    assert_eq!(root.get("/").ok().tags("Name").len(), 5, "S3 lists as it always did");
}

#[test]
fn what_a_bucket_is_and_what_can_be_changed_of_it() {
    let house = House::with_base();
    let root = &house.root;
    root.put("/base/k", "12345").ok();
    fork(root, "base", "run").ok();
    let metadata = |name: &str| document(&root.ask(&json("GET", &format!("/{name}?metadata&with-size=true"))).ok());
    let base = metadata("base");
    assert_eq!((&base["name"], &base["type"], &base["storage_class"]), (&"base".into(), &0.into(), &"STANDARD".into()));
    assert_eq!((&base["estimated_size"], &base["estimated_rows"]), (&5.into(), &1.into()));
    assert_eq!(base["ForkInfo"]["HasChildren"], true);
    assert_eq!(metadata("run")["ForkInfo"]["Parents"][0]["BucketName"], "base");
    let missing = root.ask(&json("GET", "/nowhere?metadata"));
    assert_eq!(document(&missing)["Message"], "NoSuchBucket: the specified bucket does not exist");

    let patch = |body: &str| root.ask(&json("PATCH", "/base").body(body));
    assert_eq!(document(&patch(r#"{"type":1}"#).ok()), serde_json::json!({ "Bucket": "base", "Update": "success" }));
    assert_eq!(head(root, "base").header("x-tigris-enable-snapshot"), Some("true"));
    assert_eq!(root.get("/base?versioning").ok().tag("Status"), "Enabled");
    assert_eq!(fork(root, "base", "heir").ok().status, 200);
    assert_eq!(head(root, "heir").header("x-tigris-enable-snapshot"), Some("true"), "a fork inherits it");
    patch(r#"{"type":0}"#).ok();
    assert_eq!(metadata("base")["type"], 0);
    for fine in
        ["{}", r#"{"object_regions":"fra","storage_class":"STANDARD","acl_settings":{"allow_object_acl":false}}"#]
    {
        patch(fine).ok();
    }
    for (body, status, named) in [
        (r#"{"type":1,"protection":{"protected":true}}"#, 501, "protection"),
        (r#"{"cache_control":"no-store"}"#, 501, "cache_control"),
        (r#"{"unheard_of":1}"#, 501, "unheard_of"),
        (r#"{"type":7}"#, 400, "type"),
        ("[]", 400, "object"),
        ("{", 400, "JSON"),
    ] {
        let answer = patch(body);
        assert_eq!(answer.status, status, "{body}");
        assert!(document(&answer)["Message"].as_str().unwrap().contains(named), "{}", answer.text());
    }
    assert_eq!(metadata("base")["type"], 0, "all or nothing");
    let open = root.ask(&json("PATCH", "/base").header("x-amz-acl", "public-read").body("{}"));
    assert_eq!(open.status, 501);
    assert_eq!(root.ask(&json("POST", "/base?restore")).status, 501);
}

#[test]
fn the_server_presigns_for_the_callers_own_key() {
    let house = House::with_base();
    let root = &house.root;
    root.put(&path("base", "a b/ü+&.txt"), "shared").ok();
    let version = snapshot(root, "base", "true");
    root.put("/other", "").ok();
    root.put("/other/k", "secret").ok();
    let editor = house.key(&[("base", Role::Editor)]);
    let reader = house.key(&[("base", Role::Reader)]);
    let ask =
        |client: &Client, body: serde_json::Value| client.ask(&json("POST", "/?func=presign").body(body.to_string()));
    let body = |kind: &str, key_id: &str| serde_json::json!({ "bucket": "base", "key": "a b/ü+&.txt", "key_id": key_id, "type": kind, "expires_in": 600 });
    let open = |url: &str, method: &str, content: &str| {
        let target = url.split_once(&root.addr.to_string()).unwrap().1;
        let wire = crate::client::Wire {
            target: target.to_owned(),
            method: method.to_owned(),
            headers: vec![("host".into(), root.addr.to_string())],
            body: content.into(),
            signature: String::new(),
            date: String::new(),
        };
        root.raw(&wire)
    };
    let url = |answer: &Answer| document(answer)["url"].as_str().unwrap().to_owned();
    let got = url(&ask(&reader, body("get", &reader.id)).ok());
    assert!(got.starts_with("http://"), "{got}");
    assert_eq!(open(&got, "GET", "").ok().text(), "shared");
    assert_eq!(open(&got, "PUT", "x").status, 403, "it is for one method");
    assert_eq!(open(&got.replace("600", "601"), "GET", "").status, 403);
    let sent = url(&ask(&editor, body("put", "")).ok());
    open(&sent, "PUT", "changed").ok();
    assert_eq!(open(&got, "GET", "").ok().text(), "changed");
    let mut versioned = body("get", &root.id);
    versioned["version_id"] = version.into();
    assert!(url(&ask(root, versioned).ok()).contains("versionId="));

    // Nobody gets a URL that does more than the key may.
    assert_eq!(ask(&reader, body("put", &reader.id)).status, 403);
    for id in [&root.id, &editor.id, "no-such-key"] {
        assert_eq!(ask(&reader, body("get", id)).status, 403, "{id}");
    }
    for bucket in ["other", "nowhere"] {
        let mut stolen = body("get", &reader.id);
        stolen["bucket"] = bucket.into();
        let answer = ask(&reader, stolen);
        assert_eq!((answer.status, &document(&answer)["Message"]), (403, &"Access Denied".into()));
    }
    assert_eq!(ask(root, body("get", "no-such-key")).status, 403);
    open(&url(&ask(root, body("put", &editor.id)).ok()), "PUT", "by root for the editor").ok();
    for (field, value) in [
        ("type", serde_json::json!("post")),
        ("expires_in", 0.into()),
        ("expires_in", 604_801.into()),
        ("expires_in", "600".into()),
        ("key", "".into()),
        ("bucket", serde_json::Value::Null),
    ] {
        let mut bad = body("get", "");
        bad[field] = value.clone();
        assert_eq!(ask(root, bad).status, 400, "{field} {value}");
    }
    assert_eq!(root.ask(&json("POST", "/?func=presign").body("{")).status, 400);
}

#[test]
fn a_presigned_put_that_carries_the_checksum_of_nothing() {
    let house = House::with_base();
    let ask =
        Ask::new("PUT", "/base/k?x-id=PutObject&x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32");
    let mut wire = house.root.presign(&ask, 60);
    wire.body = b"content".to_vec();
    house.root.raw(&wire).ok();
    assert_eq!(house.root.get("/base/k").ok().text(), "content");
}

/// Reads an archive with the system's own tar.
fn untar(archive: &[u8], name: &str) -> Vec<u8> {
    let mut child = std::process::Command::new("tar")
        .args(["-xO", "--", name])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let archive = archive.to_vec();
    let feed = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &archive));
    let mut content = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut content).unwrap();
    feed.join().unwrap().ok();
    assert!(child.wait().unwrap().success(), "tar found no {name}");
    content
}

#[test]
fn a_bundle_is_a_tar_of_one_instant() {
    let house = House::with_base();
    let root = &house.root;
    let long = format!("{}/end", "long/".repeat(60));
    let big: Vec<u8> = (0..2_500_001u32).map(|n| (n * 7 % 251) as u8).collect();
    let objects: [(&str, &[u8]); 5] = [("a", b"A"), ("ü b", b"UB"), (&long, b"L"), ("empty", b""), ("big", &big)];
    for (key, content) in objects {
        root.put(&path("base", key), content).ok();
    }
    let version = snapshot(root, "base", "true");
    let ask = |keys: &[&str]| json("POST", "/base?bundle").body(serde_json::json!({ "keys": keys }).to_string());
    let keys = ["a", "ü b", "none", &long, "empty", "big"];
    let answer = root
        .ask(&ask(&keys).header("x-tigris-bundle-format", "tar").header("x-tigris-bundle-compression", "none"))
        .ok();
    assert_eq!(answer.header("content-type"), Some("application/x-tar"));
    assert_eq!(answer.header("x-tigris-bundle-count"), Some("5"));
    assert_eq!(answer.header("x-tigris-bundle-skipped"), Some("1"));
    assert_eq!(answer.header("x-tigris-bundle-bytes"), Some(&*(2_500_001 + 4).to_string()));
    assert_eq!(answer.body.len() % 512, 0);
    for (key, content) in objects {
        assert_eq!(untar(&answer.body, key), content, "{key}");
    }
    let told: serde_json::Value = serde_json::from_slice(&untar(&answer.body, "__bundle_errors.json")).unwrap();
    assert_eq!((&told[0]["key"], &told[0]["error"]), (&"none".into(), &"NoSuchKey".into()));

    root.put("/base/a", "later").ok();
    assert_eq!(untar(&root.ask(&ask(&["a"]).header("x-tigris-snapshot-version", &version)).ok().body, "a"), b"A");
    let strict = root.ask(&ask(&["a", "none"]).header("x-tigris-bundle-on-error", "fail"));
    assert_eq!((strict.status, &document(&strict)["Code"]), (404, &"NoSuchKey".into()));
    for (name, value) in [("compression", "lz4"), ("compression", "GZIP"), ("format", "zip"), ("on-error", "stop")] {
        assert_eq!(root.ask(&ask(&["a"]).header(&format!("x-tigris-bundle-{name}"), value)).status, 501, "{value}");
    }
    let many: Vec<String> = (0..5001).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for body in [
        ask(&[]),
        ask(&many),
        json("POST", "/base?bundle").body(r#"{"keys":[1]}"#),
        json("POST", "/base?bundle").body("[]"),
    ] {
        assert_eq!(root.ask(&body).status, 400);
    }
}

/// Compressed, a bundle is the same archive, whole pieces or not, and its type says what it is.
#[test]
fn a_bundle_is_compressed_as_asked() {
    let house = House::with_base();
    let root = &house.root;
    // Over a piece, and neither all alike nor all noise.
    let big: Vec<u8> = (0..3_000_017u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61) as u8).collect();
    root.put("/base/big", big.clone()).ok();
    root.put("/base/empty", "").ok();
    let keys = serde_json::json!({ "keys": ["big", "none", "empty"] }).to_string();
    let ask = |how: &str| {
        root.ask(&json("POST", "/base?bundle").body(keys.clone()).header("x-tigris-bundle-compression", how)).ok()
    };
    let plain = ask("none").body;
    let gzip = ask("gzip");
    assert_eq!(gzip.header("content-type"), Some("application/gzip"));
    let mut back = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*gzip.body), &mut back).unwrap();
    assert!(back == plain && gzip.body.len() < plain.len() / 2, "{} of {}", gzip.body.len(), plain.len());
    let zstd = ask("zstd");
    assert_eq!(zstd.header("content-type"), Some("application/zstd"));
    assert!(zstd::decode_all(&*zstd.body).unwrap() == plain && zstd.body.len() < plain.len() / 2);
    for answer in [&gzip, &zstd] {
        assert_eq!(answer.header("content-encoding"), None, "a client must not unpack it on the way");
        assert_eq!(answer.header("x-tigris-bundle-bytes"), Some("3000017"));
        assert_eq!(answer.header("x-tigris-bundle-skipped"), Some("1"));
    }
}

/// What a key may not read is told apart in the bundle, the same whether it is there or not; or it ends the whole, when that was asked.
#[test]
fn a_bundle_tells_what_a_key_may_not_read() {
    let house = House::with_base();
    for key in ["mine/a", "theirs/a"] {
        house.root.put(&path("base", key), "x").ok();
    }
    let grant = mw_world::Grant { prefix: "mine/".into(), ..mw_world::Grant::new("base", Role::Reader) };
    let request = mw_world::KeyRequest { name: "k".into(), grants: vec![grant], ..Default::default() };
    let secret = house.store.create_key(&house.root_principal(), &request).unwrap();
    let client = Client { addr: house.root.addr, id: secret.id, secret: secret.secret };
    let ask = |keys: &[&str]| json("POST", "/base?bundle").body(serde_json::json!({ "keys": keys }).to_string());
    let answer = client.ask(&ask(&["mine/a", "mine/none", "theirs/a", "theirs/none"])).ok();
    assert_eq!(untar(&answer.body, "mine/a"), b"x");
    let told: serde_json::Value = serde_json::from_slice(&untar(&answer.body, "__bundle_errors.json")).unwrap();
    let told: Vec<_> = told.as_array().unwrap().iter().map(|t| (t["key"].as_str(), t["error"].as_str())).collect();
    let expected = [("mine/none", "NoSuchKey"), ("theirs/a", "AccessDenied"), ("theirs/none", "AccessDenied")];
    assert_eq!(told, expected.map(|(key, error)| (Some(key), Some(error))));
    let fail = |key: &str| client.ask(&ask(&["mine/a", key]).header("x-tigris-bundle-on-error", "fail")).status;
    assert_eq!((fail("theirs/a"), fail("theirs/none"), fail("mine/none")), (403, 403, 404));
}

#[test]
fn a_scoped_key_reaches_no_other_bucket_by_header_or_body() {
    let house = House::new();
    let root = &house.root;
    for world in ["own", "other"] {
        root.put(&format!("/{world}"), "").ok();
        root.put(&format!("/{world}/k"), "secret").ok();
    }
    fork(root, "own", "own-run").ok();
    fork(root, "other", "other-run").ok();
    let version = snapshot(root, "other", "true");
    let asks = |world: &str| -> Vec<Ask> {
        let bundle = serde_json::json!({ "keys": ["k"] }).to_string();
        let url = serde_json::json!({ "bucket": world, "key": "k", "type": "get" }).to_string();
        vec![
            put(world, &[("x-tigris-snapshot", "true")]),
            put(world, &[("x-tigris-rebase", "true")]),
            put(world, &[("x-tigris-merge-source-bucket", "own")]),
            put("own", &[("x-tigris-merge-source-bucket", world)]),
            put("mine", &[("x-tigris-fork-source-bucket", world)]),
            put("mine", &[("x-tigris-fork-source-bucket", world), ("x-tigris-fork-source-bucket-snapshot", &version)]),
            at("DELETE", &format!("/{world}"), &version),
            Ask::new("DELETE", &format!("/{world}")).header("tigris-force-delete", "true"),
            Ask::new("DELETE", &format!("/{world}")).header("x-tigris-force-delete", "true"),
            Ask::new("GET", "/").header("x-tigris-snapshot", world),
            json("GET", "/").header("x-tigris-fork", world),
            json("GET", &format!("/{world}?metadata")),
            json("PATCH", &format!("/{world}")).body(r#"{"type":1}"#),
            json("POST", &format!("/{world}?bundle")).body(bundle),
            json("POST", "/?func=presign").body(url),
            at("GET", &format!("/{world}/k"), &version),
            at("HEAD", &format!("/{world}/k"), &version),
            at("GET", &format!("/{world}?list-type=2"), &version),
            at("PUT", "/own/c", &version).header("x-amz-copy-source", &format!("{world}/k")),
            Ask::new("PUT", "/own/c")
                .header("x-amz-copy-source", &format!("{world}/k"))
                .header("x-tigris-rename", "true"),
            Ask::new("PUT", &format!("/{world}/c"))
                .header("x-amz-copy-source", "own/k")
                .header("x-tigris-rename", "true"),
        ]
    };
    let seen = |answer: Answer| {
        let id = answer.header("x-amz-request-id").unwrap().to_owned();
        let headers: Vec<_> =
            answer.headers.iter().filter(|(n, _)| n != "x-amz-request-id" && n != "date").cloned().collect();
        (answer.status, headers, answer.text().replace(&id, "ID"))
    };
    for role in [Role::Reader, Role::Editor, Role::Admin] {
        let key = house.key(&[("own", role)]);
        let refused: Vec<_> = asks("other").iter().map(|ask| seen(key.ask(ask))).collect();
        for (ask, answer) in asks("other").iter().zip(&refused) {
            assert_eq!(answer.0, 403, "{role} {} {} {:?}: {}", ask.method, ask.path, ask.headers, answer.2);
            assert!(answer.2.is_empty() || answer.2.contains("Access Denied"), "{}", answer.2);
        }
        for world in ["no-such", "other-run", "x"] {
            for (ask, expected) in asks(world).iter().zip(&refused) {
                assert_eq!(&seen(key.ask(ask)), expected, "{world}: {} {} {:?}", ask.method, ask.path, ask.headers);
            }
        }
        // Of its own bucket it learns nothing about others.
        let told = document(&key.ask(&json("GET", "/?IncludeForkInfo=true")).ok());
        assert_eq!(told["Buckets"]["Bucket"].as_array().unwrap().len(), 1);
        assert_eq!(
            told["Buckets"]["Bucket"][0]["ForkInfo"],
            serde_json::json!({ "HasChildren": false, "Parents": null })
        );
        assert_eq!(head(&key, "own").header("x-tigris-is-fork-parent"), None);
        assert_eq!(
            document(&key.ask(&json("GET", "/").header("x-tigris-fork", "own")).ok())["Buckets"]["Bucket"],
            serde_json::json!([])
        );
    }
    let run = house.key(&[("own-run", Role::Admin)]);
    assert_eq!(
        head(&run, "own-run").header("x-tigris-fork-source-bucket"),
        None,
        "a run does not learn its base's name"
    );
    assert_eq!(
        document(&run.ask(&json("GET", "/own-run?metadata")).ok())["ForkInfo"]["Parents"],
        serde_json::Value::Null
    );
    assert_eq!(run.ask(&put("own-run", &[("x-tigris-rebase", "true")])).fault(), (403, "AccessDenied".into()));
    assert_eq!(
        run.ask(&put("own", &[("x-tigris-merge-source-bucket", "own-run")])).fault(),
        (403, "AccessDenied".into())
    );
    assert_eq!(root.get("/own?list-type=2").tags("Key"), ["k"]);
    assert_eq!(root.get("/other/k").ok().text(), "secret");
    assert_eq!(root.ask(&Ask::new("HEAD", "/mine")).status, 404);

    // Roles on the own bucket.
    let (reader, editor) = (house.key(&[("own", Role::Reader)]), house.key(&[("own", Role::Editor)]));
    snapshot(&editor, "own", "true");
    for ask in [
        put("own", &[("x-tigris-snapshot", "true")]),
        json("PATCH", "/own").body("{}"),
        at("DELETE", "/own", &version),
        Ask::new("PUT", "/own/r").header("x-amz-copy-source", "own/k").header("x-tigris-rename", "true"),
    ] {
        assert_eq!(reader.ask(&ask).status, 403, "{} {:?}", ask.method, ask.headers);
    }
    for ask in [
        put("mine", &[("x-tigris-fork-source-bucket", "own")]),
        json("PATCH", "/own").body(r#"{"type":1}"#),
        Ask::new("DELETE", "/own").header("tigris-force-delete", "true"),
        put("own", &[("x-tigris-merge-source-bucket", "own-run")]),
    ] {
        assert_eq!(editor.ask(&ask).status, 403, "{} {:?}", ask.method, ask.headers);
    }
}
