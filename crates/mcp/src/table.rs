//! The table of all tools.

use crate::bound::Bound;
use crate::error::{Refusal, Result};
use crate::tool::{Effect, Tool};
use crate::tools;
use mw_model::ErrorKind;
use rmcp::handler::server::tool::{schema_for_input, schema_for_output};
use rmcp::model::{JsonObject, ToolAnnotations};
use serde_json::Value;
use std::sync::OnceLock;

/// A tool in the table.
pub(crate) struct Row {
    /// As clients see it.
    pub(crate) described: rmcp::model::Tool,
    /// Does it. Blocks.
    pub(crate) run: fn(&Bound, JsonObject) -> Result<Value>,
}

fn row<T: Tool>() -> Row {
    let input = schema_for_input::<T::Ask>()
        .unwrap_or_else(|e| unreachable!("the arguments of {} are a structure: {e}", T::NAME));
    let hints = ToolAnnotations::with_title(T::TITLE)
        .read_only(T::EFFECT == Effect::Reads)
        .destructive(T::EFFECT == Effect::Changes)
        .open_world(false);
    let described = rmcp::model::Tool::new(T::NAME, T::ABOUT, input)
        .with_title(T::TITLE)
        .with_raw_output_schema(schema_for_output::<T::Answer>())
        .with_annotations(hints);
    Row { described, run: call::<T> }
}

fn call<T: Tool>(bound: &Bound, arguments: JsonObject) -> Result<Value> {
    let ask = serde_json::from_value(Value::Object(arguments)).map_err(|e| {
        Refusal::invalid(format!("the arguments of `{}` are wrong: {e}; see its input schema", T::NAME))
    })?;
    let answer = T::run(bound, ask)?;
    serde_json::to_value(answer)
        .map_err(|e| Refusal::new(ErrorKind::Io, format!("the answer of `{}` cannot be written: {e}", T::NAME)))
}

/// Returns all tools, in the order in which clients see them.
pub(crate) fn all() -> &'static [Row] {
    static TABLE: OnceLock<Vec<Row>> = OnceLock::new();
    TABLE.get_or_init(|| {
        vec![
            row::<tools::List>(),
            row::<tools::Read>(),
            row::<tools::Stat>(),
            row::<tools::Find>(),
            row::<tools::Search>(),
            row::<tools::Write>(),
            row::<tools::Edit>(),
            row::<tools::Move>(),
            row::<tools::Remove>(),
            row::<tools::Diff>(),
            row::<tools::History>(),
            row::<tools::TakeSnapshot>(),
            row::<tools::Snapshots>(),
            row::<tools::Restore>(),
            row::<tools::Fork>(),
            row::<tools::ShareUrl>(),
        ]
    })
}

/// Returns the tool of a name.
pub(crate) fn named(name: &str) -> Option<&'static Row> {
    all().iter().find(|row| row.described.name == name)
}
