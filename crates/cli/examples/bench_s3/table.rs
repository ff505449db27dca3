//! The table: one row for each figure, each with its ratios and what is aimed at. What is being measured goes to the standard error.

use super::peer::Peer;
use std::time::Instant;

/// Columns of servers, and how long the bench has run.
pub struct Table {
    start: Instant,
    durable: Option<String>,
}

/// What a ratio should be.
#[derive(Clone, Copy)]
pub enum Aim {
    AtLeast(f64),
    AtMost(f64),
}

/// A ratio to be printed behind a row.
pub struct Ratio {
    beside: String,
    value: f64,
    aim: Option<Aim>,
}

impl Ratio {
    pub fn new(beside: &str, value: f64, aim: Option<Aim>) -> Self {
        Self { beside: beside.to_owned(), value, aim }
    }

    fn text(&self) -> String {
        let Self { beside, value, aim } = self;
        let (sign, aim, met) = match *aim {
            None => return format!("{value:.2} x {beside}"),
            Some(Aim::AtLeast(aim)) => (">=", aim, *value >= aim),
            Some(Aim::AtMost(aim)) => ("<=", aim, *value <= aim),
        };
        format!("{value:.2} x {beside} (aim {sign} {aim}: {})", if met { "met" } else { "MISSED" })
    }
}

impl Table {
    /// Prints the head. The second server is the one that ratios are taken to.
    pub fn new(peers: &[Peer]) -> Self {
        let mut head = format!("   {:<38}{:<7}", "", "");
        peers.iter().for_each(|peer| head.push_str(&format!("{:>13}", peer.name)));
        println!("{head}{:>13}", "disk");
        Self { start: Instant::now(), durable: peers.get(1).map(|peer| peer.name.clone()) }
    }

    /// Says what is measured now.
    pub fn progress(&self, what: &str) {
        eprintln!("   [{:>4.0} s] {what}", self.start.elapsed().as_secs_f64());
    }

    /// Measures one figure of each server.
    pub fn measure(&self, what: &str, peers: &[Peer], each: impl Fn(&Peer) -> Option<f64>) -> Vec<Option<f64>> {
        let figure = |peer| {
            let figure = each(peer);
            let told = figure.map_or("-".to_owned(), |n| format!("{n:.1}"));
            self.progress(&format!("{what}: {} {told}", peer.name));
            figure
        };
        peers.iter().map(figure).collect()
    }

    /// Prints a row.
    pub fn row(&self, what: &str, unit: &str, figures: &[Option<f64>], disk: Option<f64>, ratios: &[Ratio]) {
        let mut line = format!("   {what:<38}{unit:<7}");
        for figure in figures.iter().chain([&disk]) {
            line.push_str(&figure.map_or(format!("{:>13}", "-"), |n| format!("{n:>13.1}")));
        }
        let ratios: Vec<String> = ratios.iter().map(Ratio::text).collect();
        println!("{line}   {}", ratios.join(", "));
    }

    /// The ratio of the first server to the second, where there are both.
    pub fn to_durable(&self, figures: &[Option<f64>], aim: Option<Aim>) -> Option<Ratio> {
        match (figures, &self.durable) {
            ([Some(ours), Some(theirs), ..], Some(name)) => Some(Ratio::new(name, ours / theirs, aim)),
            _ => None,
        }
    }
}
