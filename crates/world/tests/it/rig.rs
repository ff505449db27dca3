//! A store over memory engines, for tests that are not about durability.

use mw_env::Env;
use mw_model::{Attr, FileType, Ino};
use mw_world::{CreateOptions, ForkOptions, Make, Options, Principal, PutOptions, Session, Store, WriteAt};
use std::sync::Arc;

/// A store and its root key.
pub struct Rig {
    pub meta: Arc<mw_meta::Memory>,
    pub segments: Arc<mw_segments::Memory>,
    pub env: Env,
    pub store: Arc<Store>,
    pub root: Principal,
}

/// Options of a store without a background, which folds early.
pub fn options() -> Options {
    // Little enough that merges are committed both ways.
    Options { fold_bytes: 16 << 10, little: 32, memory: 64 << 20, background: false, ..Options::default() }
}

impl Rig {
    pub fn new() -> Self {
        let (meta, segments) = (Arc::new(mw_meta::Memory::new()), Arc::new(mw_segments::Memory::new()));
        Self::over(meta, segments, Env::seeded(7))
    }

    pub fn over(meta: Arc<mw_meta::Memory>, segments: Arc<mw_segments::Memory>, env: Env) -> Self {
        let store = Store::open(meta.clone(), segments.clone(), env.clone(), options()).expect("the store opens");
        let root = store.principal(&store.root_key().expect("a root key").id).expect("root is alive");
        Self { meta, segments, env, store, root }
    }

    /// Ends the process, as far as the store can tell, and opens again.
    pub fn reopen(self) -> Self {
        let Self { meta, segments, env, store, root } = self;
        drop((root, store));
        Self::over(meta, segments, env)
    }

    pub fn create(&self, name: &str) -> Session {
        self.store.create_world(&self.root, name, &CreateOptions::default()).expect("the world is made");
        self.session(name)
    }

    pub fn fork(&self, base: &str, name: &str) -> Session {
        self.store.fork(&self.root, base, name, &ForkOptions::default()).expect("the fork is made");
        self.session(name)
    }

    pub fn session(&self, name: &str) -> Session {
        self.store.session(&self.root, name).expect("a session")
    }
}

/// What a test makes by default.
pub fn a(kind: FileType) -> Make {
    let mode = if kind == FileType::Directory { 0o755 } else { 0o644 };
    Make { kind, mode, uid: 1000, gid: 1000, rdev: 0, target: bytes::Bytes::new() }
}

/// Makes the directories of `path` and a file with `content` at its end.
pub fn file(session: &Session, path: &str, content: &[u8]) -> Attr {
    let mut at = Ino::ROOT;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let kind = if last { FileType::File } else { FileType::Directory };
        at = match session.lookup(at, part.as_bytes()) {
            Ok(attr) => attr.ino,
            Err(_) => session.make(at, part.as_bytes(), &a(kind)).expect("made").ino,
        };
        if last {
            let empty = mw_world::SetAttr { size: Some(0), ..Default::default() };
            session.set_attr(at, &empty).expect("cut");
            session.write(at, WriteAt::Offset(0), content).expect("written");
        }
    }
    session.attr(at).expect("there")
}

/// Bytes that do not compress, other ones for every `n`.
pub fn noise(n: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Env::seeded(n).fill(&mut bytes);
    bytes
}

/// Puts an object.
pub fn put(session: &Session, key: &str, content: &[u8]) {
    let mut staged = session.stage().expect("staging");
    staged.push(content).expect("pushed");
    session.put(key.as_bytes(), staged, &PutOptions::default()).expect("put");
}

/// Reads a file by its path.
pub fn content(session: &Session, path: &str) -> Option<Vec<u8>> {
    let attr = session.resolve(path.as_bytes()).ok()?;
    Some(session.read(attr.ino, 0, attr.size as usize).expect("read").to_vec())
}

/// Lists a directory's names.
pub fn names(session: &Session, path: &str) -> Vec<String> {
    let ino = session.resolve(path.as_bytes()).expect("there").ino;
    let mut names = Vec::new();
    session
        .open_dir(ino)
        .expect("opened")
        .read(
            0,
            &mut |entry, _| {
                names.push(String::from_utf8_lossy(&entry.name).into_owned());
                true
            },
            false,
        )
        .expect("read");
    names
}

/// Proves that the store is whole.
pub fn clean(store: &Arc<Store>) {
    let report = store.fsck(&mut |_| {}).expect("fsck runs");
    assert_eq!(report.problems, Vec::<String>::new());
}
