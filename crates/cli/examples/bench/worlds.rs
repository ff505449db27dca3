//! Worlds of many small files, filled once and shared by the tables.

use crate::client::Server;
use crate::table::row;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// How many connections fill a world, and how many files each sends at a time.
const FILLERS: usize = 4;
const PORTION: usize = 10_000;

/// Returns a world of `files` small files, filled at the first call.
pub fn of(server: &Server, files: usize) -> String {
    let world = format!("files-{files}");
    let mut client = server.client();
    if client.call("HEAD", &format!("/{world}"), b"", false).0 == 404 {
        let start = Instant::now();
        client.create(&world);
        fill(server, &world, files);
        let took = start.elapsed().as_secs_f64();
        let rate = format!("{:.0}/s", files as f64 / took);
        row(&format!("filling a world with {files} files"), &format!("{took:.1} s"), &rate);
    }
    world
}

/// Fills a world through the bulk door, 1,000 files a directory, over several connections.
fn fill(server: &Server, world: &str, count: usize) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..FILLERS {
            scope.spawn(|| {
                let mut client = server.client();
                loop {
                    let start = next.fetch_add(PORTION, Ordering::SeqCst);
                    if start >= count {
                        break;
                    }
                    client.fill(world, start..(start + PORTION).min(count));
                }
            });
        }
    });
}
