//! Clock and randomness: the real ones, or ones that follow from a seed.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A handle on clock and randomness. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Env(Arc<Source>);

#[derive(Debug)]
enum Source {
    Real { start: Instant },
    Seeded { state: Mutex<Seeded> },
}

#[derive(Debug)]
struct Seeded {
    random: u64,
    now: u64,
}

impl Env {
    /// Returns the machine's own clock and randomness.
    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn real() -> Self {
        Self(Arc::new(Source::Real { start: Instant::now() }))
    }

    /// Returns a clock that starts in 2026 and moves a microsecond a look, and randomness that follows from `seed`.
    pub fn seeded(seed: u64) -> Self {
        let state = Seeded { random: seed ^ 0x9e37_79b9_7f4a_7c15, now: 1_767_225_600_000_000_000 };
        Self(Arc::new(Source::Seeded { state: Mutex::new(state) }))
    }

    /// Returns the time as UNIX nanoseconds. May stand still or go back when the machine's clock is set.
    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn now(&self) -> u64 {
        match &*self.0 {
            Source::Real { .. } => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64),
            Source::Seeded { state } => {
                let mut state = state.lock();
                state.now += 1_000;
                state.now
            }
        }
    }

    /// Returns nanoseconds that never go back, from an arbitrary start.
    pub fn monotonic(&self) -> u64 {
        match &*self.0 {
            Source::Real { start } => start.elapsed().as_nanos() as u64,
            Source::Seeded { .. } => self.now(),
        }
    }

    /// Waits. A seeded clock is moved instead.
    #[allow(clippy::disallowed_methods, reason = "this is the one place that sleeps")]
    pub fn sleep(&self, time: Duration) {
        match &*self.0 {
            Source::Real { .. } => std::thread::sleep(time),
            Source::Seeded { state } => state.lock().now += time.as_nanos() as u64,
        }
    }

    /// Fills `out` with random bytes, fit for secrets when the environment is real.
    pub fn fill(&self, out: &mut [u8]) {
        match &*self.0 {
            Source::Real { .. } => {
                getrandom::fill(out).unwrap_or_else(|e| panic!("the kernel gives no random bytes: {e}"))
            }
            Source::Seeded { state } => {
                let mut state = state.lock();
                for chunk in out.chunks_mut(8) {
                    // SplitMix64: small, and every seed gives a full-period sequence.
                    state.random = state.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
                    let mut z = state.random;
                    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                    chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..chunk.len()]);
                }
            }
        }
    }

    /// Returns a random number.
    pub fn random(&self) -> u64 {
        let mut eight = [0; 8];
        self.fill(&mut eight);
        u64::from_le_bytes(eight)
    }

    /// Returns `n` random characters of `a-z2-7`, five bits each.
    pub fn token(&self, n: usize) -> String {
        let mut bytes = vec![0; n];
        self.fill(&mut bytes);
        bytes.iter().map(|b| char::from(b"abcdefghijklmnopqrstuvwxyz234567"[usize::from(b & 31)])).collect()
    }
}
