//! Answers to calls that must not be done twice: a client that lost its connection sends its last calls again.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many answers are kept. Each is at most a few hundred bytes: reads are simply done again.
const KEPT: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Replay(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    answers: HashMap<(u32, u64), Vec<u8>>,
    order: VecDeque<(u32, u64)>,
}

/// Names a call: its number, and its content, since clients use numbers again.
pub(crate) fn name(xid: u32, call: &Bytes) -> (u32, u64) {
    let mut hasher = DefaultHasher::new();
    call.hash(&mut hasher);
    (xid, hasher.finish())
}

impl Replay {
    pub(crate) fn answer(&self, call: (u32, u64)) -> Option<Vec<u8>> {
        self.0.lock().answers.get(&call).cloned()
    }

    pub(crate) fn keep(&self, call: (u32, u64), answer: &[u8]) {
        let mut kept = self.0.lock();
        if kept.answers.insert(call, answer.to_vec()).is_none() {
            kept.order.push_back(call);
        }
        while kept.order.len() > KEPT
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.answers.remove(&oldest);
        }
    }
}
