//! Times as text: RFC 3339 with nanoseconds for people and JSON, and the basic ISO 8601 form that SigV4 signs.
//!
//! The calendar is the proleptic Gregorian one (days-from-civil, Howard Hinnant, *chrono-compatible low-level date
//! algorithms*); there are no leap seconds and no time zones but UTC.

/// A civil date and time in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Civil {
    year: i64,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

fn civil(seconds: i64) -> Civil {
    let days = seconds.div_euclid(86_400);
    let rest = seconds.rem_euclid(86_400) as u32;
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 } as u32;
    Civil {
        year: year_of_era + era * 400 + i64::from(month <= 2),
        month,
        day: (day_of_year - (153 * shifted + 2) / 5 + 1) as u32,
        hour: rest / 3_600,
        minute: rest / 60 % 60,
        second: rest % 60,
    }
}

fn seconds(civil: Civil) -> i64 {
    let year = civil.year - i64::from(civil.month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = i64::from((civil.month + 9) % 12);
    let day_of_year = (153 * shifted + 2) / 5 + i64::from(civil.day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    days * 86_400 + i64::from(civil.hour) * 3_600 + i64::from(civil.minute) * 60 + i64::from(civil.second)
}

/// Formats UNIX nanoseconds as RFC 3339 with all nine digits, so that nothing is lost.
pub fn rfc3339(nanoseconds: i64) -> String {
    let c = civil(nanoseconds.div_euclid(1_000_000_000));
    let fraction = nanoseconds.rem_euclid(1_000_000_000);
    format!("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{fraction:09}Z", c.year, c.month, c.day, c.hour, c.minute, c.second)
}

/// Formats UNIX nanoseconds for a table: to the second.
pub fn short(nanoseconds: i64) -> String {
    let c = civil(nanoseconds.div_euclid(1_000_000_000));
    format!("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", c.year, c.month, c.day, c.hour, c.minute, c.second)
}

/// Formats UNIX nanoseconds as `YYYYMMDDTHHMMSSZ`.
pub fn basic(nanoseconds: u64) -> String {
    let c = civil((nanoseconds / 1_000_000_000) as i64);
    format!("{:04}{:02}{:02}T{:02}{:02}{:02}Z", c.year, c.month, c.day, c.hour, c.minute, c.second)
}

/// Parses `YYYYMMDDTHHMMSSZ` into UNIX seconds.
pub fn parse_basic(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() != 16 || bytes[8] != b'T' || bytes[15] != b'Z' {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<u32> {
        let digits = &text[from..to];
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let c = Civil {
        year: i64::from(number(0, 4)?),
        month: number(4, 6)?,
        day: number(6, 8)?,
        hour: number(9, 11)?,
        minute: number(11, 13)?,
        second: number(13, 15)?,
    };
    let in_range =
        (1..=12).contains(&c.month) && (1..=31).contains(&c.day) && c.hour < 24 && c.minute < 60 && c.second < 61;
    in_range.then(|| seconds(c))
}

/// Parses what a policy may write: `YYYY-MM-DDThh:mm:ssZ` (with or without a fraction), `YYYY-MM-DD`, or UNIX seconds. Returns UNIX
/// nanoseconds, the last of them for what comes after; none for anything else, for a day that its month does not have, and for times
/// before 1970.
pub fn parse_instant(text: &str) -> Option<u64> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits(text) {
        return Some(text.parse::<u64>().ok()?.saturating_mul(1_000_000_000));
    }
    if !text.is_ascii() {
        return None;
    }
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, time.strip_suffix('Z')?),
        None => (text, "00:00:00"),
    };
    let (clock, fraction) = match time.split_once('.') {
        Some((clock, fraction)) if digits(fraction) && fraction.len() <= 9 => (clock, fraction),
        Some(_) => return None,
        None => (time, "0"),
    };
    let fields = |text: &str, mark: char, widths: [usize; 3]| -> Option<[u32; 3]> {
        let parts: Vec<&str> = text.split(mark).collect();
        let whole = parts.len() == 3 && parts.iter().zip(widths).all(|(p, n)| p.len() == n && digits(p));
        let mut numbers = parts.iter().map(|p| p.parse().ok());
        if whole { Some([numbers.next()??, numbers.next()??, numbers.next()??]) } else { None }
    };
    let [year, month, day] = fields(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = fields(clock, ':', [2, 2, 2])?;
    let c = Civil { year: i64::from(year), month, day, hour, minute, second };
    if !((1..=12).contains(&month) && day >= 1 && hour < 24 && minute < 60 && second < 60) {
        return None;
    }
    let at = seconds(c);
    // A day that is not in its month comes back as another one.
    let nanos = format!("{fraction:0<9}").parse::<u64>().ok()?;
    (civil(at) == c).then(|| u64::try_from(at).ok().map(|at| at.saturating_mul(1_000_000_000).saturating_add(nanos)))?
}

#[cfg(test)]
mod tests;
