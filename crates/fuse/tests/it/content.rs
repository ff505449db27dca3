//! Content: append, mapped memory, holes, copies, open files without a name.

use crate::bed::{Turns, bed, bed_over, noise, python};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;

fn append(paths: &[PathBuf], writers: usize, lines: usize) {
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let path = &paths[writer % paths.len()];
            scope.spawn(move || {
                let mut log = OpenOptions::new().append(true).create(true).open(path).unwrap();
                for line in 0..lines {
                    let line = format!("{writer:02}-{line:05}-{}\n", "x".repeat(90));
                    assert_eq!(log.write(line.as_bytes()).unwrap(), 100);
                }
            });
        }
    });
}

fn whole_lines(log: &[u8], count: usize) {
    assert_eq!(log.len(), count * 100);
    let mut lines: Vec<_> = log.chunks(100).collect();
    assert!(lines.iter().all(|line| line.ends_with(b"x\n") && line.iter().filter(|b| **b == b'\n').count() == 1));
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), count);
}

/// C04: appends of one mount, and of two mounts of one world.
#[test]
fn appends_are_never_lost() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    append(&[m.path("log")], 8, 200);
    whole_lines(&fs::read(m.path("log")).unwrap(), 1600);
    let m2 = bed.mount("base", "m2");
    append(&[m.path("log2"), m2.path("log2")], 8, 100);
    whole_lines(&bed.get("base", "log2").unwrap(), 800);
    // What a kernel thought about the end while the other was appending is corrected.
    for mount in [&m, &m2] {
        append(&[mount.path("log2")], 1, 1);
    }
    assert_eq!(bed.get("base", "log2").unwrap().len(), 80_200);
    assert_eq!(fs::metadata(m.path("log2")).unwrap().len(), 80_200);
    assert_eq!(fs::read(m2.path("log2")).unwrap(), bed.get("base", "log2").unwrap());
}

/// A descriptor that appends can be read and mapped, and what it wrote is what others read, page by page.
#[test]
fn a_file_opened_to_append_is_a_file() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    python(
        &m.at,
        r"
import mmap,os
fd=os.open('a',os.O_CREAT|os.O_RDWR|os.O_APPEND); other=os.open('a',os.O_RDONLY); want=b''
for i in range(300):
    line=b'%099d\n'%i; os.write(fd,line); want+=line
    assert os.pread(other,len(want)+9,0)==want and os.fstat(other).st_size==len(want)
m=mmap.mmap(fd,len(want)); assert m[:]==want; m[0:4]=b'ABCD'; m.close()
assert os.pread(other,4,0)==b'ABCD' and os.pread(fd,4,0)==b'ABCD'
w=os.open('a',os.O_WRONLY); os.pwrite(w,b'x',50); assert os.pread(fd,1,50)==b'x'
",
    );
    assert_eq!(bed.get("base", "a").unwrap().len(), 30_000);
}

/// C12: mapped stores are seen by read at once, arrive after close, and are in S3 after unmapping.
#[test]
fn shared_mappings_and_reads_agree() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    python(
        &m.at,
        r"
import mmap,os
fd=os.open('m',os.O_CREAT|os.O_RDWR);os.ftruncate(fd,1<<20)
m=mmap.mmap(fd,1<<20);m[0:4]=b'ABCD';assert os.pread(fd,4,0)==b'ABCD'
os.pwrite(fd,b'EFGH',8192);assert m[8192:8196]==b'EFGH'
m[500000:500004]=b'WXYZ';os.close(fd);m[0:4]=b'LAST';m.close()
assert open('m','rb').read(4)==b'LAST'
",
    );
    let stored = bed.get("base", "m").unwrap();
    assert_eq!(stored.len(), 1 << 20);
    assert_eq!(
        (&stored[..4], &stored[8192..8196], &stored[500_000..500_004]),
        (&b"LAST"[..], &b"EFGH"[..], &b"WXYZ"[..])
    );
}

