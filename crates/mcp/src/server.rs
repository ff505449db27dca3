//! The handler that the SDK calls: it lists the tools and runs them on blocking threads, a bounded number at a time.
//!
//! It has no state of its own. What a call acts on comes with its request.

use crate::bound::Bound;
use crate::error::Refusal;
use crate::table;
use hyper::http::request::Parts;
use mw_model::ErrorKind;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How many tools run at the same time.
const TURNS: usize = 32;

const ABOUT: &str = "The files of one world of Manyworlds, with their history. Paths start at the root of the world; there is nothing \
outside it, and links are not followed. Every change is kept: `history` shows it, `diff` compares with the fork point, `restore` brings a path \
back, `snapshot` names an instant. `at` reads a past instant: a version, an RFC 3339 time or a snapshot's label. `fork` names a fork that the \
tool of the same name made, to try something without touching the world. Answers are short; `next` goes on where one ended.";

/// The handler of all requests.
#[derive(Clone)]
pub(crate) struct Server {
    turns: Arc<Semaphore>,
}

impl Default for Server {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(TURNS)) }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let about = Implementation::new("manyworlds", env!("CARGO_PKG_VERSION")).with_title("Manyworlds");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(about)
            .with_instructions(ABOUT)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(table::all().iter().map(|row| row.described.clone()).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        table::named(name).map(|row| row.described.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let bound = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Arc<Bound>>()).cloned();
        let bound = bound.ok_or_else(|| ErrorData::internal_error("the request is bound to no world", None))?;
        let row = table::named(&request.name).ok_or_else(|| {
            ErrorData::invalid_params(
                format!("there is no tool {:?}; `tools/list` names those there are", request.name),
                None,
            )
        })?;
        let arguments = request.arguments.unwrap_or_default();
        let turn = self.turns.clone().acquire_owned().await;
        // The turn is the work's, not the caller's: one who goes away and asks again does not get more of them.
        let work = move || {
            let outcome = (row.run)(&bound, arguments);
            drop(turn);
            outcome
        };
        let outcome = tokio::task::spawn_blocking(work).await;
        let outcome = outcome.unwrap_or_else(|e| {
            tracing::error!(error = %e, tool = %row.described.name, "a tool broke off");
            Err(Refusal::new(ErrorKind::Io, "the server failed at this call; its log says more"))
        });
        Ok(match outcome {
            Ok(answer) => CallToolResult::structured(answer).into(),
            Err(refusal) => CallToolResult::error(vec![ContentBlock::text(refusal.text())]).into(),
        })
    }
}
