//! Names and attributes: making, renaming, linking, permissions, times, extended attributes.

use crate::bed::{as_user, bed, is_root, missing, succeeded};
use rustix::fs::{CWD, RenameFlags, XattrFlags, renameat_with};
use rustix::io::Errno;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// C05: the mode is for later opens, not for the descriptor that made the file.
#[test]
fn a_read_only_file_is_written_by_its_maker() {
    let Some(bed) = bed() else { return };
    if !is_root() {
        return;
    }
    let m = bed.mount("base", "m");
    m.open_to_all();
    succeeded(&as_user(&m.at, "umask 0333; echo x > ro; test \"$(cat ro)\" = x"));
    assert_eq!(mode(&m.path("ro")), 0o444);
    let made = fs::metadata(m.path("ro")).unwrap();
    assert_eq!((made.uid(), made.gid()), (65534, 65534));
    let refused = as_user(&m.at, "echo y >> ro");
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("ermission denied"));
    succeeded(&as_user(&m.at, "install -m 444 ro h && rm -f h ro && test ! -e ro"));
    // 0400 and opened for reading and writing, exclusively.
    succeeded(&as_user(
        &m.at,
        "python3 -c \"import os;f=os.open('x',os.O_CREAT|os.O_EXCL|os.O_RDWR,0o400);os.write(f,b'x');os.close(f)\"",
    ));
    assert_eq!(bed.get("base", "x").unwrap(), b"x");
}

/// C05: nothing but what the permission bits say.
#[test]
fn permissions_are_checked() {
    let Some(bed) = bed() else { return };
    if !is_root() {
        return;
    }
    let m = bed.mount("base", "m");
    fs::write(m.path("secret"), "s").unwrap();
    fs::set_permissions(m.path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    for script in ["cat secret", "echo x > new", "rm -f secret", "mkdir d", "chmod 644 secret"] {
        assert!(!as_user(&m.at, script).status.success(), "{script}");
    }
    assert_eq!(m.names(""), ["secret"]);
}

/// A directory with the setgid bit hands its group on (Linux open(2), mkdir(2)).
#[test]
fn a_setgid_directory_hands_its_group_on() {
    let Some(bed) = bed() else { return };
    if !is_root() {
        return;
    }
    let m = bed.mount("base", "m");
    fs::create_dir(m.path("d")).unwrap();
    std::os::unix::fs::chown(m.path("d"), None, Some(1234)).unwrap();
    fs::set_permissions(m.path("d"), fs::Permissions::from_mode(0o2775)).unwrap();
    fs::create_dir(m.path("d/sub")).unwrap();
    fs::write(m.path("d/f"), "").unwrap();
    assert_eq!(fs::metadata(m.path("d/sub")).unwrap().gid(), 1234);
    assert_eq!(mode(&m.path("d/sub")) & 0o2000, 0o2000);
    assert_eq!(fs::metadata(m.path("d/f")).unwrap().gid(), 1234);
    assert_eq!(mode(&m.path("d/f")) & 0o2000, 0);
}

/// POSIX write, chown, truncate: setuid does not survive.
#[test]
fn setuid_is_taken_away() {
    let Some(bed) = bed() else { return };
    if !is_root() {
        return;
    }
    let m = bed.mount("base", "m");
    m.open_to_all();
    let suid = |name: &str| {
        fs::write(m.path(name), "abc").unwrap();
        fs::set_permissions(m.path(name), fs::Permissions::from_mode(0o6777)).unwrap();
        assert_eq!(mode(&m.path(name)), 0o6777);
    };
    suid("w");
    succeeded(&as_user(&m.at, "echo x >> w"));
    assert_eq!(mode(&m.path("w")), 0o777);
    suid("t");
    succeeded(&as_user(&m.at, "truncate -s 1 t"));
    assert_eq!(mode(&m.path("t")), 0o777);
    suid("o");
    succeeded(&as_user(&m.at, ": > o"));
    assert_eq!(mode(&m.path("o")), 0o777);
    suid("a");
    succeeded(&as_user(&m.at, "fallocate -l 9 a"));
    assert_eq!(mode(&m.path("a")), 0o777);
    suid("c");
    std::os::unix::fs::chown(m.path("c"), Some(65534), None).unwrap();
    assert_eq!(mode(&m.path("c")), 0o777);
    // Root keeps them when it writes.
    suid("r");
    fs::write(m.path("r"), "x").unwrap();
    assert_eq!(mode(&m.path("r")), 0o6777);
}

/// C17: the flags of renameat2, and the plain errors of rename.
#[test]
fn rename_obeys_its_flags() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let rename = |a: &str, b: &str, flags| renameat_with(CWD, m.path(a), CWD, m.path(b), flags);
    fs::write(m.path("a"), "A").unwrap();
    fs::write(m.path("b"), "B").unwrap();
    rename("a", "b", RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read_to_string(m.path("a")).unwrap(), "B");
    assert_eq!(fs::read_to_string(m.path("b")).unwrap(), "A");
    assert_eq!(rename("a", "b", RenameFlags::NOREPLACE), Err(Errno::EXIST));
    assert_eq!(rename("a", "b", RenameFlags::NOREPLACE | RenameFlags::EXCHANGE), Err(Errno::INVAL));
    assert_eq!(rename("a", "b", RenameFlags::from_bits_retain(1 << 30)), Err(Errno::INVAL));
    assert_eq!(rename("a", "b", RenameFlags::WHITEOUT), Err(Errno::INVAL));
    assert_eq!(rename("a", "none", RenameFlags::EXCHANGE), Err(Errno::NOENT));
    assert_eq!(m.names(""), ["a", "b"]);
    // The kernel remembers that there is no such name; S3 makes it; NOREPLACE must not clobber it.
    assert!(!m.path("fresh").exists());
    bed.put("base", "fresh", b"S3");
    assert_eq!(rename("a", "fresh", RenameFlags::NOREPLACE), Err(Errno::EXIST));
    assert_eq!(fs::read(m.path("fresh")).unwrap(), b"S3");

    fs::create_dir(m.path("d1")).unwrap();
    fs::create_dir(m.path("d2")).unwrap();
    fs::write(m.path("d2/x"), "").unwrap();
    let plain = |a: &str, b: &str| rename(a, b, RenameFlags::empty());
    assert_eq!(plain("d1", "d2"), Err(Errno::NOTEMPTY));
    assert_eq!(plain("a", "d1"), Err(Errno::ISDIR));
    assert_eq!(plain("d1", "a"), Err(Errno::NOTDIR));
    assert_eq!(plain("d1", "d1/in"), Err(Errno::INVAL));
    plain("a", "b").unwrap();
    plain("d2", "d1").unwrap();
    assert_eq!(m.names("d1"), ["x"]);
    // A directory and a file can trade places.
    rename("d1", "b", RenameFlags::EXCHANGE).unwrap();
    assert_eq!(m.names("b"), ["x"]);
    assert_eq!(fs::read_to_string(m.path("d1")).unwrap(), "B");
}

