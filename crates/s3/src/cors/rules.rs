//! The rules of a bucket: checked when they are put, and matched.

use crate::errors::error;
use s3s::dto::{CORSConfiguration, CORSRule};
use s3s::{S3ErrorCode, S3Result};
use serde::{Deserialize, Serialize};

/// The most rules of a bucket (AWS: 100).
const RULES_MAX: usize = 100;
/// The methods that a rule may allow.
const METHODS: [&str; 5] = ["GET", "PUT", "POST", "DELETE", "HEAD"];

/// What a bucket allows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rules(pub(super) Vec<Rule>);

/// One rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rule {
    pub(super) id: Option<String>,
    pub(super) methods: Vec<String>,
    pub(super) origins: Vec<String>,
    pub(super) headers: Vec<String>,
    pub(super) expose: Vec<String>,
    pub(super) max_age: Option<i32>,
}

impl Rules {
    /// Checks rules that are to be put.
    ///
    /// # Errors
    /// `MalformedXML` for none or too many; `InvalidRequest` for a method or wildcard that cannot be.
    pub(super) fn of(given: CORSConfiguration) -> S3Result<Self> {
        if given.cors_rules.is_empty() || given.cors_rules.len() > RULES_MAX {
            return Err(error(
                S3ErrorCode::MalformedXML,
                "The XML you provided was not well-formed or did not validate against our published schema",
            ));
        }
        given.cors_rules.into_iter().map(Rule::of).collect::<S3Result<Vec<_>>>().map(Self)
    }

    pub(super) fn read(stored: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(stored)
    }

    pub(super) fn write(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// Returns the first rule that allows a method from an origin, with these headers (in lower case).
    pub(super) fn find(&self, origin: &str, method: &str, headers: &[String]) -> Option<&Rule> {
        self.0.iter().find(|rule| {
            rule.methods.iter().any(|m| m == method)
                && rule.origins.iter().any(|pattern| matches(pattern, origin))
                && headers.iter().all(|h| rule.headers.iter().any(|p| matches(&p.to_ascii_lowercase(), h)))
        })
    }
}

impl Rule {
    fn of(given: CORSRule) -> S3Result<Self> {
        let invalid = |message: String| error(S3ErrorCode::InvalidRequest, message);
        let rule = Self {
            id: given.id,
            methods: given.allowed_methods,
            origins: given.allowed_origins,
            headers: given.allowed_headers.unwrap_or_default(),
            expose: given.expose_headers.unwrap_or_default(),
            max_age: given.max_age_seconds,
        };
        if rule.methods.is_empty() || rule.origins.is_empty() {
            return Err(error(
                S3ErrorCode::MalformedXML,
                "The XML you provided was not well-formed or did not validate against our published schema",
            ));
        }
        if let Some(method) = rule.methods.iter().find(|m| !METHODS.contains(&m.as_str())) {
            return Err(invalid(format!(
                "Found unsupported HTTP method in CORS config. Unsupported method is {method}"
            )));
        }
        for (what, patterns) in [("AllowedOrigin", &rule.origins), ("AllowedHeader", &rule.headers)] {
            if let Some(pattern) = patterns.iter().find(|p| p.matches('*').count() > 1) {
                return Err(invalid(format!("{what} \"{pattern}\" can not have more than one wildcard.")));
            }
        }
        if let Some(name) = rule.expose.iter().find(|name| name.contains('*')) {
            return Err(invalid(format!("ExposeHeader \"{name}\" contains wildcard. We currently do not support it.")));
        }
        if rule.max_age.is_some_and(|age| age < 0) {
            return Err(invalid("MaxAgeSeconds must not be negative.".to_owned()));
        }
        Ok(rule)
    }

    /// Whether the rule is for every origin.
    pub(super) fn allows_anyone(&self) -> bool {
        self.origins.iter().any(|origin| origin == "*")
    }
}

impl From<Rule> for CORSRule {
    fn from(rule: Rule) -> Self {
        let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
        Self {
            allowed_headers: some(rule.headers),
            allowed_methods: rule.methods,
            allowed_origins: rule.origins,
            expose_headers: some(rule.expose),
            id: rule.id,
            max_age_seconds: rule.max_age,
        }
    }
}

/// Whether a text is as a pattern with at most one `*` says.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, end)) => text.len() >= start.len() + end.len() && text.starts_with(start) && text.ends_with(end),
    }
}

#[cfg(test)]
mod tests {
    //! What a pattern means.

    use super::*;

    #[test]
    fn a_pattern_has_one_wildcard() {
        for (pattern, text, is) in [
            ("*", "http://a", true),
            ("http://*.example", "http://x.example", true),
            ("http://*.example", "http://.example", true),
            ("http://*.example", "http://example", false),
            ("ab*ba", "aba", false),
            ("ab*ba", "abba", true),
            ("x-amz-*", "x-amz-meta-a", true),
            ("a", "A", false),
        ] {
            assert_eq!(matches(pattern, text), is, "{pattern} {text}");
        }
    }
}
