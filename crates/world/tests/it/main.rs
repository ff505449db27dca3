//! Behaviour of the crate, through its public verbs.
#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs, reason = "tests say what they expect")]

mod core;
mod crash;
mod crash_disk;
mod crash_pairs;
mod crash_work;
mod cycles;
mod durable;
mod faults;
mod faults_list;
mod faults_plant;
mod fsck_live;
mod merges;
mod newer;
mod objects;
mod oracle;
mod oracle_apply;
mod oracle_merges;
mod oracle_view;
mod promises;
mod promote;
mod quota;
mod retention;
mod rig;
mod rows;
mod sweep;
mod sweep_races;
mod versions;
mod watched;
