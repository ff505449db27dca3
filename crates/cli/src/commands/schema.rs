//! `mw schema`: needs no server, as the documents are this program's own.

use super::Context;
use crate::failure::{DONE, Result};

pub fn run(context: &Context<'_>) -> Result<u8> {
    context.out.show(&mw_http::schema::all(), |schema| serde_json::to_string_pretty(schema).unwrap_or_default());
    Ok(DONE)
}
