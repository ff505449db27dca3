use super::*;
use std::io;
use std::sync::OnceLock;

/// A file that runs something while it is being synced.
#[derive(Default)]
struct Hooked {
    during: OnceLock<Box<dyn Fn() + Send + Sync>>,
    syncs: AtomicU64,
}

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooked")
    }
}

impl File for Hooked {
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        if let Some(during) = self.during.get() {
            during();
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn held(&self, _: u64, len: u64) -> io::Result<u64> {
        Ok(len)
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(0)
    }
}

fn hook(file: &Hooked, during: impl Fn() + Send + Sync + 'static) {
    assert!(file.during.set(Box::new(during)).is_ok());
}

#[test]
fn what_is_written_during_a_sync_is_not_covered_by_it() {
    let file = Arc::new(Hooked::default());
    let group = Arc::new(Group::new(0, file.clone()));
    let inside = group.clone();
    hook(&file, move || inside.wrote(2));
    group.wrote(1);
    group.wait(1).unwrap();
    assert_eq!(group.synced(), 1);
    group.wait(2).unwrap();
    assert_eq!((group.synced(), group.syncs()), (2, 2));
}

#[test]
fn a_file_that_comes_round_during_its_sync_is_synced_again() {
    let [first, second] = [(); 2].map(|()| Arc::new(Hooked::default()));
    let group = Arc::new(Group::new(0, first.clone()));
    group.wrote(1);
    group.switched(second.clone());
    group.wrote(2);
    // While both are being synced, the tree takes over the first one's records and the log comes back to that file.
    let (inside, again) = (group.clone(), first.clone());
    hook(&second, move || {
        inside.reached(1);
        inside.switched(again.clone());
        inside.wrote(3);
    });
    group.wait(2).unwrap();
    assert_eq!(group.synced(), 2);
    let before = first.syncs.load(Ordering::Relaxed);
    group.wait(3).unwrap();
    assert_eq!(first.syncs.load(Ordering::Relaxed), before + 1);
}

#[test]
fn earlier_files_are_synced_with_the_last_and_then_no_more() {
    let files = [(); 3].map(|()| Arc::new(Hooked::default()));
    let group = Group::new(0, files[0].clone());
    group.wrote(1);
    group.switched(files[1].clone());
    group.wrote(2);
    group.switched(files[2].clone());
    group.wrote(3);
    group.wait(1).unwrap();
    group.wrote(4);
    group.wait(4).unwrap();
    assert_eq!(files.map(|file| file.syncs.load(Ordering::Relaxed)), [1, 1, 2]);
}

#[test]
fn threads_that_wait_together_share_syncs() {
    const THREADS: u64 = 16;
    const EACH: u64 = 200;
    let file = Arc::new(Hooked::default());
    hook(&file, std::thread::yield_now);
    let group = Group::new(0, file);
    let written = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let lsn = {
                        let mut written = written.lock();
                        *written += 1;
                        group.wrote(*written);
                        *written
                    };
                    group.wait(lsn).unwrap();
                    assert!(group.synced() >= lsn);
                }
            });
        }
    });
    assert_eq!(group.synced(), THREADS * EACH);
    assert!(group.syncs() <= THREADS * EACH);
}
