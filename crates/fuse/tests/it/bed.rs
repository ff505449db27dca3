//! The test bed: a store in memory, worlds, mounts on a directory in memory, other processes.

use mw_env::Env;
use mw_fuse::{Mount, MountOptions, mount};
use mw_world::{Conditions, CreateOptions, ForkOptions, Object, Options, Principal, PutOptions, Session, Store};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

/// A store with one world, `base`.
pub struct Bed {
    pub store: Arc<Store>,
    pub root: Principal,
    pub dir: TempDir,
}

/// Makes a bed, or says why not.
pub fn bed() -> Option<Bed> {
    bed_over(Arc::new(mw_segments::Memory::new()), Options::default().memory)
}

/// Makes a bed whose content is in `segments`, with caches of `memory` bytes.
pub fn bed_over(segments: Arc<dyn mw_segments::Segments>, memory: usize) -> Option<Bed> {
    let can = std::fs::File::options().read(true).write(true).open("/dev/fuse").is_ok()
        && (rustix::process::geteuid().is_root() || Command::new("fusermount3").arg("-V").output().is_ok());
    if !missing(can, "/dev/fuse for reading and writing, and root or fusermount3") {
        return None;
    }
    let owner = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let options = Options { background: false, owner, memory, ..Options::default() };
    let store = Store::open(Arc::new(mw_meta::Memory::new()), segments, Env::real(), options).unwrap();
    let root = store.principal(&store.root_key().unwrap().id).unwrap();
    store.create_world(&root, "base", &CreateOptions::default()).unwrap();
    let shm = Path::new("/dev/shm");
    let dir = if shm.is_dir() { tempfile::tempdir_in(shm) } else { tempfile::tempdir() }.unwrap();
    // Ordinary users must be able to walk to the mounts.
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(Bed { store, root, dir })
}

/// Returns `there`; fails under `CI=true` and otherwise says so when something is missing.
pub fn missing(there: bool, what: &str) -> bool {
    if !there {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "needs {what}");
        println!("skipped: needs {what}");
    }
    there
}

/// Returns whether the tests run as root, which some need in order to become somebody else.
pub fn is_root() -> bool {
    missing(rustix::process::geteuid().is_root(), "root")
}

impl Bed {
    /// A session on a world, as S3 has it.
    pub fn session(&self, world: &str) -> Session {
        self.store.session(&self.root, world).unwrap()
    }

    /// Mounts a world at a directory of its own.
    pub fn mount(&self, world: &str, name: &str) -> Mounted {
        self.mount_with(world, name, &MountOptions::default())
    }

    pub fn mount_with(&self, world: &str, name: &str, options: &MountOptions) -> Mounted {
        let at = self.dir.path().join(name);
        std::fs::create_dir_all(&at).unwrap();
        let mount = mount(self.session(world), &at, options).unwrap();
        Mounted { mount, at }
    }

    pub fn fork(&self, base: &str, name: &str) {
        self.store.fork(&self.root, base, name, &ForkOptions::default()).unwrap();
    }

    /// What a PUT over S3 does.
    pub fn put(&self, world: &str, key: &str, content: &[u8]) {
        let session = self.session(world);
        let mut staged = session.stage().unwrap();
        staged.push(content).unwrap();
        session.put(key.as_bytes(), staged, &PutOptions { etag: "0".into(), ..PutOptions::default() }).unwrap();
    }

    /// What a GET over S3 does.
    pub fn get(&self, world: &str, key: &str) -> Option<Vec<u8>> {
        self.object(world, key).map(|object| object.read(0, object.info.size as usize).unwrap().to_vec())
    }

    pub fn object(&self, world: &str, key: &str) -> Option<Object> {
        self.session(world).get(key.as_bytes()).ok()
    }

    pub fn delete(&self, world: &str, key: &str) {
        assert!(self.session(world).delete(key.as_bytes(), &Conditions::default()).unwrap(), "{key} was not there");
    }
}

/// A mount and where it is.
pub struct Mounted {
    pub mount: Mount,
    pub at: PathBuf,
}

impl Mounted {
    pub fn path(&self, name: &str) -> PathBuf {
        self.at.join(name)
    }

    /// Lets everybody write in the root directory.
    pub fn open_to_all(&self) -> &Self {
        std::fs::set_permissions(&self.at, std::fs::Permissions::from_mode(0o777)).unwrap();
        self
    }

    pub fn names(&self, dir: &str) -> Vec<String> {
        names(&self.path(dir))
    }
}

/// The sorted names in a directory.
pub fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs a shell script in `dir` as an ordinary user.
pub fn as_user(dir: &Path, script: &str) -> Output {
    Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-euc", script])
        .current_dir(dir)
        .output()
        .unwrap()
}

/// Fails with what the program said.
pub fn succeeded(output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
}

/// Runs a Python program in `dir` to its end.
pub fn python(dir: &Path, program: &str) {
    succeeded(&Command::new("python3").args(["-c", program]).current_dir(dir).output().unwrap());
}

/// A Python program in `dir` that takes turns with the test: it calls `turn()`, which returns when the test calls [`Turns::next`].
pub struct Turns {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Turns {
    pub fn start(dir: &Path, program: &str) -> Self {
        let turn = "import sys,os,mmap\ndef turn():\n  print('turn',flush=True)\n  assert sys.stdin.readline()\n";
        let mut child = Command::new("python3")
            .args(["-c", &format!("{turn}{program}")])
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// Waits until the program calls `turn()`.
    pub fn wait(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "turn\n", "the program ended: {:?}", self.child.wait());
    }

    /// Lets the program go on.
    pub fn next(&mut self) {
        self.input.write_all(b"\n").unwrap();
    }

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets the program go on and end, which it may not do well.
    pub fn let_go(mut self) {
        self.next();
        drop(self.input);
        self.child.wait().unwrap();
    }

    /// Kills the program and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets the program go on to its end.
    pub fn finish(mut self) {
        self.next();
        assert!(self.child.wait().unwrap().success());
    }
}

/// Bytes that do not repeat.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    Env::seeded(seed).fill(&mut out);
    out
}