#[test]
fn hard_links_share_everything() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    fs::write(m.path("a"), "one").unwrap();
    fs::hard_link(m.path("a"), m.path("b")).unwrap();
    let (a, b) = (fs::metadata(m.path("a")).unwrap(), fs::metadata(m.path("b")).unwrap());
    assert_eq!((a.ino(), a.nlink(), b.nlink()), (b.ino(), 2, 2));
    fs::write(m.path("b"), "two!").unwrap();
    assert_eq!(fs::read_to_string(m.path("a")).unwrap(), "two!");
    fs::remove_file(m.path("a")).unwrap();
    assert_eq!(fs::metadata(m.path("b")).unwrap().nlink(), 1);
    assert_eq!(fs::hard_link(m.path("b"), m.path("b")).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
}

/// C13: a link is data; the server never follows it.
#[test]
fn symlinks_are_kept_byte_for_byte() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    for (target, name) in [("/etc", "x"), ("../../../../etc", "z"), ("nowhere", "d"), ("l1", "l2"), ("l2", "l1")] {
        symlink(target, m.path(name)).unwrap();
    }
    let again = bed.mount("base", "again");
    for (target, name) in [("/etc", "x"), ("../../../../etc", "z"), ("nowhere", "d"), ("l1", "l2"), ("l2", "l1")] {
        assert_eq!(fs::read_link(again.path(name)).unwrap(), Path::new(target));
        assert_eq!(fs::symlink_metadata(again.path(name)).unwrap().len(), target.len() as u64);
    }
    assert_eq!(fs::metadata(m.path("l1")).unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
    assert!(!m.path("d").exists());
    assert!(bed.get("base", "x/passwd").is_none());
}

#[test]
fn special_files_can_be_made() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    succeeded(&Command::new("mkfifo").arg(m.path("p")).output().unwrap());
    let socket = std::os::unix::net::UnixListener::bind(m.path("s")).unwrap();
    use std::os::unix::fs::FileTypeExt;
    assert!(fs::metadata(m.path("p")).unwrap().file_type().is_fifo());
    assert!(fs::metadata(m.path("s")).unwrap().file_type().is_socket());
    drop(socket);
    assert_eq!(m.names(""), ["p", "s"]);
}

