//! What happens in a run, for those who watch. Kept in memory, bounded; the record in `meta` is what lasts.

use crate::record::{Run, State};
use mw_sandbox::Stream;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::Duration;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Nothing; the run lives.
    Beat,
    /// The run (`None`), or an attempt, moved on.
    State {
        /// The attempt.
        attempt: Option<u32>,
        /// To where.
        state: State,
    },
    /// A command, or the validator, wrote something.
    Output {
        /// The attempt.
        attempt: u32,
        /// Which stream.
        stream: Stream,
        /// Whether the validator wrote it.
        validator: bool,
        /// The text; bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// An attempt was judged.
    Verdict {
        /// The attempt.
        attempt: u32,
        /// Whether it passed.
        passed: bool,
        /// Its score.
        score: Option<f64>,
        /// The exit status of what judged.
        exit: Option<i32>,
    },
    /// The run ended.
    Result(Box<Run>),
}

/// The most bytes of output that wait for watchers.
const MAX_BYTES: usize = 4 << 20;
/// How often a watcher hears that the run lives.
const BEAT: Duration = Duration::from_secs(5);

/// The events of one run.
#[derive(Default)]
pub(crate) struct Events {
    log: Mutex<Log>,
    more: Condvar,
}

#[derive(Default)]
struct Log {
    /// The number of the first event that is still here.
    first: u64,
    events: VecDeque<Event>,
    bytes: usize,
    ended: bool,
}

fn weight(event: &Event) -> usize {
    match event {
        Event::Output { text, .. } => text.len() + 64,
        _ => 64,
    }
}

impl Events {
    pub(crate) fn push(&self, event: Event) {
        let mut log = self.log.lock();
        log.ended |= matches!(event, Event::Result(_));
        log.bytes += weight(&event);
        log.events.push_back(event);
        while log.bytes > MAX_BYTES {
            let Some(oldest) = log.events.pop_front() else { break };
            log.bytes -= weight(&oldest);
            log.first += 1;
        }
        self.more.notify_all();
    }

    /// Hands the events to `each`, from the first that is still here, until the run ended or `each` returns false.
    pub(crate) fn watch(&self, each: &mut dyn FnMut(Event) -> bool) {
        let mut next = 0;
        loop {
            let event = {
                let mut log = self.log.lock();
                next = next.max(log.first);
                match log.events.get((next - log.first) as usize) {
                    Some(event) => {
                        next += 1;
                        event.clone()
                    }
                    None if log.ended => return,
                    None => {
                        self.more.wait_for(&mut log, BEAT);
                        if log.events.get((next - log.first.min(next)) as usize).is_some() {
                            continue;
                        }
                        Event::Beat
                    }
                }
            };
            let last = matches!(event, Event::Result(_));
            if !each(event) || last {
                return;
            }
        }
    }
}
