//! What the system tells of a process or one of its threads: `/proc/ID/stat`, proc_pid_stat(5).

/// The state, `Z` and `X` for what has ended.
pub(crate) const STATE: usize = 3;
const PROCESSOR: usize = 39;

/// Returns on which processor a thread ran last.
pub(crate) fn processor_of(task: u32) -> Option<usize> {
    stat(task, PROCESSOR)?.parse().ok()
}

/// Returns a field, by its number in the manual, from the third on; none when there is no such task.
pub(crate) fn stat(task: u32, field: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{task}/stat")).ok()?;
    // Fields follow the second one, the name, which may contain anything but ends with the last parenthesis.
    stat.rsplit(')').next()?.split_whitespace().nth(field.checked_sub(STATE)?).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_manual_whatever_the_name_is() {
        let odd = std::thread::Builder::new().name("a) Z (b c".to_owned());
        let there = odd.spawn(|| {
            let me = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
            (stat(me, STATE), stat(me, 4), stat(me, PROCESSOR))
        });
        let (state, parent, processor) = there.unwrap().join().unwrap();
        assert_eq!(state.as_deref(), Some("R"));
        let mine = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().to_string());
        assert_eq!(parent, mine);
        assert!(processor.unwrap().parse::<usize>().is_ok());
        assert_eq!(stat(0, STATE), None);
        assert_eq!(stat(std::process::id(), 1), None);
    }
}
