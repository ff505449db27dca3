//! Memory: what the server keeps resident of a large world and of many forks that do nothing.

use crate::client::Server;
use crate::table::{row, title};

const FORKS: usize = 1000;
/// The budget of the caches that a server has unless told otherwise, in MiB.
const BUDGET: u64 = 1024;

pub fn run(server: &Server, files: usize) {
    title("memory of the server: a world written, then 1,000 idle forks of it open");
    let world = crate::worlds::of(server, files);
    row(&format!("peak resident, {files} files written"), &format!("{} MiB", server.peak_mib()), "");
    let mut client = server.client();
    for n in 0..FORKS {
        let fork = format!("resting-{n}");
        client.fork(&world, &fork);
        // A read, so that the fork is open; another file each time, so that the caches fill.
        client.get(&fork, &format!("d{:04}/f{:06}", n * (files / FORKS) / 1000, n * (files / FORKS)));
    }
    let peak = server.peak_mib();
    let within = if peak <= BUDGET { "within" } else { "OVER" };
    row(
        &format!("peak resident, {FORKS} forks open"),
        &format!("{peak} MiB"),
        &format!("{within} the budget of {BUDGET} MiB"),
    );
}
