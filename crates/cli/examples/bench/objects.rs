//! S3 put and get, beside the disk's own sync rate and bandwidth.

use crate::client::Server;
use crate::table::{row, title};
use mw_env::Env;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Syncs a second of one writer that overwrites in place: the limit of a single durable client.
fn sync_rate(dir: &Path) -> f64 {
    let file = File::create(dir.join("sync")).unwrap();
    file.write_all_at(&vec![1; 1 << 20], 0).unwrap();
    file.sync_all().unwrap();
    let (start, mut n) = (Instant::now(), 0u32);
    while start.elapsed() < Duration::from_secs(2) {
        file.write_all_at(&[n as u8; 4096], u64::from(n % 256) * 4096).unwrap();
        file.sync_data().unwrap();
        n += 1;
    }
    f64::from(n) / start.elapsed().as_secs_f64()
}

/// Returns bytes that do not compress.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Env::seeded(7).fill(&mut bytes);
    bytes
}

fn bandwidth(dir: &Path) -> (f64, f64) {
    let path = dir.join("band");
    let block = noise(1 << 20);
    let start = Instant::now();
    let mut file = File::create(&path).unwrap();
    for _ in 0..512 {
        file.write_all(&block).unwrap();
    }
    file.sync_all().unwrap();
    let write = 512.0 / start.elapsed().as_secs_f64();
    let start = Instant::now();
    let read = std::fs::read(&path).unwrap().len() as f64 / 1_048_576.0 / start.elapsed().as_secs_f64();
    std::fs::remove_file(path).unwrap();
    (write, read)
}

/// Runs `clients` for a while; returns calls a second.
fn many(
    server: &Server,
    clients: usize,
    time: Duration,
    each: impl Fn(&mut crate::client::Client, usize, usize) + Sync,
) -> f64 {
    let start = Instant::now();
    let total: usize = std::thread::scope(|scope| {
        let all: Vec<_> = (0..clients)
            .map(|c| {
                let each = &each;
                scope.spawn(move || {
                    let mut client = server.client();
                    let mut n = 0;
                    while start.elapsed() < time {
                        each(&mut client, c, n);
                        n += 1;
                    }
                    n
                })
            })
            .collect();
        all.into_iter().map(|t| t.join().unwrap()).sum()
    });
    total as f64 / start.elapsed().as_secs_f64()
}

pub fn run(server: &Server, dir: &Path) {
    title("S3 put and get, beside the disk (put is durable: its sync is counted in)");
    server.client().create("objects");
    let small = vec![7u8; 4096];
    let large = noise(64 << 20);
    let time = Duration::from_secs(4);
    for clients in [1, 32] {
        let limit = sync_rate(dir);
        let rate = many(server, clients, time, |client, c, n| {
            client.put("objects", &format!("small/{c}/{n}"), &small);
        });
        row(
            &format!("put 4 KiB, {clients} clients"),
            &format!("{rate:.0}/s"),
            &format!("{:.2} x the disk's syncs ({limit:.0}/s)", rate / limit),
        );
        let rate = many(server, clients, time, |client, c, n| {
            client.get("objects", &format!("small/{c}/{}", n % 50));
        });
        row(&format!("get 4 KiB, {clients} clients"), &format!("{rate:.0}/s"), "");
    }
    let (write, read) = bandwidth(dir);
    for clients in [1, 32] {
        let rate = 64.0
            * many(server, clients, time, |client, c, n| {
                client.put("objects", &format!("large/{c}/{}", n % 2), &large);
            });
        row(
            &format!("put 64 MiB, {clients} clients"),
            &format!("{rate:.0} MiB/s"),
            &format!("{:.2} x the disk's write and sync ({write:.0} MiB/s)", rate / write),
        );
        let rate = 64.0
            * many(server, clients, time, |client, c, _| {
                client.get("objects", &format!("large/{c}/0"));
            });
        row(
            &format!("get 64 MiB, {clients} clients"),
            &format!("{rate:.0} MiB/s"),
            &format!("{:.2} x a cached read of a file ({read:.0} MiB/s)", rate / read),
        );
    }
}
