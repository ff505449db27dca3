//! On which processors a thread runs.

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Lets the calling thread run on `processor` alone. Returns whether it may: nothing has changed when the process was not given that processor.
#[cfg(target_os = "linux")]
pub fn run_on(processor: usize) -> bool {
    if processor >= CpuSet::MAX_CPU || !given().is_some_and(|given| given.is_set(processor)) {
        return false;
    }
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).is_ok()
}

/// Lets the calling thread run wherever the process may: what a thread is told by [`run_on`], those that it starts inherit.
#[cfg(target_os = "linux")]
pub fn run_anywhere() {
    if let Some(given) = given() {
        // It fails only where the process has lost them all: then the system has moved the thread already.
        let _ = sched_setaffinity(None, &given);
    }
}

/// Returns how many processors the process may use, wherever the calling thread was told to stay.
#[cfg(target_os = "linux")]
pub fn processors() -> usize {
    given().map_or(1, |given| given.count() as usize)
}

/// Returns the processors of the process: those of its first thread, which is never told to stay anywhere.
#[cfg(target_os = "linux")]
fn given() -> Option<CpuSet> {
    sched_getaffinity(Some(rustix::process::getpid())).ok()
}

/// Lets the calling thread run on `processor` alone; not known here.
#[cfg(not(target_os = "linux"))]
pub fn run_on(_processor: usize) -> bool {
    false
}

/// Returns how many processors the process may use.
#[cfg(not(target_os = "linux"))]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Lets the calling thread run wherever the process may: as it does here.
#[cfg(not(target_os = "linux"))]
pub fn run_anywhere() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_told_to_and_may_leave() {
        let all = given().unwrap();
        let last = (0..CpuSet::MAX_CPU).rev().find(|n| all.is_set(*n)).unwrap();
        let (told, inherited, left) = std::thread::spawn(move || {
            assert!(run_on(last));
            let told = sched_getaffinity(None).unwrap();
            assert_eq!(processors(), all.count() as usize);
            let there = std::thread::spawn(move || {
                let inherited = sched_getaffinity(None).unwrap();
                run_anywhere();
                (inherited, sched_getaffinity(None).unwrap())
            });
            let (inherited, left) = there.join().unwrap();
            (told, inherited, left)
        })
        .join()
        .unwrap();
        assert_eq!((told.count(), told.is_set(last)), (1, true));
        assert_eq!(inherited, told);
        assert_eq!(left, all);
        // The first thread, and so the process, may run where it could.
        assert_eq!(given().unwrap(), all);
    }

    #[test]
    fn a_processor_that_there_is_not_changes_nothing() {
        let before = sched_getaffinity(None).unwrap();
        for none in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
            assert!(!run_on(none));
        }
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
