use super::*;
use mw_http::frames::{MAGIC, encode};

fn node(path: &str, kind: FileType, mode: u32, target: &str) -> Node {
    Node {
        path: Bytes::copy_from_slice(path.as_bytes()),
        kind,
        mode,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: 5,
        atime: 1,
        mtime: 1_700_000_000_123_456_789,
        target: Bytes::copy_from_slice(target.as_bytes()),
        xattrs: Vec::new(),
    }
}

fn root() -> Record {
    Record::Node(node("", FileType::Directory, 0o755, ""))
}

fn file(path: &str, mode: u32) -> Vec<Record> {
    vec![
        Record::Node(node(path, FileType::File, mode, "")),
        Record::Data { offset: 0, bytes: Bytes::from_static(b"hello") },
        Record::Done,
    ]
}

fn link(path: &str, target: &str) -> Record {
    Record::Node(node(path, FileType::Symlink, 0o777, target))
}

fn pull(dir: &Path, records: &[Record]) -> Result<Moved> {
    let mut bytes = MAGIC.to_vec();
    records.iter().chain([&Record::End]).for_each(|record| encode(record, &mut bytes));
    let destination = Destination { path: dir.to_owned(), inside: false, name: Bytes::from_static(b"x"), owner: false };
    receive(&bytes[..], &destination, "token".to_owned(), &mut |_| {})
}

fn temp() -> tempfile::TempDir {
    let fast = Path::new("/dev/shm");
    if fast.is_dir() { tempfile::tempdir_in(fast).unwrap() } else { tempfile::tempdir().unwrap() }
}

#[test]
fn a_link_that_was_just_made_is_not_written_through() {
    let (dir, outside) = (temp(), temp());
    std::fs::write(outside.path().join("secret"), "kept").unwrap();
    let out = outside.path().to_str().unwrap();
    // x -> outside, then x/secret; y -> outside/secret, then y itself.
    let through = [vec![root(), link("x", out)], file("x/secret", 0o644)].concat();
    assert_eq!(pull(dir.path(), &through).unwrap_err().exit(), crate::failure::DENIED);
    let onto = [vec![root(), link("y", &format!("{out}/secret"))], file("y", 0o644)].concat();
    pull(dir.path(), &onto).unwrap();
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "kept");
    assert_eq!(std::fs::read_to_string(dir.path().join("y")).unwrap(), "hello");
    assert!(!dir.path().join("y").is_symlink());
}

#[test]
fn a_link_that_stood_there_before_is_not_followed() {
    let (dir, outside) = (temp(), temp());
    std::os::unix::fs::symlink(outside.path(), dir.path().join("d")).unwrap();
    let records = [vec![root(), Record::Node(node("d", FileType::Directory, 0o755, ""))], file("d/f", 0o644)].concat();
    assert!(pull(dir.path(), &records).is_err());
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn a_hard_link_to_a_link_names_the_link() {
    let (dir, outside) = (temp(), temp());
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "kept").unwrap();
    let hard = Record::HardLink { path: Bytes::from_static(b"h"), to: Bytes::from_static(b"y") };
    let records = [vec![root(), link("y", secret.to_str().unwrap()), hard], file("h", 0o644)].concat();
    pull(dir.path(), &records).unwrap();
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "kept");
}

#[test]
fn set_id_bits_and_devices_stay_out() {
    use std::os::unix::fs::PermissionsExt;
    let dir = temp();
    let device = Record::Node(node("null", FileType::CharDevice, 0o666, ""));
    let moved = pull(dir.path(), &[vec![root(), device], file("su", 0o4755)].concat()).unwrap();
    assert!(!dir.path().join("null").exists());
    assert_eq!(std::fs::metadata(dir.path().join("su")).unwrap().permissions().mode() & 0o7777, 0o755);
    assert_eq!(moved.skipped.len(), 2);
}

#[test]
fn a_stream_that_breaks_leaves_no_half_file() {
    let dir = temp();
    let mut bytes = MAGIC.to_vec();
    [vec![root()], file("f", 0o644)[..2].to_vec()].concat().iter().for_each(|record| encode(record, &mut bytes));
    let destination = Destination { path: dir.path().to_owned(), inside: false, name: Bytes::new(), owner: false };
    assert!(receive(&bytes[..], &destination, "token".to_owned(), &mut |_| {}).is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
