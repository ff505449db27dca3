//! Seeded faults for tests: a disk in memory that loses, tears and reorders what was not synced.
//!
//! Invariant: everything that goes wrong follows from one number, so that one seed replays one failure. Nothing here knows
//! what the store writes. Only for tests: no crate may depend on it except as a dev-dependency.
//!
//! - [`disk`]: [`SimDisk`], its faults and its counters;
//! - `image`: the bytes of one file, sparse and cheap to copy;
//! - [`Part`]: the files of a disk whose names begin alike, as a disk;
//! - `change`: one write that was not synced yet, and which part of it a power cut leaves.
//!
//! The usual crash test cuts the power at every step of a workload in turn:
//!
//! ```
//! use mw_env::Disk;
//! use mw_sim::SimDisk;
//!
//! for step in 0.. {
//!     let disk = SimDisk::new(7);
//!     disk.fail_at(step);
//!     let outcome = (|| {
//!         let file = disk.open("log")?;
//!         file.write_at(b"hello", 0)?;
//!         file.sync()
//!     })();
//!     let found = disk.crash();
//!     if outcome.is_ok() {
//!         let mut bytes = [0; 5];
//!         found.open("log").unwrap().read_at(&mut bytes, 0).unwrap();
//!         assert_eq!(&bytes, b"hello");
//!     }
//!     if !disk.is_off() {
//!         break;
//!     }
//! }
//! ```

mod change;
pub mod disk;
mod image;
mod part;

pub use disk::{Counts, SimDisk};
pub use part::Part;
