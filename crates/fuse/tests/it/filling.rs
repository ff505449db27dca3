//! The content of a small file that the kernel is given when the file is opened: it is there, and never older than what was written.

use crate::bed::{bed, python};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Barrier;

/// The pages are there before anything was read: mincore(2) tells.
#[test]
fn a_small_file_is_there_when_it_is_opened() {
    let Some(bed) = bed() else { return };
    let m = bed.mount("base", "m");
    for (name, len) in
        [("one", 1), ("page", 4096), ("some", 5000), ("most", 64 << 10), ("more", (64 << 10) + 1), ("none", 0)]
    {
        fs::write(m.path(name), vec![b'x'; len]).unwrap();
        bed.put("base", &format!("{name}-s3"), &vec![b'x'; len]);
    }
    python(
        &m.at,
        r"
import ctypes,mmap,os
libc=ctypes.CDLL(None,use_errno=True)
libc.mmap.restype=ctypes.c_void_p
libc.mmap.argtypes=[ctypes.c_void_p,ctypes.c_size_t]+[ctypes.c_int]*3+[ctypes.c_long]
libc.mincore.argtypes=[ctypes.c_void_p,ctypes.c_size_t,ctypes.c_char_p]
def there(name,flags):
  fd=os.open(name,flags); n=os.fstat(fd).st_size
  if n==0: return []
  at=libc.mmap(None,n,mmap.PROT_READ,mmap.MAP_SHARED,fd,0)
  pages=ctypes.create_string_buffer((n+4095)//4096)
  assert libc.mincore(at,n,pages)==0,ctypes.get_errno()
  os.close(fd)
  return [page&1 for page in pages.raw[:(n+4095)//4096]]
for end in ('','-s3'):
  assert there('one'+end,os.O_RDONLY)==[1]
  assert there('page'+end,os.O_RDONLY)==[1]
  assert there('most'+end,os.O_RDONLY)==[1]*16
  assert not any(there('more'+end,os.O_RDONLY))
  assert there('none'+end,os.O_RDONLY)==[]
  # To be written too: nothing is given.
  assert not any(there('some'+end,os.O_RDWR))
  for name in ('one','page','most','more','none','some'):
    with open(name+end,'rb') as f: assert f.read()==b'x'*os.fstat(f.fileno()).st_size
",
    );
}

/// Whoever opens a file for the first time while it is changed, through this mount or elsewhere, has it as it was or as it is; after the change, as it is.
#[test]
fn nothing_old_is_given() {
    let Some(bed) = bed() else { return };
    let (m, other) = (bed.mount("base", "m"), bed.mount("base", "other"));
    let (readers, rounds, ways) = (3, 1200, 6);
    let (begin, end) = (Barrier::new(readers + 1), Barrier::new(readers + 1));
    // Long, so that it takes a while to be given.
    let old = |round: usize| format!("old {round:4} ").repeat(5000 + round).into_bytes();
    let new =
        |round: usize| format!("new {round:4} ").repeat(if round.is_multiple_of(4) { 20 } else { 6500 }).into_bytes();
    let mut cutter = Cutter::start(&m.at);
    std::thread::scope(|scope| {
        for _ in 0..readers {
            scope.spawn(|| {
                for round in 0..rounds {
                    let (path, old, new) = (m.path(&format!("f{round}")), old(round), new(round));
                    begin.wait();
                    for _ in 0..3 {
                        let read = fs::read(&path).unwrap();
                        // A change of several requests shows between them: empty, cut, or in part rewritten. One through S3 does not.
                        let is_between = round % ways != 4 && read.len() <= old.len().max(new.len());
                        assert!(read == old || read == new || is_between, "round {round}: {} bytes", read.len());
                    }
                    end.wait();
                    assert!(fs::read(&path).unwrap() == new, "round {round}: old content stayed");
                    begin.wait();
                }
            });
        }
        for round in 0..rounds {
            let (name, new) = (format!("f{round}"), new(round));
            let path = m.path(&name);
            fs::write(&path, old(round)).unwrap();
            let rewrite = |options: &mut OpenOptions| {
                let file = options.write(true).open(&path).unwrap();
                file.write_all_at(&new, 0).unwrap();
                file.set_len(new.len() as u64).unwrap();
            };
            begin.wait();
            match round % ways {
                0 => fs::write(&path, &new).unwrap(),
                // Through the kernel's pages, and around them.
                1 => rewrite(OpenOptions::new().read(true)),
                2 => rewrite(&mut OpenOptions::new()),
                3 => {
                    cutter.cut(&name);
                    OpenOptions::new().append(true).open(&path).unwrap().write_all(&new).unwrap();
                }
                4 => bed.put("base", &name, &new),
                _ => fs::write(other.path(&name), &new).unwrap(),
            }
            assert!(fs::read(&path).unwrap() == new, "round {round}: not what was written");
            end.wait();
            assert!(bed.get("base", &name).unwrap() == new);
            begin.wait();
            fs::remove_file(&path).unwrap();
        }
    });
}

/// A process that empties files by their names, so that nobody has them open to be written.
struct Cutter {
    process: Child,
    answers: BufReader<ChildStdout>,
}

impl Cutter {
    fn start(dir: &Path) -> Self {
        let program = "$| = 1; while (<>) { chomp; truncate($_, 0) or die; print qq(cut\n) }";
        let mut perl = Command::new("perl");
        perl.args(["-e", program]).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = perl.spawn().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, answers }
    }

    fn cut(&mut self, name: &str) {
        writeln!(self.process.stdin.as_ref().unwrap(), "{name}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert_eq!(line, "cut\n", "{name}");
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // It has nothing left to read.
        let _ = self.process.wait();
    }
}
