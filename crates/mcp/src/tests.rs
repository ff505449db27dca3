//! The door, called as a client would: JSON-RPC in, JSON-RPC out, over a store in memory.

use crate::{Bound, McpDoor, Share};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Request;
use mw_env::Env;
use mw_model::{FileType, Ino};
use mw_world::{CreateOptions, ForkOptions, Grant, KeyRequest, Make, Options, Principal, Role, Store};
use serde_json::{Value, json};
use std::sync::Arc;

struct Urls;

impl Share for Urls {
    fn url(&self, who: &Principal, base: &str, world: &str, key: &[u8], seconds: u64) -> mw_world::Result<String> {
        Ok(format!("{base}/{world}/{}?{}&{seconds}", String::from_utf8_lossy(key), who.key_id()))
    }
}

struct Rig {
    store: Arc<Store>,
    root: Principal,
    door: McpDoor,
    runtime: tokio::runtime::Runtime,
}

impl Rig {
    /// A store with the world `base`.
    fn new() -> Self {
        let (meta, segments) = (Arc::new(mw_meta::Memory::new()), Arc::new(mw_segments::Memory::new()));
        let options = Options { background: false, memory: 64 << 20, ..Options::default() };
        let store = Store::open(meta, segments, Env::seeded(5), options).unwrap();
        let root = store.principal(&store.root_key().unwrap().id).unwrap();
        store.create_world(&root, "base", &CreateOptions::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        Self { store, root, door: McpDoor::default(), runtime }
    }

    fn fork(&self, base: &str, name: &str) {
        self.store.fork(&self.root, base, name, &ForkOptions::default()).unwrap();
    }

    fn key(&self, world: &str, role: Role) -> Principal {
        self.granted(Grant::new(world, role))
    }

    fn granted(&self, grant: Grant) -> Principal {
        let request = KeyRequest { name: "k".to_owned(), grants: vec![grant], ..KeyRequest::default() };
        self.store.principal(&self.store.create_key(&self.root, &request).unwrap().id).unwrap()
    }

    /// Sends one message and returns its answer.
    fn send(&self, who: &Principal, world: &str, message: &Value) -> Value {
        let bound = Bound::new(self.store.clone(), who.clone(), Some(world), "http://h".to_owned(), Arc::new(Urls));
        let request = Request::post("/-/mcp")
            .header("host", "h")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Bytes::from(message.to_string()))
            .unwrap();
        let bytes = self.runtime.block_on(async {
            let answer = self.door.call(bound.unwrap(), request).await;
            answer.into_body().collect().await.unwrap().to_bytes()
        });
        serde_json::from_slice(&bytes).unwrap_or_else(|_| panic!("{:?}", String::from_utf8_lossy(&bytes)))
    }

    fn call_as(&self, who: &Principal, world: &str, tool: &str, arguments: Value) -> Result<Value, String> {
        let params = json!({"name": tool, "arguments": arguments});
        let answer =
            self.send(who, world, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        if result["isError"] == true {
            return Err(text);
        }
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), result["structuredContent"]);
        Ok(result["structuredContent"].clone())
    }

    fn call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        self.call_as(&self.root, "base", tool, arguments)
    }

    fn ok(&self, tool: &str, arguments: Value) -> Value {
        let shown = arguments.to_string();
        self.call(tool, arguments).unwrap_or_else(|e| panic!("{tool} {shown}: {e}"))
    }

    fn write(&self, path: &str, text: &str) -> Value {
        self.ok("write", json!({"path": path, "text": text}))
    }

    fn read(&self, path: &str) -> String {
        self.ok("read", json!({"path": path}))["text"].as_str().unwrap().to_owned()
    }

    /// Refused: the text must hold each of `words`.
    fn refused(&self, tool: &str, arguments: Value, words: &[&str]) {
        let shown = arguments.to_string();
        let text = self.call(tool, arguments).map_or_else(|e| e, |answer| panic!("{tool} {shown} gave {answer}"));
        for word in words {
            assert!(text.contains(word), "{tool} {shown}: {text}");
        }
    }
}

fn paths(answer: &Value, list: &str) -> Vec<String> {
    answer[list].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn tools_have_schemas_of_their_types_and_tell_what_they_do() {
    let rig = Rig::new();
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello =
        rig.send(&rig.root, "base", &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18", "{hello}");
    assert_eq!(hello["result"]["serverInfo"]["name"], "manyworlds");
    assert!(hello["result"]["capabilities"]["tools"].is_object());
    let answer = rig.send(&rig.root, "base", &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in [
        "list",
        "read",
        "write",
        "edit",
        "move",
        "remove",
        "find",
        "search",
        "stat",
        "diff",
        "history",
        "snapshot",
        "snapshots",
        "fork",
        "restore",
        "share",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
        assert!(tool["description"].as_str().unwrap().len() > 20, "{tool}");
        for (name, field) in tool["inputSchema"]["properties"].as_object().unwrap() {
            assert!(field["description"].is_string(), "{} {name}", tool["name"]);
        }
        let reads = ["list", "read", "find", "search", "stat", "diff", "history", "snapshots", "share"];
        let name = tool["name"].as_str().unwrap();
        assert_eq!(tool["annotations"]["readOnlyHint"], reads.contains(&name), "{name}");
    }
    let unknown = rig.send(
        &rig.root,
        "base",
        &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "ls", "arguments": {}}}),
    );
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    rig.refused("read", json!({"path": "a", "file": "b"}), &["unknown field `file`", "`path`"]);
    rig.refused("read", json!({}), &["missing field `path`"]);
}

