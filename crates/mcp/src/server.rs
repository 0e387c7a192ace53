//! The server of one client: answers `tools/list` and `tools/call`, and reports changes of the tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use deftool_lang::schema::Violation;
use deftool_lang::spec::nearest;
use deftool_lang::tool::{CallContext, ToolCall};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, SubscriptionFilter,
    Tool,
};
use rmcp::service::{NotificationContext, RequestContext, ServerInitializeError, SubscriptionContext};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::approval::{self, Decision};
use crate::catalog::{Catalog, CatalogSource, CatalogTool};
use crate::progress::{Progress, ProgressReports};

/// Maximum size of a message of the client, in bytes.
const MAX_MESSAGE: usize = 16 << 20;

/// What happens to a call that needs the user's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalMode {
    /// The user is asked. If the client cannot ask, the call is refused.
    #[default]
    Ask,
    /// The call runs.
    Allow,
}

/// A server of tools for one client.
#[derive(Clone)]
pub struct ToolServer {
    tools: Arc<dyn CatalogSource>,
    /// Changes whenever the tools change.
    changes: watch::Receiver<u64>,
    approvals: ApprovalMode,
    progress: ProgressReports,
    calls: Arc<AtomicU64>,
}

/// The connection of a client could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client closed the connection before its first request.
    #[error("the MCP client closed the connection before it started a session")]
    NoSession,
    /// The connection failed.
    #[error("cannot serve the MCP client: {0}")]
    Failed(String),
}

impl ToolServer {
    /// Creates a server. `changes` must change whenever the tools change. `progress` receives the progress that tools
    /// report.
    pub fn new(
        tools: Arc<dyn CatalogSource>,
        changes: watch::Receiver<u64>,
        approvals: ApprovalMode,
        progress: ProgressReports,
    ) -> Self {
        Self { tools, changes, approvals, progress, calls: Arc::default() }
    }

    /// Serves the client at the other end of `input` and `output`, until it closes `input`.
    ///
    /// # Errors
    /// If the client does not start a session.
    pub async fn serve(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), ServeError> {
        let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE);
        let service = ServiceExt::serve(self, transport).await.map_err(|error| match error {
            ServerInitializeError::ConnectionClosed(_) => ServeError::NoSession,
            other => ServeError::Failed(other.to_string()),
        })?;
        // Ends when the client is gone. An error means that the task of the connection panicked.
        service.waiting().await.map(drop).map_err(|error| ServeError::Failed(error.to_string()))
    }

    /// Runs an approved call with valid arguments.
    ///
    /// # Errors
    /// The text of the tool's error, for the model.
    async fn run(
        &self,
        catalog: &Catalog,
        tool: &CatalogTool,
        arguments: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, String> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("call_{number}");
        let call = ToolCall { id: id.clone(), name: tool.entry.name.clone(), arguments };
        let call_context =
            CallContext { request_id: id.clone(), timeout: tool.entry.timeout, ..CallContext::default() };
        let mut progress = self.progress.subscribe(&id);
        let mut running = catalog.runner.run(call, call_context);
        let outcome = loop {
            tokio::select! {
                report = progress.next() => notify_progress(report, context).await,
                outcome = &mut running => break outcome,
            }
        };
        // Sent before the result, after which clients ignore progress.
        while let Some(report) = progress.next_queued() {
            notify_progress(report, context).await;
        }
        outcome.map_err(|error| error.to_string())
    }

    async fn call(
        &self,
        catalog: &Catalog,
        tool: &CatalogTool,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let name = &tool.entry.name;
        let arguments = match tool.entry.accept(Value::Object(request.arguments.unwrap_or_default())) {
            Ok(Value::Object(arguments)) => arguments,
            Ok(_) => return failed(format!("the arguments of `{name}` must be an object")),
            Err((_, violations)) => return failed(describe(name, &violations)),
        };
        if self.approvals == ApprovalMode::Ask && tool.entry.needs_approval(&arguments) {
            match approval::decide(name, &arguments, request.input_responses.as_ref(), context).await {
                Decision::Approved => {}
                Decision::Refused(reason) => return failed(reason),
                Decision::Required(question) => return question.into(),
            }
        }
        match self.run(catalog, tool, arguments, context).await {
            Ok(result) => CallToolResult::success(vec![ContentBlock::text(text_of(result))]).into(),
            Err(message) => failed(message),
        }
    }
}

/// Returns the result of a call that failed with `message`, which the model reads.
fn failed(message: String) -> CallToolResponse {
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

/// Reports progress, if the client asked for it.
async fn notify_progress(progress: Progress, context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let mut report = ProgressNotificationParam::new(token, progress.fraction.unwrap_or_default());
    if progress.fraction.is_some() {
        report = report.with_total(1.0);
    }
    // An error means that the client is gone; then the call is dropped.
    let _ = context.peer.notify_progress(report.with_message(progress.text)).await;
}

/// Returns the text of a result for the model: a string as it is, anything else as JSON.
fn text_of(result: Value) -> String {
    match result {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let mut info = ServerConfig::new(tools);
        info.server_info = Implementation::new("deftool", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let catalog = self.tools.current();
        Ok(ListToolsResult::with_all_items(catalog.tools.values().map(|tool| tool.listed.clone()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let catalog = self.tools.current();
        let name = request.name.as_ref();
        let Some(tool) = catalog.tools.get(name) else {
            let similar = nearest(name, catalog.tools.keys().map(String::as_str));
            let hint = similar.map(|similar| format!("; did you mean `{similar}`?")).unwrap_or_default();
            return Err(ErrorData::invalid_params(format!("unknown tool `{name}`{hint}"), None));
        };
        tokio::select! {
            response = self.call(&catalog, tool, request, &context) => Ok(response),
            // Nobody reads the answer.
            () = context.ct.cancelled() => Ok(failed(String::from("canceled"))),
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.current().tools.get(name).map(|tool| tool.listed.clone())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut changes = self.changes.clone();
        changes.mark_unchanged();
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                if context.peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let tools = SubscriptionFilter::builder().tools_list_changed().build();
        Some(requested.intersection(&tools))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.clone();
        changes.mark_unchanged();
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_err() || subscription.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}
