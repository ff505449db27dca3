//! The table: what was measured, beside what.

use std::time::Duration;

pub fn title(text: &str) {
    println!("\n== {text}");
}

pub fn row(what: &str, figure: &str, beside: &str) {
    println!("   {what:<58} {figure:>22}   {beside}");
}

pub fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// Sorts and returns the value at a quantile.
pub fn quantile(times: &mut [Duration], q: f64) -> Duration {
    times.sort();
    times[((times.len() - 1) as f64 * q) as usize]
}

pub fn median(mut times: Vec<Duration>) -> Duration {
    quantile(&mut times, 0.5)
}

pub fn ratio(a: Duration, b: Duration) -> String {
    format!("{:.2} x", a.as_secs_f64() / b.as_secs_f64())
}
