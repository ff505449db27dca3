//! The policy of a form: what was signed about an upload before anybody knew its bytes (AWS, *Creating a POST policy*).

use crate::errors::{custom, error};
use s3s::dto::{Timestamp, TimestampFormat};
use s3s::{S3Error, S3ErrorCode, S3Result};
use serde::Deserialize;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// A policy.
#[derive(Debug)]
pub(super) struct Policy {
    expires: SystemTime,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Is { field: String, value: String },
    Starts { field: String, start: String },
    Length { least: u64, most: u64 },
}

#[derive(Deserialize)]
struct Written {
    expiration: String,
    conditions: Vec<Value>,
}

/// Fields that need no condition.
const FREE: [&str; 3] = ["x-amz-signature", "file", "policy"];

fn invalid(why: impl std::fmt::Display) -> S3Error {
    error(S3ErrorCode::InvalidPolicyDocument, format!("Invalid Policy: {why}"))
}

fn against(why: &str) -> S3Error {
    custom("AccessDenied", 403, format!("Invalid according to Policy: {why}"))
}

impl Policy {
    /// Reads a policy from base64.
    ///
    /// # Errors
    /// `InvalidPolicyDocument`.
    pub(super) fn read(text: &str) -> S3Result<Self> {
        let raw = base64_simd::STANDARD.decode_to_vec(text).map_err(|_| invalid("it is not base64"))?;
        let Written { expiration, conditions } =
            serde_json::from_slice(&raw).map_err(|e| invalid(format!("it is no such JSON: {e}")))?;
        let expires = Timestamp::parse(TimestampFormat::DateTime, &expiration)
            .map_err(|_| invalid(format!("{expiration:?} is no time")))?;
        let mut seconds = Vec::new();
        expires.format(TimestampFormat::EpochSeconds, &mut seconds).map_err(invalid)?;
        let seconds: f64 = String::from_utf8_lossy(&seconds).parse().map_err(invalid)?;
        let since = Duration::try_from_secs_f64(seconds.max(0.0)).map_err(invalid)?;
        let expires = SystemTime::UNIX_EPOCH.checked_add(since).ok_or_else(|| invalid("it expires never"))?;
        let conditions = conditions.into_iter().map(Condition::read).collect::<S3Result<Vec<Vec<_>>>>()?.concat();
        Ok(Self { expires, conditions })
    }

    /// Checks the fields of a form, the bucket it is sent to, and the time in nanoseconds.
    ///
    /// # Errors
    /// `AccessDenied`, which names the condition.
    pub(super) fn check(&self, fields: &[(String, String)], bucket: &str, now: u64) -> S3Result<()> {
        if SystemTime::UNIX_EPOCH + Duration::from_nanos(now) >= self.expires {
            return Err(against("Policy expired."));
        }
        let get = |name: &str| match name {
            "bucket" => bucket,
            name => fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.as_str()),
        };
        for condition in &self.conditions {
            let (holds, said) = match condition {
                Condition::Is { field, value } => (get(field) == value, ("eq", field, value)),
                // A list of types is as good as each of its parts.
                Condition::Starts { field, start } if field == "content-type" => {
                    (get(field).split(',').all(|part| part.trim().starts_with(start)), ("starts-with", field, start))
                }
                Condition::Starts { field, start } => (get(field).starts_with(start), ("starts-with", field, start)),
                Condition::Length { .. } => continue,
            };
            if !holds {
                let (operator, field, value) = said;
                return Err(against(&format!("Policy Condition failed: [\"{operator}\", \"${field}\", \"{value}\"]")));
            }
        }
        let said = |name: &str| {
            self.conditions.iter().any(|condition| match condition {
                Condition::Is { field, .. } | Condition::Starts { field, .. } => field == name,
                Condition::Length { .. } => false,
            })
        };
        match fields.iter().find(|(n, _)| !FREE.contains(&n.as_str()) && !n.starts_with("x-ignore-") && !said(n)) {
            None => Ok(()),
            Some((name, _)) => Err(against(&format!("Extra input fields: {name}"))),
        }
    }

    /// Returns the least and the greatest length of the file.
    pub(super) fn lengths(&self) -> (u64, u64) {
        self.conditions.iter().fold((0, u64::MAX), |(low, high), condition| match condition {
            Condition::Length { least, most } => (low.max(*least), high.min(*most)),
            _ => (low, high),
        })
    }
}

impl Condition {
    fn read(value: Value) -> S3Result<Vec<Self>> {
        match value {
            Value::Object(pairs) => pairs
                .into_iter()
                .map(|(field, value)| match value {
                    Value::String(value) => Ok(Self::Is { field: field.to_ascii_lowercase(), value }),
                    _ => Err(invalid(format!("the value of {field:?} is no text"))),
                })
                .collect(),
            Value::Array(parts) => Self::of_list(&parts).map(|condition| vec![condition]),
            other => Err(invalid(format!("{other} is no condition"))),
        }
    }

    fn of_list(parts: &[Value]) -> S3Result<Self> {
        let wrong = || invalid(format!("{} is no condition", Value::from(parts.to_vec())));
        let [operator, first, second] = parts else { return Err(wrong()) };
        let operator = operator.as_str().ok_or_else(wrong)?.to_ascii_lowercase();
        if operator == "content-length-range" {
            let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok()).ok_or_else(wrong);
            return Ok(Self::Length { least: number(first)?, most: number(second)? });
        }
        let field = first.as_str().and_then(|f| f.strip_prefix('$')).ok_or_else(wrong)?.to_ascii_lowercase();
        let text = second.as_str().ok_or_else(wrong)?.to_owned();
        match operator.as_str() {
            "eq" => Ok(Self::Is { field, value: text }),
            "starts-with" => Ok(Self::Starts { field, start: text }),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests;