/// C12, third case: a fork has what was stored into mapped memory before it; also with `O_APPEND` on another descriptor.
#[test]
fn a_fork_has_mapped_stores() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let mut program = Turns::start(
        &m.at,
        r"
fd=os.open('m',os.O_CREAT|os.O_RDWR);os.ftruncate(fd,1<<20)
m=mmap.mmap(fd,1<<20);os.close(fd)
for i in range(20):
    m[4096*i:4096*i+4]=b'%04d'%i
    turn()
    assert m[4096*i:4096*i+4]==b'%04d'%i
m.close()
",
    );
    for i in 0..20 {
        program.wait();
        bed.fork("base", &format!("fork{i}"));
        let stored = bed.get(&format!("fork{i}"), "m").unwrap();
        assert_eq!(stored.len(), 1 << 20);
        assert_eq!(&stored[4096 * i..4096 * i + 4], format!("{i:04}").as_bytes());
        assert!(stored[4096 * (i + 1)..].iter().all(|b| *b == 0));
        program.next();
    }
    drop(program);
}

/// C29: an open file outlives its name, and leaves nothing behind.
#[test]
fn an_open_file_outlives_its_name() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(m.path("u")).unwrap();
    file.write_all(b"hello").unwrap();
    fs::remove_file(m.path("u")).unwrap();
    assert!(m.names("").is_empty());
    file.write_all(b" more").unwrap();
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello more");
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    bed.fork("base", "fork1");
    assert!(bed.get("fork1", "u").is_none());
    fs::write(m.path("u"), "another").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 10);
    drop(file);
    fs::create_dir(m.path("d")).unwrap();
    let mut inside = File::create(m.path("d/x")).unwrap();
    fs::remove_file(m.path("d/x")).unwrap();
    fs::remove_dir(m.path("d")).unwrap();
    inside.write_all(b"y").unwrap();
    assert_eq!(m.names(""), ["u"]);
}

/// C29: a descriptor keeps its version when the name is replaced, by rename or over S3.
#[test]
fn a_descriptor_keeps_its_version() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let (old, new, newer) = (noise(1, 3 << 20), noise(2, 1 << 20), noise(3, 2 << 20));
    fs::write(m.path("r"), &old).unwrap();
    fs::write(m.path("other"), &new).unwrap();
    let mut first = File::open(m.path("r")).unwrap();
    let mut head = vec![0; 1 << 20];
    first.read_exact(&mut head).unwrap();
    fs::rename(m.path("other"), m.path("r")).unwrap();
    let mut second = File::open(m.path("r")).unwrap();
    bed.put("base", "r", &newer);
    assert_eq!(fs::read(m.path("r")).unwrap(), newer);
    bed.delete("base", "r");
    assert!(!m.path("r").exists());
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).unwrap();
    assert!(head == old[..1 << 20] && rest == old[1 << 20..]);
    let mut all = Vec::new();
    second.read_to_end(&mut all).unwrap();
    assert!(all == new);
}

#[test]
fn truncation_and_sparse_writes() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(m.path("f")).unwrap();
    file.write_all_at(b"end", 1_000_000).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 1_000_003);
    let mut hole = vec![1; 1000];
    file.read_exact_at(&mut hole, 500_000).unwrap();
    assert!(hole.iter().all(|b| *b == 0));
    file.set_len(10).unwrap();
    file.set_len(20).unwrap();
    assert_eq!(fs::read(m.path("f")).unwrap(), [0; 20]);
    File::create(m.path("f")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 0);
    assert_eq!(bed.get("base", "f").unwrap(), b"");
}