/// C18: only a later write moves mtime; nanoseconds and years before 1970 stay.
#[test]
fn times_are_what_was_set() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    crate::bed::python(
        &m.at,
        r"
import os
fd=os.open('t',os.O_CREAT|os.O_WRONLY)
os.write(fd,b'x'); os.utime(fd,ns=(1,1447221600123456789)); os.fchmod(fd,0o640); os.close(fd)
assert os.stat('t').st_mtime_ns==1447221600123456789
c=os.stat('t').st_ctime_ns
os.chmod('t',0o600); s=os.stat('t')
assert s.st_mtime_ns==1447221600123456789 and s.st_ctime_ns>c and s.st_atime_ns==1
for ns in (-1_000_000_000,-1_200_000_000,-1,0,1,4_000_000_000_123_456_789):
    os.utime('t',ns=(ns,ns)); s=os.stat('t'); assert (s.st_mtime_ns,s.st_atime_ns)==(ns,ns),(ns,s.st_mtime_ns)
open('t').read(); assert os.stat('t').st_mtime_ns==4_000_000_000_123_456_789
os.rename('t','u'); os.link('u','v'); assert os.stat('v').st_mtime_ns==4_000_000_000_123_456_789
open('u','a').write('more'); assert os.stat('v').st_mtime_ns<4_000_000_000_123_456_789
os.mkdir('d'); os.utime('d',ns=(5,6)); os.symlink('u','l'); os.utime('l',ns=(7,8),follow_symlinks=False)
assert os.stat('d').st_mtime_ns==6 and os.lstat('l').st_mtime_ns==8
",
    );
    // UTIME_OMIT and UTIME_NOW.
    let touch = |args: &[&str]| succeeded(&Command::new("touch").args(args).arg(m.path("u")).output().unwrap());
    touch(&["-d", "2001-01-01T00:00:00Z"]);
    touch(&["-a"]);
    let u = fs::metadata(m.path("u")).unwrap();
    assert_eq!(u.mtime(), 978_307_200);
    assert!(u.atime() > 1_000_000_000);
    let again = bed.mount("base", "again");
    assert_eq!(fs::metadata(again.path("u")).unwrap().mtime(), 978_307_200);
    assert_eq!(fs::metadata(again.path("d")).unwrap().mtime_nsec(), 6);
}

#[test]
fn extended_attributes_answer_as_the_kernel_wants() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let f = m.path("f");
    fs::write(&f, "").unwrap();
    let mut small = [0u8; 2];
    let mut big = [0u8; 64];
    rustix::fs::setxattr(&f, "user.a", b"value", XattrFlags::CREATE).unwrap();
    rustix::fs::setxattr(&f, "user.empty", b"", XattrFlags::empty()).unwrap();
    assert_eq!(rustix::fs::setxattr(&f, "user.a", b"", XattrFlags::CREATE), Err(Errno::EXIST));
    assert_eq!(rustix::fs::setxattr(&f, "user.b", b"", XattrFlags::REPLACE), Err(Errno::NODATA));
    assert_eq!(rustix::fs::getxattr_query(&f, "user.a"), Ok(5));
    assert_eq!(rustix::fs::getxattr(&f, "user.a", &mut small), Err(Errno::RANGE));
    assert_eq!(rustix::fs::getxattr(&f, "user.a", &mut big), Ok(5));
    assert_eq!(&big[..5], b"value");
    assert_eq!(rustix::fs::getxattr(&f, "user.empty", &mut big), Ok(0));
    assert_eq!(rustix::fs::getxattr(&f, "user.none", &mut big), Err(Errno::NODATA));
    assert_eq!(rustix::fs::listxattr_query(&f), Ok(18));
    assert_eq!(rustix::fs::listxattr(&f, &mut small), Err(Errno::RANGE));
    assert_eq!(rustix::fs::listxattr(&f, &mut big), Ok(18));
    assert_eq!(&big[..18], b"user.a\0user.empty\0");
    rustix::fs::removexattr(&f, "user.a").unwrap();
    assert_eq!(rustix::fs::removexattr(&f, "user.a"), Err(Errno::NODATA));
}

