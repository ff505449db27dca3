//! World names and file names.

/// A world's name: the rules of an S3 general purpose bucket, so that every client can address it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorldName(String);

/// The longest S3 key that can be created, in bytes (AWS: *Naming Amazon S3 objects*).
pub const MAX_KEY: usize = 1024;
/// The longest file name, in bytes (POSIX NAME_MAX on Linux).
pub const MAX_NAME: usize = 255;
/// The longest target of a symbolic link, in bytes (PATH_MAX less its NUL).
pub const MAX_TARGET: usize = 4095;

impl WorldName {
    /// Checks `name` against the bucket rules of the AWS user guide (*General purpose bucket naming rules*).
    ///
    /// # Errors
    /// Returns the rule that is broken, as a sentence with its remedy.
    pub fn new(name: &str) -> Result<Self, String> {
        let refuse = |why: &str| {
            Err(format!(
                "world name {name:?} is not allowed: {why}; use 3 to 63 of a-z, 0-9, '-' and '.', starting and ending with a letter or digit"
            ))
        };
        if !(3..=63).contains(&name.len()) {
            return refuse("its length is out of range");
        }
        if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.') {
            return refuse("it has a character outside a-z, 0-9, '-' and '.'");
        }
        let alnum = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if !alnum(name.as_bytes().first()) || !alnum(name.as_bytes().last()) {
            return refuse("it starts or ends with '-' or '.'");
        }
        if name.contains("..") {
            return refuse("it has two dots in a row");
        }
        if name.split('.').count() == 4 && name.split('.').all(|part| part.parse::<u8>().is_ok()) {
            return refuse("it looks like an IP address");
        }
        for prefix in ["xn--", "sthree-", "amzn-s3-demo-"] {
            if name.starts_with(prefix) {
                return refuse("it has a reserved prefix");
            }
        }
        for suffix in ["-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"] {
            if name.ends_with(suffix) {
                return refuse("it has a reserved suffix");
            }
        }
        Ok(Self(name.to_owned()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for WorldName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether a mount can show `name`: not empty, `.` or `..`, no NUL or `/`, at most [`MAX_NAME`] bytes.
pub fn mountable(name: &[u8]) -> bool {
    !name.is_empty()
        && name != b"."
        && name != b".."
        && name.len() <= MAX_NAME
        && !name.contains(&0)
        && !name.contains(&b'/')
}

#[cfg(test)]
mod tests;
