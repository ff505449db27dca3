//! The outside world through one door: clock, randomness, sleep, disk, and what threads take of the processors.
//!
//! The only place where std time, random numbers and files of the store may be touched; everything above takes an
//! [`Env`] and a [`Disk`], so that a test can seed both and replay one failure from one number.

mod affinity;
mod clock;
pub mod disk;
mod early;
mod idle;
mod local;

pub use affinity::{processors, run_anywhere, run_on};
pub use clock::Env;
pub use disk::{Disk, File};
pub use idle::run_when_idle;
pub use local::LocalDisk;
