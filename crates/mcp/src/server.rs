//! The server of tools: validates and runs calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use deftool_lang::schema::{Arguments, Repair, Violation};
use deftool_lang::tool::{Attachment, CallContext, ToolCall, ToolOutput};
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock};
use serde_json::Value;
use tokio::sync::watch;

use crate::approval::{self, Decision};
use crate::caller::Caller;
use crate::catalog::{Catalog, CatalogSource, CatalogTool};
use crate::events::{CallEvent, CallEvents, LogLevel};
use crate::turns::Turns;

/// What happens to a call that needs the user's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalMode {
    /// The user is asked. If the client cannot ask, the call is refused.
    #[default]
    Ask,
    /// The call runs.
    Allow,
}

/// A server of tools.
#[derive(Clone)]
pub struct ToolServer {
    pub(crate) tools: Arc<dyn CatalogSource>,
    /// Changes whenever the tools change.
    pub(crate) changes: watch::Receiver<u64>,
    approvals: ApprovalMode,
    events: CallEvents,
    calls: Arc<AtomicU64>,
    /// `None` if there is one session.
    pub(crate) turns: Option<Arc<Turns>>,
}

impl ToolServer {
    /// Creates a server. `changes` must change whenever the tools change. `events` receives what running tools
    /// report.
    pub fn new(
        tools: Arc<dyn CatalogSource>,
        changes: watch::Receiver<u64>,
        approvals: ApprovalMode,
        events: CallEvents,
    ) -> Self {
        Self { tools, changes, approvals, events, calls: Arc::default(), turns: Some(Arc::default()) }
    }

    /// Runs an approved call with valid arguments when it is the caller's turn.
    ///
    /// # Errors
    /// The text of the tool's error, for the model.
    async fn run(
        &self,
        catalog: &dyn Catalog,
        tool: &CatalogTool,
        arguments: Arguments,
        caller: &Caller<'_>,
    ) -> Result<ToolOutput, String> {
        let _turn = match &self.turns {
            Some(turns) => Some(turns.take(caller.id()).await),
            None => None,
        };
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("call_{number}");
        let name = &tool.entry.name;
        let call = ToolCall { id: id.clone(), name: name.clone(), arguments };
        let call_context = CallContext {
            request_id: id.clone(),
            timeout: tool.entry.timeout,
            trace: caller.trace(),
            ..CallContext::default()
        };
        let mut events = self.events.subscribe(&id);
        let mut running = catalog.run(call, call_context);
        let outcome = loop {
            tokio::select! {
                event = events.next() => caller.notify(name, event).await,
                outcome = &mut running => break outcome,
            }
        };
        // Sent before the result, after which clients ignore progress.
        while let Some(event) = events.next_queued() {
            caller.notify(name, event).await;
        }
        outcome.map_err(|error| error.to_string())
    }

    /// Answers a call. `repairs`: the repairs of its name and of the text of its arguments.
    pub(crate) async fn call(
        &self,
        catalog: &dyn Catalog,
        tool: &CatalogTool,
        request: CallToolRequestParams,
        mut repairs: Vec<Repair>,
        caller: &Caller<'_>,
    ) -> CallToolResponse {
        let name = &tool.entry.name;
        let arguments = match tool.entry.accept_repaired(request.arguments.unwrap_or_default().into()) {
            Ok(accepted) => {
                repairs.extend(accepted.repairs);
                accepted.arguments
            }
            Err((_, violations)) => return failed(describe(name, &violations)),
        };
        for Repair { path, kind } in repairs {
            let text = format!("arguments_repaired {name}{path}: {}", kind.description());
            caller.notify(name, CallEvent::Logged { level: LogLevel::Info, text }).await;
        }
        if self.approvals == ApprovalMode::Ask && tool.entry.needs_approval(&arguments) {
            match approval::decide(name, &arguments, request.input_responses.as_ref(), caller.context).await {
                Decision::Approved => {}
                Decision::Refused(reason) => return failed(reason),
                Decision::Required(question) => return question.into(),
            }
        }
        match self.run(catalog, tool, arguments, caller).await {
            Ok(result) => succeeded(tool, result),
            Err(message) => failed(message),
        }
    }
}

/// Returns the result of a call: a string as it is, anything else as JSON and, if the tool has an output schema, as
/// a structured result. Images and audio follow the text, which has a line for each.
fn succeeded(tool: &CatalogTool, result: ToolOutput) -> CallToolResponse {
    let (text, structured) = match result.value {
        Value::String(text) => (text, None),
        other => (other.to_string(), tool.listed.output_schema.is_some().then_some(other)),
    };
    let block = |attachment: &Attachment| {
        let (data, media_type) = (attachment.to_base64()?, attachment.media_type());
        let name = media_type.as_str();
        let is_image = media_type.is_image();
        Some(if is_image { ContentBlock::image(data, name) } else { ContentBlock::audio(data, name) })
    };
    let mut content = vec![ContentBlock::text(text)];
    content.extend(result.attachments.iter().filter_map(block));
    let mut response = CallToolResult::success(content);
    response.structured_content = structured;
    response.into()
}

/// Returns the result of a call that failed with `message`, which the model reads.
pub(crate) fn failed(message: String) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(message)]).into()
}

fn describe(tool: &str, violations: &[Violation]) -> String {
    let described: Vec<String> = violations
        .iter()
        .map(
            |Violation { path, message }| {
                if path.is_empty() { message.clone() } else { format!("{path}: {message}") }
            },
        )
        .collect();
    format!("invalid arguments of `{tool}`: {}", described.join("; "))
}