/// acl(5): lists decide, bits and lists are one thing, and a default list is handed on instead of the umask.
#[test]
fn access_control_lists_are_enforced_and_kept() {
    let Some(bed) = bed() else { return };
    if !is_root() || !missing(Command::new("setfacl").arg("--version").output().is_ok(), "setfacl (package acl)") {
        return;
    }
    let m = bed.mount("base", "m");
    let sh = |dir: &Path, script: &str| {
        let output = Command::new("sh").args(["-euc", script]).current_dir(dir).output().unwrap();
        succeeded(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    sh(&m.at, "echo secret > f; chmod 640 f; setfacl -m u:65534:r f");
    succeeded(&as_user(&m.at, "test \"$(cat f)\" = secret"));
    assert!(!as_user(&m.at, "echo x >> f").status.success());
    assert_eq!(sh(&m.at, "getfacl -cn f"), "user::rw-\nuser:65534:r--\ngroup::r--\nmask::r--\nother::---\n\n");
    // The group bits are the mask.
    sh(&m.at, "chmod 600 f");
    assert!(!as_user(&m.at, "cat f").status.success());
    assert_eq!(
        sh(&m.at, "getfacl -cn f"),
        "user::rw-\nuser:65534:r--\t#effective:---\ngroup::r--\t#effective:---\nmask::---\nother::---\n\n"
    );
    // A list that says no more than bits is bits.
    sh(&m.at, "echo x > g; setfacl --set u::rwx,g::r-x,o::--- g; setfacl -b g f; setfacl -k .");
    assert_eq!(mode(&m.path("g")), 0o750);
    assert_eq!(rustix::fs::listxattr_query(m.path("g")), Ok(0));
    // Handed on, over the umask.
    sh(&m.at, "mkdir d; setfacl -d -m u:65534:rw,m::rw d; umask 077; mkdir d/sub; echo x > d/f; ln -s f d/l");
    assert_eq!(mode(&m.path("d/f")), 0o664);
    succeeded(&as_user(&m.at, "echo y >> d/f"));
    assert_eq!(
        sh(&m.at, "getfacl -cdn d/sub"),
        "user::rwx\nuser:65534:rw-\ngroup::r-x\nmask::rw-\nother::r-x\n\n"
            .replace("group::r-x", "group::r-x\t#effective:r--")
    );
    // In a fork and another mount, too.
    bed.fork("base", "fork");
    let fork = bed.mount("fork", "fork");
    assert_eq!(sh(&fork.at, "getfacl -cnR ."), sh(&m.at, "getfacl -cnR ."));
    succeeded(&as_user(&fork.at, "echo z >> d/f"));
}

/// open(2), `O_TMPFILE`: a file without a name, which a link may give one.
#[test]
fn a_file_without_a_name_can_be_given_one() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let open = |flags| {
        let flags = rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR | flags;
        rustix::fs::open(&m.at, flags, rustix::fs::Mode::from_raw_mode(0o640)).unwrap()
    };
    let name = |file: &rustix::fd::OwnedFd| format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(file));
    let link = |file: &rustix::fd::OwnedFd, to: &str| {
        rustix::fs::linkat(CWD, name(file), CWD, m.path(to), rustix::fs::AtFlags::SYMLINK_FOLLOW)
    };
    let (kept, dropped) = (open(rustix::fs::OFlags::empty()), open(rustix::fs::OFlags::EXCL));
    assert_eq!(rustix::io::write(&kept, b"kept"), Ok(4));
    assert_eq!(rustix::io::write(&dropped, b"dropped"), Ok(7));
    let stat = rustix::fs::fstat(&kept).unwrap();
    assert_eq!((stat.st_nlink, stat.st_mode & 0o7777), (0, 0o640));
    assert_eq!(m.names(""), [""; 0]);
    // It goes into no fork.
    bed.fork("base", "fork");
    link(&kept, "named").unwrap();
    assert_eq!(link(&dropped, "never"), Err(Errno::NOENT));
    drop((kept, dropped));
    assert_eq!(m.names(""), ["named"]);
    assert_eq!(fs::read(m.path("named")).unwrap(), b"kept");
    assert_eq!(fs::metadata(m.path("named")).unwrap().nlink(), 1);
    assert_eq!(bed.mount("fork", "fork").names(""), [""; 0]);
    assert_eq!(bed.get("base", "named").unwrap(), b"kept");
}

