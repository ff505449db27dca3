//! Threads that help to hash and compress what is stored in one go. They do not know where it goes.
//!
//! Whoever writes much through a mount waits for the answer meanwhile, and leaves his processor free: a helper takes it. What is stored, and
//! where, does not depend on who sealed it.

use crate::blob::{Sealed, seal};
use mw_env::{processors, run_anywhere};
use mw_model::{Hash, WorldId};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// With less content than this nobody is called, in bytes: that takes as long as sealing some of it.
const LEAST: usize = 96 << 10;
/// The most helpers.
const MOST: usize = 3;

/// The helpers, who are there from the first time on that they are of use.
#[derive(Debug, Default)]
pub struct Crew {
    pool: OnceLock<Option<ThreadPool>>,
    /// The helpers that have something to do. Nobody waits for one of these: what he has left to do he does himself.
    busy: AtomicUsize,
}

impl Crew {
    fn pool(&self) -> Option<&ThreadPool> {
        let start = || {
            let helpers = processors().saturating_sub(1).min(MOST);
            // The thread that starts them may have been told to stay on a processor; they are not.
            let builder = ThreadPoolBuilder::new()
                .num_threads(helpers)
                .thread_name(|_| "seal".to_owned())
                .start_handler(|_| run_anywhere());
            if helpers == 0 { None } else { builder.build().ok() }
        };
        self.pool.get_or_init(start).as_ref()
    }

    /// Seals each of `contents`.
    pub fn seal<'a>(&self, world: WorldId, contents: &[&'a [u8]]) -> Vec<(Hash, Sealed<'a>)> {
        let much = contents.len() > 1 && contents.iter().map(|content| content.len()).sum::<usize>() >= LEAST;
        let Some(pool) = much.then(|| self.pool()).flatten() else {
            return contents.iter().map(|content| seal(world, content)).collect();
        };
        let sealed: Vec<OnceLock<_>> = contents.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let i = next.fetch_add(1, Ordering::Relaxed)
                && let (Some(content), Some(place)) = (contents.get(i), sealed.get(i))
            {
                place.get_or_init(|| seal(world, content));
            }
        };
        let free = |busy| pool.current_num_threads().saturating_sub(busy).min(contents.len() - 1);
        let called = self.busy.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |busy| Some(busy + free(busy)));
        pool.in_place_scope(|scope| {
            for _ in 0..called.map_or(0, free) {
                scope.spawn(|_| {
                    work();
                    self.busy.fetch_sub(1, Ordering::Relaxed);
                });
            }
            work();
        });
        sealed.into_iter().filter_map(OnceLock::into_inner).collect()
    }
}
