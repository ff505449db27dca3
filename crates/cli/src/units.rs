//! Times, durations and sizes as people write and read them.

use crate::failure::{Failure, Result};
use std::time::Duration;

/// Parses a duration: `90s`, `30m`, `2h`, `7d`, `1h30m`, or a number of seconds.
///
/// # Errors
/// The text is no duration or out of range.
pub fn duration(text: &str) -> Result<Duration> {
    let wrong = || Failure::usage(format!("{text:?} is no duration; write 90s, 30m, 2h, 7d or 1h30m"));
    let (mut total, mut digits) = (0_u64, String::new());
    for c in text.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let unit: u64 = match c {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            _ => return Err(wrong()),
        };
        let n: u64 = digits.parse().map_err(|_| wrong())?;
        digits.clear();
        total = n.checked_mul(unit).and_then(|n| total.checked_add(n)).ok_or_else(wrong)?;
    }
    if !digits.is_empty() {
        if total > 0 || text.len() != digits.len() {
            return Err(wrong());
        }
        total = digits.parse().map_err(|_| wrong())?;
    }
    if total == 0 {
        return Err(Failure::usage(format!(
            "the duration {text:?} must be longer than nothing; write 90s, 30m, 2h or 7d"
        )));
    }
    Ok(Duration::from_secs(total))
}

/// Parses a size: a number of bytes, or one with K, M, G or T (powers of 1,024).
///
/// # Errors
/// The text is no size or out of range.
pub fn parse_size(text: &str) -> Result<u64> {
    let wrong = || Failure::usage(format!("{text:?} is no size; write 1048576, 512M or 4G"));
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        Some(b'T' | b't') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let n: u64 = digits.parse().map_err(|_| wrong())?;
    n.checked_mul(1 << shift).ok_or_else(wrong)
}

/// Formats a size.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Formats a number of seconds as [`duration`] reads it: 7d, 1h30m.
pub fn span(seconds: u64) -> String {
    let mut rest = seconds;
    let mut text = String::new();
    for (unit, name) in [(86_400, 'd'), (3_600, 'h'), (60, 'm'), (1, 's')] {
        if rest / unit > 0 {
            text.push_str(&format!("{}{name}", rest / unit));
        }
        rest %= unit;
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Shortens an RFC 3339 time for a table: to the second.
pub fn time(rfc3339: &str) -> String {
    rfc3339.get(..19).unwrap_or(rfc3339).replace('T', " ")
}

/// Says `n things`, with the plural where there is one.
pub fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests;