#[test]
fn odd_names_are_names() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    use std::os::unix::ffi::OsStrExt;
    let odd: [&[u8]; 5] = [b"a b", b"\xff\xfe", b"new\nline", "ü日".as_bytes(), &[b'x'; 255]];
    for name in odd {
        fs::write(m.at.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    for name in odd {
        assert_eq!(fs::read(m.at.join(std::ffi::OsStr::from_bytes(name))).unwrap(), name);
    }
    assert_eq!(fs::read_dir(&m.at).unwrap().count(), 5);
    let long = fs::write(m.path(&"x".repeat(256)), "").unwrap_err();
    assert_eq!(long.raw_os_error(), Some(Errno::NAMETOOLONG.raw_os_error()));
}

/// POSIX unlink, rmdir: what a program has open or works in is there without a name, also when opening it is the kernel's affair alone.
#[test]
fn pipes_and_working_directories_outlive_their_names() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    const SCRIPT: &str = "
import os
os.mkfifo('p', 0o640)
p = os.open('p', os.O_RDWR)
os.unlink('p')
assert os.fstat(p).st_nlink == 0 and os.fstat(p).st_mode & 0o777 == 0o640
os.write(p, b'through')
assert os.read(p, 10) == b'through'
os.mkdir('d')
os.chdir('d')
os.rmdir('../d')
assert os.listdir('.') == [] and os.stat('.').st_nlink == 0
try: open('f', 'w')
except FileNotFoundError: pass
else: raise SystemExit('made in a removed directory')
";
    crate::bed::python(&m.at, SCRIPT);
    assert_eq!(m.names(""), [""; 0]);
}

/// Names that only S3 can hold are read, written and removed under another name, and are not listed.
#[test]
fn names_that_only_s3_can_hold_have_another_name() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let long = "l".repeat(300);
    let other = String::from_utf8(mw_world::escaped(long.as_bytes()).unwrap().to_vec()).unwrap();
    fs::create_dir(m.path("d")).unwrap();
    assert!(!m.path("d/.s3~").exists());
    for (key, path) in [
        ("d/", "d/.s3~"),
        ("d/../up", "d/.s3~%2e%2e/up"),
        ("d//x", "d/.s3~/x"),
        (&format!("d/{long}"), &format!("d/{other}")),
    ] {
        // A directory hides the object of its name here as anywhere.
        if key == "d//x" {
            fs::remove_file(m.path("d/.s3~")).unwrap();
        }
        bed.put("base", key, key.as_bytes());
        assert_eq!(fs::read(m.path(path)).unwrap(), key.as_bytes(), "{path}");
        fs::write(m.path(path), "changed").unwrap();
        assert_eq!(bed.get("base", key).unwrap(), b"changed", "{key}");
    }
    assert_eq!(m.names("d"), [""; 0]);
    fs::remove_file(m.path(&format!("d/{other}"))).unwrap();
    assert!(bed.get("base", &format!("d/{long}")).is_none());
    fs::rename(m.path("d/.s3~%2e%2e/up"), m.path("up")).unwrap();
    assert_eq!(m.names(""), ["d", "up"]);
    // An ordinary file of such a name comes first.
    fs::write(m.path("d/.s3~plain"), "plain").unwrap();
    assert_eq!(bed.get("base", "d/.s3~plain").unwrap(), b"plain");
}

/// A mount for one user: what the store's owner has is shown as the user's, and what the user makes is the owner's.
#[test]
fn owners_are_shown_as_asked() {
    let Some(bed) = bed() else { return };
    if !is_root() {
        return;
    }
    bed.put("base", "s3", b"from S3");
    let plain = bed.mount("base", "plain");
    let owner = Some((65534, 65534));
    let m = bed.mount_with("base", "m", &mw_fuse::MountOptions { owner, ..Default::default() });
    succeeded(&as_user(&m.at, "test -O s3; echo more >> s3; echo x > new; mkdir d; chmod 700 d; echo y > d/f"));
    let who = |path: std::path::PathBuf| fs::metadata(path).map(|meta| (meta.uid(), meta.gid())).unwrap();
    for name in ["s3", "new", "d/f"] {
        assert_eq!(who(m.path(name)), (65534, 65534), "{name}");
        assert_eq!(who(plain.path(name)), (0, 0), "{name}");
    }
    // What belongs to others stays theirs, and giving away goes through.
    std::os::unix::fs::chown(m.path("new"), Some(1), Some(0)).unwrap();
    assert_eq!(who(m.path("new")), (1, 0));
    assert_eq!(who(plain.path("new")), (1, 65534));
}

#[test]
fn reading_moves_no_time() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    std::fs::write(m.path("f"), "content").unwrap();
    let before = std::fs::metadata(m.path("f")).unwrap();
    assert_eq!(std::fs::read(m.path("f")).unwrap(), b"content");
    let names = std::fs::read_dir(&m.at).unwrap().count();
    let after = std::fs::metadata(m.path("f")).unwrap();
    assert_eq!((names, before.accessed().unwrap()), (1, after.accessed().unwrap()));
    // Programs that look for it are told.
    let flags = rustix::fs::statvfs(&m.at).unwrap().f_flag;
    assert!(flags.contains(rustix::fs::StatVfsMountFlags::NOATIME), "{flags:?}");
}