#[test]
fn content_goes_in_and_out_in_ranges_as_text_and_base64() {
    let rig = Rig::new();
    let written = rig.write("docs/notes.md", "héllo\nworld\n");
    assert_eq!(written["size"], 13);
    assert_eq!(rig.read("/docs/notes.md"), "héllo\nworld\n");
    // A range never ends inside a character; and `next` goes on exactly behind it.
    let part = rig.ok("read", json!({"path": "docs/notes.md", "length": 2}));
    assert_eq!((part["text"].as_str(), part["next"].as_u64()), (Some("hé"), Some(3)));
    let rest = rig.ok("read", json!({"path": "docs/notes.md", "offset": 3}));
    assert_eq!((rest["text"].as_str(), rest.get("next")), (Some("llo\nworld\n"), None));
    // Inside a character there are only bytes.
    let bytes = rig.ok("read", json!({"path": "docs/notes.md", "offset": 2, "length": 1}));
    assert_eq!(bytes["base64"], "qQ==");
    rig.refused("read", json!({"path": "docs/notes.md", "offset": 2, "encoding": "text"}), &["base64"]);
    rig.refused("read", json!({"path": "docs/notes.md", "offset": 99}), &["13 bytes"]);
    rig.refused("read", json!({"path": "docs/notes.md", "length": 0}), &["out of range"]);
    rig.ok("write", json!({"path": "bin", "base64": "AAEC/w=="}));
    assert_eq!(rig.ok("read", json!({"path": "bin"}))["base64"], "AAEC/w==");
    rig.refused("write", json!({"path": "x", "base64": "*"}), &["base64"]);
    rig.refused("write", json!({"path": "x"}), &["either `text` or `base64`"]);
    rig.refused("read", json!({"path": "docs"}), &["is-directory", "`list`"]);
    rig.refused("read", json!({"path": "docs/missing/deep"}), &["not-found", "\"docs/missing\"", "`list`"]);
    rig.refused("read", json!({"path": "docs/notes.md/x"}), &["not-directory", "docs/notes.md"]);
    rig.refused("write", json!({"path": "docs/notes.md/x", "text": ""}), &["not-directory"]);
    rig.refused("write", json!({"path": "docs", "text": ""}), &["is-directory"]);
    // A large file, in parts.
    let large = "0123456789abcde\n".repeat(200_000);
    rig.write("large", &large);
    let (mut got, mut offset) = (String::new(), 0);
    loop {
        let part = rig.ok("read", json!({"path": "large", "offset": offset, "length": 1 << 20}));
        got.push_str(part["text"].as_str().unwrap());
        match part["next"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(got, large);
    assert!(rig.ok("read", json!({"path": "large"})).to_string().len() < 80_000, "an answer is small by default");
}

#[test]
fn writes_are_guarded_by_etags_and_appends_lose_nothing() {
    let rig = Rig::new();
    let first = rig.write("f", "one");
    let etag = first["etag"].as_str().unwrap();
    rig.refused("write", json!({"path": "f", "text": "x", "create": true}), &["already-exists"]);
    let second = rig.ok("write", json!({"path": "f", "text": "two", "if_etag": etag}));
    rig.refused("write", json!({"path": "f", "text": "x", "if_etag": etag}), &["precondition", "read it again"]);
    assert_eq!(rig.read("f"), "two");
    assert_eq!(rig.ok("read", json!({"path": "f", "at": first["version"]}))["text"], "one");
    assert_ne!(first["version"], second["version"]);
    for n in 0..3 {
        rig.ok("write", json!({"path": "log/a.jsonl", "text": format!("{n}\n"), "append": true}));
    }
    assert_eq!(rig.read("log/a.jsonl"), "0\n1\n2\n");
    let typed = json!({"path": "page", "text": "<p>", "content_type": "text/html"});
    rig.ok("write", typed);
    rig.ok("edit", json!({"path": "page", "old": "p", "new": "q"}));
    let stat = rig.ok("stat", json!({"path": "page"}));
    assert_eq!((stat["content_type"].as_str(), stat["size"].as_u64()), (Some("text/html"), Some(3)));
}

#[test]
fn an_edit_replaces_what_is_unique_and_says_what_is_not() {
    let rig = Rig::new();
    rig.write("f", "a = 1\nb = 2\nc = 1\n");
    let done = rig.ok("edit", json!({"path": "f", "old": "b = 2", "new": "b = 3"}));
    assert_eq!((done["line"].as_u64(), done["replaced"].as_u64()), (Some(2), Some(1)));
    rig.refused("edit", json!({"path": "f", "old": "= 1", "new": "x"}), &["2 times", "lines 1, 3", "`all`"]);
    rig.refused("edit", json!({"path": "f", "old": "d", "new": "x"}), &["does not occur", "read the file again"]);
    rig.refused("edit", json!({"path": "f", "old": "", "new": "x"}), &["`old`"]);
    assert_eq!(rig.ok("edit", json!({"path": "f", "old": "= 1", "new": "= 9", "all": true}))["replaced"], 2);
    assert_eq!(rig.read("f"), "a = 9\nb = 3\nc = 9\n");
    rig.ok("write", json!({"path": "bin", "base64": "/w=="}));
    rig.refused("edit", json!({"path": "bin", "old": "a", "new": "b"}), &["not text"]);
}

#[test]
fn no_path_and_no_link_leads_out() {
    let rig = Rig::new();
    rig.store.create_world(&rig.root, "other", &CreateOptions::default()).unwrap();
    rig.write("d/f", "inside");
    for path in [
        "../other/f",
        "d/../../f",
        "..",
        "d/..",
        "./f",
        "d/./f",
        "d//f",
        "//f",
        "a\0b",
        "/../etc/passwd",
        "d/../f",
        &"n".repeat(256),
    ] {
        for (tool, arguments) in [
            ("read", json!({"path": path})),
            ("list", json!({"path": path})),
            ("stat", json!({"path": path})),
            ("write", json!({"path": path, "text": "x"})),
            ("edit", json!({"path": path, "old": "a", "new": "b"})),
            ("remove", json!({"path": path, "recursive": true})),
            ("move", json!({"from": path, "to": "g"})),
            ("move", json!({"from": "d/f", "to": path})),
            ("restore", json!({"path": path, "version": "1"})),
            ("share", json!({"path": path})),
            ("find", json!({"glob": "*", "path": path})),
            ("search", json!({"text": "x", "path": path})),
            ("diff", json!({"path": path})),
            ("history", json!({"path": path})),
        ] {
            rig.refused(tool, arguments, &["invalid: the path", "from the root of the world"]);
        }
    }
    for tool in ["read", "write", "remove", "share"] {
        let text = if tool == "write" { json!({"path": "/", "text": "x"}) } else { json!({"path": "/"}) };
        rig.refused(tool, text, &["the root of the world"]);
    }
    let session = rig.store.session(&rig.root, "base").unwrap();
    let link = |parent: Ino, name: &str, target: &str| {
        let target = Bytes::copy_from_slice(target.as_bytes());
        let make = Make { kind: FileType::Symlink, mode: 0o777, uid: 0, gid: 0, rdev: 0, target };
        session.make(parent, name.as_bytes(), &make).unwrap();
    };
    let d = session.resolve(b"d").unwrap().ino;
    link(Ino::ROOT, "out", "/etc");
    link(d, "up", "../../../etc/passwd");
    link(d, "in", "./f");
    link(Ino::ROOT, "dir", "d");
    for (path, words) in [
        ("out/passwd", ["symbolic link to \"/etc\"", "leads out"]),
        ("out", ["symbolic link to \"/etc\"", "leads out"]),
        ("d/up", ["passwd", "leads out"]),
        ("d/in", ["not followed", "name \"d/f\""]),
        ("dir/f", ["not followed", "name \"d\""]),
    ] {
        rig.refused("read", json!({"path": path}), &words);
        rig.refused("write", json!({"path": path, "text": "x"}), &words);
        rig.refused("edit", json!({"path": path, "old": "a", "new": "b"}), &words);
        rig.refused("share", json!({"path": path}), &words);
    }
    rig.refused("search", json!({"text": "x", "path": "out/passwd"}), &["leads out"]);
    let stat = rig.ok("stat", json!({"path": "d/in"}));
    assert_eq!((stat["kind"].as_str(), stat["target"].as_str()), (Some("symlink"), Some("./f")));
    // A link is moved and removed as what it is.
    rig.ok("move", json!({"from": "out", "to": "away/out"}));
    rig.ok("remove", json!({"path": "away/out"}));
    rig.ok("remove", json!({"path": "dir"}));
    assert_eq!(rig.read("d/f"), "inside");
    assert!(rig.ok("search", json!({"text": "inside"}))["matches"].as_array().unwrap().len() == 1);
}

#[test]
fn listings_are_small_and_go_on() {
    let rig = Rig::new();
    let session = rig.store.session(&rig.root, "base").unwrap();
    let make = |kind| Make { kind, mode: 0o755, uid: 0, gid: 0, rdev: 0, target: Bytes::new() };
    let many = session.make(Ino::ROOT, b"many", &make(FileType::Directory)).unwrap().ino;
    for n in 0..10_000 {
        session.make(many, format!("f{n:05}").as_bytes(), &make(FileType::File)).unwrap();
    }
    session.make(many, b"empty", &make(FileType::Directory)).unwrap();
    rig.write("many/sub/x", "");
    rig.write("z", "");
    let first = rig.ok("list", json!({"path": "many"}));
    assert_eq!(paths(&first, "entries").len(), 100);
    assert!(first.to_string().len() < 20_000);
    for limit in [1000, 333] {
        let (mut all, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let page = rig.ok("list", json!({"path": "many", "limit": limit, "cursor": cursor}));
            all.extend(paths(&page, "entries"));
            cursor = page["next"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(all.len(), 10_002, "every entry once");
        assert_eq!(all[0], "many/empty/");
        assert_eq!((all[1].as_str(), all[10_001].as_str()), ("many/f00000", "many/sub/"));
        assert!(all.is_sorted());
    }
    assert_eq!(paths(&rig.ok("list", json!({})), "entries"), ["many/", "z"]);
    let deep = rig.ok("list", json!({"recursive": true, "limit": 2}));
    assert_eq!(paths(&deep, "entries"), ["many/empty/", "many/f00000"]);
    assert_eq!(paths(&rig.ok("list", json!({"path": "z"})), "entries"), ["z"]);
    rig.refused("list", json!({"path": "nothing"}), &["not-found"]);
    rig.refused("list", json!({"limit": 0}), &["1 to 1000"]);
    rig.refused("list", json!({"cursor": "*"}), &["no cursor"]);
    assert_eq!(rig.ok("remove", json!({"path": "many", "recursive": true}))["files"], 10_001);
    assert_eq!(paths(&rig.ok("list", json!({})), "entries"), ["z"]);
}

#[test]
fn names_are_found_by_glob() {
    let rig = Rig::new();
    for path in ["src/main.rs", "src/a/b.rs", "src/a/c.txt", "docs/a.md", "docs/a.rs.md", "top.rs"] {
        rig.write(path, "");
    }
    let find = |arguments: Value| paths(&rig.ok("find", arguments), "entries");
    assert_eq!(find(json!({"glob": "*.rs"})), ["src/a/b.rs", "src/main.rs", "top.rs"]);
    assert_eq!(find(json!({"glob": "src/**/*.rs"})), ["src/a/b.rs", "src/main.rs"]);
    assert_eq!(find(json!({"glob": "src/*"})), ["src/a/", "src/main.rs"]);
    assert_eq!(find(json!({"glob": "a*"})), ["docs/a.md", "docs/a.rs.md", "src/a/"]);
    assert_eq!(find(json!({"glob": "**/b.rs", "path": "src"})), ["src/a/b.rs"]);
    assert_eq!(find(json!({"glob": "{b,c}.*"})), ["src/a/b.rs", "src/a/c.txt"]);
    let (mut all, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = rig.ok("find", json!({"glob": "*", "limit": 1, "cursor": cursor}));
        all.extend(paths(&page, "entries"));
        cursor = page["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(
        all,
        ["docs/", "docs/a.md", "docs/a.rs.md", "src/", "src/a/", "src/a/b.rs", "src/a/c.txt", "src/main.rs", "top.rs"]
    );
    rig.refused("find", json!({"glob": "[a"}), &["no glob"]);
    rig.refused("find", json!({"glob": "*", "path": "top.rs"}), &["no directory"]);
}

#[test]
fn lines_are_found_by_text_and_by_regex() {
    let rig = Rig::new();
    rig.write("a.txt", "one\nTwo two\nthree\r\n");
    rig.write("b/c.md", &format!("{}needle{}\nlast two", "x".repeat(1000), "é".repeat(500)));
    rig.ok("write", json!({"path": "bin", "base64": "dHdvAAo="}));
    let search = |arguments: Value| rig.ok("search", arguments);
    let found = search(json!({"text": "two"}));
    let lines: Vec<_> =
        found["matches"].as_array().unwrap().iter().map(|m| (m["path"].clone(), m["line"].clone())).collect();
    assert_eq!(json!(lines), json!([["a.txt", 2], ["b/c.md", 2]]));
    assert_eq!((found["searched"].as_u64(), found["binary"].as_u64()), (Some(3), Some(1)));
    assert_eq!(search(json!({"text": "TWO", "ignore_case": true}))["matches"].as_array().unwrap().len(), 2);
    assert_eq!(search(json!({"regex": "^t.*e$"}))["matches"], json!([]), "the carriage return is part of the line");
    assert_eq!(search(json!({"regex": "^t.*e\\r?$"}))["matches"][0]["line"], 3);
    assert_eq!(search(json!({"text": "a.c"}))["matches"], json!([]), "a text is no pattern");
    assert_eq!(search(json!({"text": "two", "glob": "*.md"}))["matches"].as_array().unwrap().len(), 1);
    assert_eq!(search(json!({"text": "two", "path": "b"}))["searched"], 1);
    // The offset of a match is one for `read`; of a long line only the part around the match is shown.
    let long = &search(json!({"text": "needle"}))["matches"][0];
    assert!(long["text"].as_str().unwrap().contains("needle") && long["text"].as_str().unwrap().len() < 300, "{long}");
    let last = &search(json!({"text": "last"}))["matches"][0];
    assert_eq!(rig.ok("read", json!({"path": "b/c.md", "offset": last["offset"]}))["text"], "last two");
    // Many matches, in pages, each once.
    let numbers: String = (0..1000).map(|n| format!("match {n}\n")).collect();
    rig.write("n/1", &numbers);
    rig.write("n/2", &numbers);
    let (mut all, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = search(json!({"text": "match", "path": "n", "limit": 300, "cursor": cursor}));
        all.extend(page["matches"].as_array().unwrap().iter().map(|m| format!("{} {}", m["path"], m["text"])));
        cursor = page["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(all.len(), 2000);
    assert_eq!(all[1999], "\"n/2\" \"match 999\"");
    all.dedup();
    assert_eq!(all.len(), 2000);
    rig.refused("search", json!({"regex": "("}), &["regular expression"]);
    rig.refused("search", json!({"regex": "(a{1000}){1000}"}), &["regular expression"]);
    rig.refused("search", json!({"text": "a", "regex": "b"}), &["either"]);
    rig.refused("search", json!({}), &["either"]);
    rig.refused("search", json!({"text": "a", "cursor": "AAAA"}), &["no cursor"]);
}

#[test]
fn files_and_directories_move_and_go() {
    let rig = Rig::new();
    rig.write("a/b/f", "1");
    rig.write("g", "2");
    rig.refused("move", json!({"from": "g", "to": "a"}), &["is a directory", "\"a/g\""]);
    rig.refused("move", json!({"from": "g", "to": "a/b/f"}), &["already-exists", "`replace`"]);
    rig.refused("move", json!({"from": "a", "to": "a/b/c"}), &["invalid"]);
    rig.refused("move", json!({"from": "none", "to": "x"}), &["not-found"]);
    rig.refused("move", json!({"from": "a/b/f", "to": "g/x"}), &["not-directory"]);
    rig.ok("move", json!({"from": "a/b", "to": "new/deep/b"}));
    assert_eq!(rig.read("new/deep/b/f"), "1");
    rig.ok("move", json!({"from": "g", "to": "new/deep/b/f", "replace": true}));
    assert_eq!(rig.read("new/deep/b/f"), "2");
    rig.refused("remove", json!({"path": "new"}), &["not-empty", "`recursive`"]);
    rig.refused("remove", json!({"path": "none"}), &["not-found"]);
    rig.ok("remove", json!({"path": "new", "recursive": true}));
    rig.refused("stat", json!({"path": "new"}), &["not-found"]);
}

#[test]
fn history_diff_snapshots_and_restore() {
    let rig = Rig::new();
    let first = rig.write("f", "one\ntwo\n");
    let taken = rig.ok("snapshot", json!({"label": "good"}));
    rig.write("f", "one\n2\n");
    rig.write("g", "new");
    rig.refused("diff", json!({}), &["no fork", "`since`"]);
    let diff = rig.ok("diff", json!({"since": "good"}));
    assert_eq!((diff["total"].as_u64(), paths(&diff, "changes")), (Some(2), vec!["f".to_owned(), "g".to_owned()]));
    let patch = rig.ok("diff", json!({"since": taken["version"], "path": "f", "patch": true}));
    assert!(patch["patch"].as_str().unwrap().contains("-two\n+2\n"), "{patch}");
    let page = rig.ok("diff", json!({"since": "good", "limit": 1}));
    assert_eq!(paths(&rig.ok("diff", json!({"since": "good", "limit": 1, "cursor": page["next"]})), "changes"), ["g"]);
    let log = rig.ok("history", json!({"path": "f", "limit": 1}));
    assert_eq!(log["entries"].as_array().unwrap().len(), 1);
    let older = rig.ok("history", json!({"path": "f", "cursor": log["next"]}));
    assert!(older["entries"].as_array().unwrap().iter().any(|entry| entry["version"] == first["version"]), "{older}");
    let back = rig.ok("restore", json!({"path": "f", "version": "good"}));
    assert_eq!(back["changed"], 1);
    assert_eq!(rig.read("f"), "one\ntwo\n");
    assert_eq!(rig.read("g"), "new");
    rig.refused("restore", json!({"path": "f", "version": "bad"}), &["not-found", "bad"]);
    let all = rig.ok("snapshots", json!({}));
    assert!(all["snapshots"].as_array().unwrap().iter().any(|snapshot| snapshot["label"] == "good"), "{all}");
    rig.refused("read", json!({"path": "f", "at": "9999999999999999999"}), &["future"]);
}

#[test]
fn forks_are_reached_from_their_base_and_nothing_else_is() {
    let rig = Rig::new();
    rig.store.create_world(&rig.root, "other", &CreateOptions::default()).unwrap();
    rig.write("f", "base");
    let made = rig.ok("fork", json!({}));
    let name = made["fork"].as_str().unwrap();
    rig.ok("write", json!({"path": "f", "text": "fork", "fork": name}));
    rig.ok("write", json!({"path": "n", "text": "x", "fork": name}));
    assert_eq!(rig.read("f"), "base");
    assert_eq!(rig.ok("read", json!({"path": "f", "fork": name}))["text"], "fork");
    let diff = rig.ok("diff", json!({"fork": name}));
    assert_eq!(paths(&diff, "changes"), ["f", "n"]);
    let second = rig.ok("fork", json!({"fork": name, "name": "second"}));
    assert_eq!(rig.ok("read", json!({"path": "f", "fork": second["fork"]}))["text"], "fork");
    assert_eq!(rig.ok("stat", json!({"fork": "second"}))["world"]["fork_of"], name);
    // The root key may do anything; tools that are bound to `base` do not.
    let refusal = rig.call("read", json!({"path": "f", "fork": "other"})).unwrap_err();
    assert!(refusal.starts_with("denied"), "{refusal}");
    assert_eq!(rig.call("read", json!({"path": "f", "fork": "missing"})).unwrap_err(), refusal);
    assert_eq!(rig.call("read", json!({"path": "f", "fork": "NOT A NAME"})).unwrap_err(), refusal);
    assert_eq!(
        rig.call_as(&rig.root, "second", "list", json!({"fork": "base"})).unwrap_err().split(':').next(),
        Some("denied")
    );
    rig.refused("fork", json!({"name": "other"}), &["already-exists"]);
    rig.refused("fork", json!({"ttl_seconds": 0}), &["out of range"]);
}

#[test]
fn a_key_does_what_its_role_allows_in_its_world_and_learns_of_no_other() {
    let rig = Rig::new();
    rig.write("f", "base");
    rig.fork("base", "mine");
    let key = rig.key("mine", Role::Editor);
    let mine = |tool: &str, arguments: Value| rig.call_as(&key, "mine", tool, arguments);
    mine("write", json!({"path": "f", "text": "changed"})).unwrap();
    // The fork point is readable, although the base is not.
    assert_eq!(paths(&mine("diff", json!({})).unwrap(), "changes"), ["f"]);
    let patch = mine("diff", json!({"path": "f", "patch": true})).unwrap();
    assert!(patch["patch"].as_str().unwrap().contains("-base"), "{patch}");
    assert_eq!(mine("stat", json!({})).unwrap()["world"]["fork_of"], Value::Null);
    let refusal = mine("read", json!({"path": "f", "fork": "base"})).unwrap_err();
    assert_eq!(mine("read", json!({"path": "f", "fork": "missing"})).unwrap_err(), refusal);
    assert!(mine("fork", json!({})).unwrap_err().starts_with("denied"));
    let reader = rig.key("mine", Role::Reader);
    for (tool, arguments) in [
        ("write", json!({"path": "f", "text": ""})),
        ("edit", json!({"path": "f", "old": "changed", "new": "x"})),
        ("move", json!({"from": "f", "to": "g"})),
        ("remove", json!({"path": "f"})),
        ("snapshot", json!({})),
        ("restore", json!({"path": "f", "version": "1"})),
    ] {
        let text = rig.call_as(&reader, "mine", tool, arguments).unwrap_err();
        assert!(text.starts_with("denied"), "{tool}: {text}");
    }
    assert_eq!(rig.call_as(&reader, "mine", "read", json!({"path": "f"})).unwrap()["text"], "changed");
    for world in ["base", "missing", "NOT A NAME"] {
        let bound = Bound::new(rig.store.clone(), key.clone(), Some(world), String::new(), Arc::new(Urls));
        assert_eq!(bound.unwrap_err().to_string(), mw_world::Error::denied().to_string(), "{world}");
    }
    // The only world needs no name.
    let bound = Bound::new(rig.store.clone(), key.clone(), None, String::new(), Arc::new(Urls)).unwrap();
    assert_eq!(bound.world(), "mine");
    assert!(Bound::new(rig.store.clone(), rig.root.clone(), None, String::new(), Arc::new(Urls)).is_err());
    rig.store.delete_key(&rig.root, key.key_id()).unwrap();
    assert!(mine("write", json!({"path": "f", "text": "late"})).unwrap_err().starts_with("denied"));
}

#[test]
fn a_share_is_of_a_file_that_is_there() {
    let rig = Rig::new();
    rig.write("d/f", "x");
    let shared = rig.ok("share", json!({"path": "d/f", "expires_seconds": 60}));
    assert_eq!(shared["url"], format!("http://h/base/d/f?{}&60", rig.root.key_id()));
    rig.refused("share", json!({"path": "d"}), &["is-directory"]);
    rig.refused("share", json!({"path": "d/g"}), &["not-found"]);
    rig.refused("share", json!({"path": "d/f", "expires_seconds": 700_000}), &["out of range"]);
}

#[test]
fn a_key_of_a_prefix_works_under_it_and_nowhere_else() {
    let rig = Rig::new();
    rig.write("own/f", "own needle");
    rig.write("other/f", "other needle");
    let key = rig.granted(Grant { prefix: "own/".to_owned(), ..Grant::new("base", Role::Editor) });
    let own = |tool: &str, arguments: Value| rig.call_as(&key, "base", tool, arguments);
    assert_eq!(own("read", json!({"path": "own/f"})).unwrap()["text"], "own needle");
    own("write", json!({"path": "own/g", "text": "x"})).unwrap();
    own("edit", json!({"path": "own/g", "old": "x", "new": "y"})).unwrap();
    own("move", json!({"from": "own/g", "to": "own/h"})).unwrap();
    assert_eq!(paths(&own("list", json!({"path": "own"})).unwrap(), "entries"), ["own/f", "own/h"]);
    assert_eq!(own("search", json!({"text": "needle", "path": "own"})).unwrap()["searched"], 2);
    own("remove", json!({"path": "own/h"})).unwrap();
    assert_eq!(own("stat", json!({})).unwrap()["world"]["role"], "limited");
    for (tool, arguments) in [
        ("read", json!({"path": "other/f"})),
        ("stat", json!({"path": "other/f"})),
        ("list", json!({"path": "other"})),
        ("list", json!({})),
        ("find", json!({"glob": "*"})),
        ("search", json!({"text": "needle"})),
        ("write", json!({"path": "other/f", "text": ""})),
        ("write", json!({"path": "new", "text": ""})),
        ("edit", json!({"path": "other/f", "old": "other", "new": ""})),
        ("move", json!({"from": "own/f", "to": "other/g"})),
        ("move", json!({"from": "other/f", "to": "own/g"})),
        ("remove", json!({"path": "other/f"})),
        ("remove", json!({"path": "other", "recursive": true})),
        ("share", json!({"path": "other/f"})),
        ("history", json!({})),
        ("snapshot", json!({})),
        ("fork", json!({})),
    ] {
        let shown = arguments.to_string();
        let text = own(tool, arguments).unwrap_err();
        assert!(text.starts_with("denied") && !text.contains("needle"), "{tool} {shown}: {text}");
    }
    assert_eq!(rig.read("other/f"), "other needle");
}

/// What lies outside a key's prefix and what is not there at all are one refusal, from every tool, on either side of a move.
#[test]
fn outside_its_prefix_a_key_does_not_learn_what_is_there() {
    let rig = Rig::new();
    rig.write("own/f", "own");
    rig.write("top", "secret");
    rig.write("sub/f", "secret");
    let key = rig.granted(Grant { prefix: "own/".to_owned(), ..Grant::new("base", Role::Admin) });
    let version = rig.ok("stat", json!({}))["version"].clone();
    for (there, absent) in [("top", "nil"), ("sub", "nil"), ("sub/f", "sub/x"), ("sub/f", "nil/f")] {
        let asks = |path: &str| {
            vec![
                ("read", json!({"path": path})),
                ("read", json!({"path": path, "at": version})),
                ("read", json!({"path": format!("{path}/below")})),
                ("stat", json!({"path": path})),
                ("list", json!({"path": path})),
                ("find", json!({"path": path, "glob": "*"})),
                ("search", json!({"path": path, "text": "secret"})),
                ("write", json!({"path": path, "text": "x"})),
                ("write", json!({"path": path, "text": "x", "create": true})),
                ("write", json!({"path": path, "text": "x", "append": true})),
                ("write", json!({"path": path, "text": "x", "if_etag": "e"})),
                ("write", json!({"path": format!("{path}/below"), "text": "x"})),
                ("edit", json!({"path": path, "old": "secret", "new": "x"})),
                ("move", json!({"from": path, "to": "own/stolen"})),
                ("move", json!({"from": "own/f", "to": path})),
                ("move", json!({"from": "own/f", "to": path, "replace": true})),
                ("move", json!({"from": "own/f", "to": format!("{path}/below")})),
                ("remove", json!({"path": path})),
                ("remove", json!({"path": path, "recursive": true})),
                ("diff", json!({"path": path, "since": version})),
                ("history", json!({"path": path})),
                ("restore", json!({"path": path, "version": version})),
                ("share", json!({"path": path})),
            ]
        };
        for ((tool, of_there), (_, of_absent)) in asks(there).into_iter().zip(asks(absent)) {
            let shown = of_there.to_string();
            let told = |path: &str, arguments: Value| {
                let text = rig.call_as(&key, "base", tool, arguments).expect_err(&shown);
                text.replace(path, "PATH")
            };
            let text = told(there, of_there);
            assert!(text.starts_with("denied"), "{tool} {shown}: {text}");
            assert_eq!(text, told(absent, of_absent), "{tool} {shown}");
        }
    }
    assert_eq!((rig.read("top"), rig.read("own/f")), ("secret".to_owned(), "own".to_owned()));
    let seen: Vec<_> = paths(&rig.ok("find", json!({"glob": "*"})), "entries");
    assert_eq!(seen, ["own/", "own/f", "sub/", "sub/f", "top"], "and nothing was made on the way");
}

/// Patterns that other matchers take for ever for, and cursors that nobody was given.
#[test]
fn a_hostile_search_ends_soon_and_costs_what_it_may() {
    let rig = Rig::new();
    rig.write("long", &"a".repeat(1 << 20));
    for regex in ["(a*)*b", "(a|aa)+$b", "(.*a){12}b", "a{1,1000}b", "(x+x+)+y", r"\w{1,20}b"] {
        let found = rig.ok("search", json!({"regex": regex}));
        assert_eq!(found["matches"], json!([]), "{regex}");
    }
    // Every byte is a step for each of thousands of states: the call stops after its time and says where it was.
    let heavy = format!("[ab]*a{}c", "[ab]".repeat(700));
    let mut calls = 0;
    let mut ask = json!({"regex": heavy});
    loop {
        let answer = rig.ok("search", ask.clone());
        calls += 1;
        match answer.get("next") {
            Some(next) => ask["cursor"] = next.clone(),
            None => break,
        }
        assert!(calls < 64, "it goes on, a part at a time");
    }
    for too_large in ["(?:a{1000}){1000}", &r"\w{500}".repeat(20), &"(".repeat(300)] {
        rig.refused("search", json!({"regex": too_large}), &["invalid", "not taken"]);
    }
    let cursor = |offset: u64, line: u64, key: &str| {
        crate::page::cursor(&[&offset.to_be_bytes()[..], &line.to_be_bytes(), key.as_bytes()].concat())
    };
    for wrong in
        [cursor(u64::MAX, 1, "long"), cursor(0, u64::MAX, "long"), cursor(1 << 40, 7, "long"), "AAAA".to_owned()]
    {
        rig.refused("search", json!({"text": "a", "cursor": wrong}), &["invalid", "cursor"]);
    }
    assert_eq!(rig.ok("search", json!({"text": "a", "cursor": cursor(3, 1, "gone")}))["searched"], 1);
}

/// A call looks at 64 MiB, of text or not, and the cursors lead through all of it.
#[test]
fn a_search_looks_at_so_many_bytes_and_files_a_call() {
    let rig = Rig::new();
    let session = rig.store.session(&rig.root, "base").unwrap();
    let blob = |key: &str, content: &[u8]| {
        let mut staged = session.stage().unwrap();
        staged.push(content).unwrap();
        session.put(key.as_bytes(), staged, &Default::default()).unwrap();
    };
    // Of a binary file one piece is read, to see that it is one.
    let binary = vec![0u8; 256 << 10];
    for n in 0..300 {
        blob(&format!("b/{n:03}"), &binary);
    }
    blob("b/zz", b"needle\n");
    let (mut calls, mut found, mut binaries, mut ask) = (0, 0, 0, json!({"text": "needle", "path": "b"}));
    loop {
        let answer = rig.ok("search", ask.clone());
        calls += 1;
        found += answer["matches"].as_array().unwrap().len();
        binaries += answer["binary"].as_u64().unwrap();
        assert!(answer["binary"].as_u64().unwrap() <= 256, "64 MiB a call: {answer}");
        match answer.get("next") {
            Some(next) => ask["cursor"] = next.clone(),
            None => break,
        }
    }
    assert_eq!((calls, found, binaries), (2, 1, 300));
    let many: Vec<String> = (0..20_001).map(|n| format!("m/{n:05}")).collect();
    for key in &many {
        blob(key, b"x");
    }
    let first = rig.ok("search", json!({"text": "needle", "path": "m"}));
    assert_eq!(first["searched"], 20_000);
    let rest = rig.ok("search", json!({"text": "needle", "path": "m", "cursor": first["next"]}));
    assert_eq!((rest["searched"].as_u64(), rest.get("next")), (Some(1), None));
}

/// A small call must not become a large file: 16 MiB of one letter, each replaced by a page, would be terabytes.
#[test]
fn an_edit_that_would_grow_without_bound_is_refused() {
    let rig = Rig::new();
    rig.write("f", &"a".repeat(1 << 20));
    let grown = json!({"path": "f", "old": "a", "new": "b".repeat(1 << 16), "all": true});
    rig.refused("edit", grown, &["too-large"]);
    assert_eq!(rig.ok("edit", json!({"path": "f", "old": "a", "new": "bc", "all": true}))["replaced"], 1 << 20);
    rig.refused("edit", json!({"path": "f", "old": "b", "new": "c"}), &["occurs 1048576 times", "…"]);
}

/// Edits of one file at the same time: each is there afterwards, or was refused as busy; none is lost.
#[test]
fn edits_against_each_other_lose_nothing() {
    let rig = Rig::new();
    let lines: String = (0..40).map(|n| format!("<{n}>\n")).collect();
    rig.write("f", &lines);
    let done: Vec<usize> = std::thread::scope(|scope| {
        let work: Vec<_> = (0..8)
            .map(|worker| {
                let rig = &rig;
                scope.spawn(move || {
                    let mine = (0..40).filter(|n| n % 8 == worker);
                    mine.filter(|n| {
                        let ask = json!({"path": "f", "old": format!("<{n}>"), "new": format!("[{n}]")});
                        match rig.call("edit", ask) {
                            Ok(_) => true,
                            Err(text) => {
                                assert!(text.starts_with("busy"), "{text}");
                                false
                            }
                        }
                    })
                    .collect::<Vec<_>>()
                })
            })
            .collect();
        work.into_iter().flat_map(|work| work.join().unwrap()).collect()
    });
    let text = rig.read("f");
    for n in 0..40 {
        let is = if done.contains(&n) { format!("[{n}]") } else { format!("<{n}>") };
        assert!(text.contains(&is), "{n}: {text}");
    }
    assert!(done.len() >= 8, "somebody wins each time: {done:?}");
}