#[test]
fn allocation_holes_and_copies() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let data = noise(4, 1 << 20);
    fs::write(m.path("f"), &data).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(m.path("f")).unwrap();
    let allocate = |mode, offset, len| rustix::fs::fallocate(&file, mode, offset, len);
    allocate(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 262_144, 262_144).unwrap();
    let mut expected = data.clone();
    expected[262_144..524_288].fill(0);
    assert!(fs::read(m.path("f")).unwrap() == expected);
    allocate(FallocateFlags::ZERO_RANGE, 0, 4096).unwrap();
    expected[..4096].fill(0);
    allocate(FallocateFlags::KEEP_SIZE, 0, 2 << 20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 1 << 20);
    allocate(FallocateFlags::empty(), 0, 2 << 20).unwrap();
    expected.resize(2 << 20, 0);
    assert!(fs::read(m.path("f")).unwrap() == expected);
    assert_eq!(allocate(FallocateFlags::COLLAPSE_RANGE, 0, 4096), Err(Errno::OPNOTSUPP));

    let copy = File::create(m.path("g")).unwrap();
    let mut copied = 0;
    let (mut from, mut to) = (0, 0);
    while copied < 2 << 20 {
        let n = rustix::fs::copy_file_range(&file, Some(&mut from), &copy, Some(&mut to), (2 << 20) - copied).unwrap();
        assert!(n > 0);
        copied += n;
    }
    assert!(fs::read(m.path("g")).unwrap() == expected);

    assert_eq!(rustix::fs::seek(&file, SeekFrom::Data(600_000)), Ok(600_000));
    assert_eq!(rustix::fs::seek(&file, SeekFrom::Data(5 << 20)), Err(Errno::NXIO));
    let hole = rustix::fs::seek(&file, SeekFrom::Hole(0)).unwrap();
    assert!(hole <= 2 << 20);
}

#[test]
fn sync_and_space() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    let mut file = File::create(m.path("f")).unwrap();
    file.write_all(b"x").unwrap();
    file.sync_all().unwrap();
    file.sync_data().unwrap();
    File::open(&m.at).unwrap().sync_all().unwrap();
    let space = rustix::fs::statvfs(&m.at).unwrap();
    assert!(space.f_blocks > 0 && space.f_bavail > 0 && space.f_files > 0);
    assert_eq!(space.f_namemax, 255);
}

/// A block that does not verify is an I/O error of its file; the mount and everything else on it go on.
#[test]
fn a_corrupt_block_is_an_error_of_its_file() {
    let disk = tempfile::tempdir().unwrap();
    let local = Arc::new(mw_env::LocalDisk::new(disk.path()).unwrap());
    let segments = mw_segments::Local::open(local, mw_env::Env::real()).unwrap();
    let Some(bed) = bed_over(segments, 1 << 20) else { return };
    let m = bed.mount("base", "m");
    let (good, bad) = (noise(1, 300_000), noise(2, 300_000));
    fs::write(m.path("good"), &good).unwrap();
    fs::write(m.path("bad"), &bad).unwrap();
    File::open(m.path("bad")).unwrap().sync_all().unwrap();
    m.mount.unmount(true).unwrap();
    // One bit of what lies on the disk.
    let mut flipped = 0;
    for file in fs::read_dir(disk.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let needle = &bad[100_000..100_064];
        if let Some(at) = bytes.windows(needle.len()).position(|window| window == needle) {
            let file = File::options().write(true).open(&path).unwrap();
            file.write_all_at(&[bytes[at] ^ 1], at as u64).unwrap();
            flipped += 1;
        }
    }
    assert_eq!(flipped, 1);
    let m = bed.mount("base", "m");
    let refused = fs::read(m.path("bad")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::IO.raw_os_error()));
    assert!(fs::read(m.path("good")).unwrap() == good);
    // What of it verifies is read, and it can be written anew.
    let file = File::options().read(true).write(true).open(m.path("bad")).unwrap();
    let mut head = vec![0; 4096];
    file.read_exact_at(&mut head, 0).unwrap();
    assert!(head == bad[..4096]);
    fs::write(m.path("bad"), &good).unwrap();
    assert!(fs::read(m.path("bad")).unwrap() == good);
}
