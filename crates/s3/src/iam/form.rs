//! The parameters of a call: the query and the form in the body, of bounded size.

use super::wrong;
use crate::chunks::Faults;
use crate::guard::pairs;
use s3s::{Body, S3Result};
use serde::de::DeserializeOwned;

/// The largest form, in bytes: a policy of AWS has at most 6,144 characters, each of which may be escaped.
pub(super) const MAX: u64 = 256 << 10;

/// The parameters of a call.
#[derive(Debug, Default)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads a form.
    ///
    /// # Errors
    /// `ValidationError` for a form that is too long, no text, or names a parameter twice; the fault of a body that breaks off.
    pub(super) async fn read(query: &[(String, String)], body: Body, faults: &Faults) -> S3Result<Self> {
        let data = crate::body::whole(body, MAX)
            .await
            .map_err(|e| crate::body::faulty(&e, faults))?
            .ok_or_else(|| wrong("ValidationError", format!("The form is longer than {MAX} bytes.")))?;
        let text = std::str::from_utf8(&data).map_err(|_| wrong("ValidationError", "The form is not UTF-8 text."))?;
        let mut all: Vec<(String, String)> = pairs(text);
        all.extend(query.iter().filter(|(name, _)| !name.to_ascii_lowercase().starts_with("x-amz-")).cloned());
        let mut kept: Vec<(String, String)> = Vec::with_capacity(all.len());
        for (name, value) in all {
            match kept.iter().find(|(n, _)| *n == name) {
                // The Tigris client gives the action in the query and in the form.
                Some((_, same)) if *same == value => {}
                Some(_) => return Err(wrong("ValidationError", format!("{} is given twice.", super::shown(&name)))),
                None => kept.push((name, value)),
            }
        }
        Ok(Self(kept))
    }

    /// Returns a parameter that is there and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str()).filter(|v| !v.is_empty())
    }

    /// Returns whether a parameter is there, with or without a value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(n, _)| n == name)
    }

    /// Returns a parameter that must be there.
    ///
    /// # Errors
    /// `ValidationError`.
    pub(super) fn need(&self, name: &str) -> S3Result<&str> {
        self.get(name).ok_or_else(|| wrong("ValidationError", format!("The parameter {name} is missing.")))
    }

    /// Returns the JSON document in the parameter `Req`.
    ///
    /// # Errors
    /// `ValidationError` when it is missing or does not say what it must.
    pub(super) fn request<T: DeserializeOwned>(&self) -> S3Result<T> {
        serde_json::from_str(self.need("Req")?)
            .map_err(|e| wrong("ValidationError", format!("The parameter Req does not decode: {e}.")))
    }
}
