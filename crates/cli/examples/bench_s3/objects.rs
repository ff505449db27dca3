//! Rows of single objects: small ones by the second, large ones by their bytes, copies, and many uploads at once.

use super::client::Client;
use super::peer::{Peer, ok};
use super::table::{Aim, Ratio, Table};
use super::{Settings, TRIES, disk, median, one_byte, timed};
use mw_env::Env;
use std::time::Instant;

/// What an object of 4 KiB, and a large one, should reach of the durable peer, and a large one of the disk.
const SMALL: Aim = Aim::AtLeast(2.0);
const LARGE: Aim = Aim::AtLeast(1.2);
const DISK: Aim = Aim::AtLeast(0.7);
/// What a whole operation may cost of a durable put of one byte.
pub const WHOLE: Aim = Aim::AtMost(3.0);
/// The memory budget of the server in MiB, of which uploads may take half.
const BUDGET: f64 = 1024.0;

pub fn run(peers: &[Peer], settings: &Settings) {
    let table = Table::new(peers);
    small(&table, peers, settings);
    let most = settings.large.max(settings.upload).max(64);
    let body = noise(most << 20);
    let mut sizes = vec![64.min(settings.large), settings.large];
    sizes.dedup();
    for mib in sizes {
        large(&table, peers, settings, &body[..mib << 20]);
    }
    copy(&table, peers, settings);
    uploads(&table, peers, &body[..settings.upload << 20]);
}

/// Returns bytes that do not compress.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Env::seeded(7).fill(&mut bytes);
    bytes
}

/// How many objects each client has at least, to read again.
const FEW: usize = 5;

