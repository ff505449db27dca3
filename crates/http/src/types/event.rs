//! Lines of the event streams (`application/x-ndjson`) in which long work reports.

use super::ErrorBody;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One line of a stream of progress. The last one is a result or an error; a stream without it broke off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Progress<T> {
    /// What is being done.
    Progress(String),
    /// The result; nothing more comes.
    Result(T),
    /// The failure; nothing more comes.
    Error(ErrorBody),
}
