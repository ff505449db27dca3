//! What a tool is.

use crate::bound::Bound;
use crate::error::Result;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Reads,
    /// It adds something and takes nothing away.
    Adds,
    /// It may replace or remove something; history keeps what was there.
    Changes,
}

/// One tool.
pub(crate) trait Tool {
    /// Its name.
    const NAME: &'static str;
    /// Its name for people.
    const TITLE: &'static str;
    /// What it does, for a model.
    const ABOUT: &'static str;
    /// What a call does to the world.
    const EFFECT: Effect;
    /// Its arguments.
    type Ask: DeserializeOwned + JsonSchema + Any;
    /// Its answer.
    type Answer: Serialize + JsonSchema + Any;

    /// Does it. Blocks.
    fn run(bound: &Bound, ask: Self::Ask) -> Result<Self::Answer>;
}