/// Runs `clients` for a while; returns calls a second.
fn many(peer: &Peer, settings: &Settings, clients: usize, each: impl Fn(&mut Client, usize, usize) + Sync) -> f64 {
    let start = Instant::now();
    let total: usize = std::thread::scope(|scope| {
        let each = &each;
        let run = |c: usize| {
            let (mut client, mut n) = (peer.client(), 0);
            while start.elapsed() < settings.time || n < FEW {
                each(&mut client, c, n);
                n += 1;
            }
            n
        };
        let all: Vec<_> = (0..clients).map(|c| scope.spawn(move || run(c))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    total as f64 / start.elapsed().as_secs_f64()
}

fn small(table: &Table, peers: &[Peer], settings: &Settings) {
    let body = vec![7u8; 4096];
    for clients in [1, 32] {
        let what = |verb: &str| format!("{verb} 4 KiB, {clients} connection{}", if clients == 1 { "" } else { "s" });
        let put = table.measure(&what("put"), peers, |peer| {
            let each = |client: &mut Client, c, n| {
                drop(ok(client, "PUT", &format!("/bench/small/{c}/{n}"), &[], &body));
            };
            Some(many(peer, settings, clients, each))
        });
        table.row(&what("put"), "/s", &put, None, &Vec::from_iter(table.to_durable(&put, Some(SMALL))));
        let get = table.measure(&what("get"), peers, |peer| {
            let each = |client: &mut Client, c, n| {
                let body = ok(client, "GET", &format!("/bench/small/{c}/{}", n % FEW), &[], b"");
                assert_eq!(body.len(), 4096);
            };
            Some(many(peer, settings, clients, each))
        });
        table.row(&what("get"), "/s", &get, None, &Vec::from_iter(table.to_durable(&get, Some(SMALL))));
    }
}

fn large(table: &Table, peers: &[Peer], settings: &Settings, body: &[u8]) {
    let mib = body.len() >> 20;
    let best = |times: Vec<f64>| mib as f64 / times.into_iter().fold(f64::MAX, f64::min);
    let (write, read) = (0..TRIES)
        .map(|_| disk::speed(&settings.dir, body))
        .fold((0.0, 0.0), |(w, r), (a, b)| (f64::max(w, a), f64::max(r, b)));
    let (put, get) = (format!("put {mib} MiB"), format!("get {mib} MiB"));
    let target = |n: usize| format!("/bench/large/{mib}-{n}");
    let puts = table.measure(&put, peers, |peer| {
        let one = |n| timed(|| drop(ok(&mut peer.client(), "PUT", &target(n), &[], body)));
        Some(best((0..TRIES).map(one).collect()))
    });
    let judged = |figures: &[Option<f64>], disk: f64| {
        let beside = figures[0].map(|ours| Ratio::new("disk", ours / disk, Some(DISK)));
        Vec::from_iter(table.to_durable(figures, Some(LARGE)).into_iter().chain(beside))
    };
    // One put cannot be faster: its entity tag is the MD5 of its bytes, which cannot be computed in parts.
    let md5 = best((0..TRIES).map(|_| timed(|| assert_ne!(fast_md5::digest(body), [0; 16]))).collect());
    let limit = puts[0].map(|ours| Ratio::new(&format!("MD5 by one thread, {md5:.0}"), ours / md5, None));
    table.row(&put, "MiB/s", &puts, Some(write), &Vec::from_iter(judged(&puts, write).into_iter().chain(limit)));
    let gets = table.measure(&get, peers, |peer| {
        let one = |_| timed(|| assert_eq!(peer.client().pull(&target(0), |_| {}), body.len()));
        let best = best((0..TRIES).map(one).collect());
        let mut at = 0;
        // Once more, and compared.
        peer.client().pull(&target(0), |part| {
            assert!(body[at..].starts_with(part), "{}: other bytes came back at {at}", peer.name);
            at += part.len();
        });
        Some(best)
    });
    table.row(&get, "MiB/s", &gets, Some(read), &judged(&gets, read));
}

fn copy(table: &Table, peers: &[Peer], settings: &Settings) {
    let what = "put 1 byte";
    let byte = table.measure(what, peers, |peer| Some(one_byte(peer)));
    table.row(what, "ms", &byte, None, &Vec::from_iter(table.to_durable(&byte, None)));
    let what = format!("copy {} MiB", settings.large);
    let copies = table.measure(&what, peers, |peer| {
        let source = format!("/bench/large/{}-0", settings.large);
        let headers = [("x-amz-copy-source", source.as_str())];
        let copy = |n| 1e3 * timed(|| drop(ok(&mut peer.client(), "PUT", &format!("/bench/copy/{n}"), &headers, b"")));
        Some(median((0..5).map(copy).collect()))
    });
    let ratio = copies[0].zip(byte[0]).map(|(copy, byte)| Ratio::new("put of 1 byte", copy / byte, Some(WHOLE)));
    table.row(&what, "ms", &copies, None, &Vec::from_iter(ratio.into_iter().chain(table.to_durable(&copies, None))));
}

fn uploads(table: &Table, peers: &[Peer], body: &[u8]) {
    let mib = body.len() >> 20;
    let what = format!("64 uploads of {mib} MiB at once");
    let fresh: Vec<bool> = peers.iter().map(Peer::forget_peak).collect();
    let speeds = table.measure(&what, peers, |peer| {
        let took = timed(|| {
            std::thread::scope(|scope| {
                for c in 0..64 {
                    scope.spawn(move || drop(ok(&mut peer.client(), "PUT", &format!("/bench/many/{c}"), &[], body)));
                }
            });
        });
        Some((64 * mib) as f64 / took)
    });
    table.row(&what, "MiB/s", &speeds, None, &Vec::from_iter(table.to_durable(&speeds, None)));
    let peaks: Vec<Option<f64>> = peers.iter().map(|peer| Some(peer.peak_mib())).collect();
    let ratio = peaks[0].map(|peak| Ratio::new("budget of 1 GiB", peak / BUDGET, Some(Aim::AtMost(0.5))));
    let since =
        if fresh.iter().all(|done| *done) { "memory at the most meanwhile" } else { "memory at the most so far" };
    table.row(since, "MiB", &peaks, None, &Vec::from_iter(ratio));
}
