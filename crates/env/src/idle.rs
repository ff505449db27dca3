//! Threads that take only what nobody else wants of the processors.

/// Lets the calling thread run only while nothing else wants the processor that it runs on; the scheduler counts such a processor as
/// idle (sched(7), `SCHED_IDLE`). Returns whether the system does that.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the call has no safe wrapper")]
pub fn run_when_idle() -> bool {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads `none`, which lives, and changes the calling thread (0) alone.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) == 0 }
}

/// Lets the calling thread run only while nothing else wants the processor; not known here.
#[cfg(not(target_os = "linux"))]
pub fn run_when_idle() -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_calling_thread_alone_gives_way() {
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            // proc_pid_stat(5): the fields after the name begin with the third; the policy is the 41st.
            stat.rsplit(')').next().unwrap().split_whitespace().nth(38).unwrap().to_owned()
        };
        let there = std::thread::spawn(move || {
            assert!(super::run_when_idle());
            policy()
        });
        assert_eq!((there.join().unwrap().as_str(), policy().as_str()), ("5", "0"));
    }
}
