//! A server and its connection: its tools, and their calls.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deftool_lang::schema::ToolEntry;
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolOutput, check_result};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, RequestParamsMeta};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::answer::{cause_of, failure_of};
use super::changes::Changes;
use super::connection::RemoteServer;
use super::convert::RemoteTool;
use super::request::request;
use super::result::{CallResult, without_data};

/// Time limit of a call without its own limit.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of problems of one listing that are reported.
const MAX_PROBLEMS: usize = 5;

/// Maximum number of reported problems of messages.
const MAX_MESSAGE_PROBLEMS: usize = 20;

/// Maximum wait for the reason why a connection was lost.
const REASON_LIMIT: Duration = Duration::from_secs(2);

/// Receives messages for the user: the name of a server and one clause.
pub type Report = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The state of a connection.
#[derive(Clone)]
pub(super) enum Status {
    /// The first connection is not established.
    Starting,
    Connected(Peer<RoleClient>, Changes),
    /// There is no connection. Holds the reason: a clause that omits the name of the server.
    Lost(String),
}

/// A server and its connection.
pub(super) struct Server {
    pub(super) options: RemoteServer,
    pub(super) status: watch::Sender<Status>,
    /// The tools of the last successful listing. They stay known while the connection is lost.
    pub(super) tools: Mutex<Arc<Vec<RemoteTool>>>,
    /// The problems of the last listing, which were reported.
    pub(super) problems: Mutex<Vec<String>>,
    /// The problems of messages, which were reported.
    pub(super) message_problems: Mutex<HashSet<String>>,
    /// The changes of the tools of all servers.
    pub(super) version: Arc<AtomicU64>,
    pub(super) report: Report,
}

impl Server {
    pub(super) fn report(&self, message: &str) {
        (self.report)(&self.options.name, message);
    }

    /// Reports a problem of a message, unless it was reported before.
    pub(super) fn report_once(&self, problem: String) {
        let problem = self.options.redacted(problem);
        let mut known = self.message_problems.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_MESSAGE_PROBLEMS && !known.contains(&problem) {
            self.report(&problem);
            known.insert(problem);
        }
    }

    pub(super) fn tools(&self) -> Arc<Vec<RemoteTool>> {
        Arc::clone(&self.tools.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Publishes the tools of a listing. A server may repeat a listing often.
    pub(super) fn set_tools(&self, tools: Vec<RemoteTool>, problems: Vec<String>) {
        let mut known = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != problems {
            for problem in problems.iter().take(MAX_PROBLEMS) {
                self.report(problem);
            }
            if let Some(more) = problems.len().checked_sub(MAX_PROBLEMS).filter(|more| *more > 0) {
                self.report(&format!("{more} more problems; run `deftool check --online`"));
            }
            *known = problems;
        }
        let definitions = |tools: &[RemoteTool]| {
            tools
                .iter()
                .map(|tool| (tool.remote_name.clone(), tool.entry.definition.clone()))
                .collect::<Vec<_>>()
        };
        let mut known = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let has_changed = definitions(&known) != definitions(&tools);
        *known = Arc::new(tools);
        if has_changed {
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    fn error(&self, kind: ToolErrorKind, message: &str) -> ToolError {
        ToolError::new(kind, format!("MCP server `{}`: {message}", self.options.name))
    }

    /// Calls a tool. Dropping the future cancels the call on the server.
    pub(super) async fn call(
        &self,
        tool: &RemoteTool,
        call: ToolCall,
        context: CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let limit = context.timeout.or(self.options.timeout).unwrap_or(DEFAULT_TIMEOUT);
        let end = Instant::now() + limit;
        let answered = self.answer(tool, call, context, limit).await;
        // The next turn offers the tools that the server announced before its answer.
        let _ = timeout_at(end, self.listed()).await;
        match answered {
            Ok(mut output) => {
                (self.options.redact)(&mut output.value);
                Ok(output)
            }
            Err(error) => Err(ToolError {
                message: self.options.redacted(error.message),
                details: error.details.map(|details| self.options.redacted(details)),
                ..error
            }),
        }
    }

    /// Waits until the announced changes of the tools are listed.
    async fn listed(&self) {
        let status = self.status.borrow().clone();
        if let Status::Connected(_, changes) = status {
            changes.listed().await;
        }
    }

    async fn answer(
        &self,
        tool: &RemoteTool,
        call: ToolCall,
        context: CallContext,
        limit: Duration,
    ) -> Result<ToolOutput, ToolError> {
        let mut params = CallToolRequestParams::new(tool.remote_name.clone());
        params.arguments = call.arguments.as_object().cloned();
        if let Some(trace) = context.trace {
            params.set_traceparent(&trace.traceparent());
            if !trace.tracestate().is_empty() {
                params.set_tracestate(trace.tracestate());
            }
        }
        let answer = async {
            let peer = {
                let mut status = self.status.subscribe();
                let ready = status.wait_for(|status| matches!(status, Status::Connected(..))).await;
                let Ok(Status::Connected(peer, _)) = ready.as_deref() else {
                    return Err(ServiceError::TransportClosed);
                };
                peer.clone()
            };
            request(&peer, ClientRequest::CallToolRequest(CallToolRequest::new(params))).await
        };
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(result)) => self.result(tool, &result, limit).await,
            Ok(Err(ServiceError::McpError(error))) => {
                let (kind, message) = failure_of(&error);
                Err(self.error(kind, &message))
            }
            Ok(Err(error)) => {
                let reason = self.reason().await.unwrap_or_else(|| cause_of(&error));
                Err(self.error(ToolErrorKind::Internal, &reason))
            }
            Err(_) => {
                let reason = match &*self.status.borrow() {
                    Status::Connected(..) => format!("no result within {limit:?}"),
                    Status::Starting => String::from("it is still starting"),
                    Status::Lost(reason) => reason.clone(),
                };
                Err(self.error(ToolErrorKind::Timeout, &reason))
            }
        }
    }

    async fn result(
        &self,
        tool: &RemoteTool,
        result: &Value,
        limit: Duration,
    ) -> Result<ToolOutput, ToolError> {
        // Results of another kind ask for input, or name a task.
        if result.get("resultType").is_some_and(|kind| kind != "complete" && !kind.is_null()) {
            let message = "the tool asks for more input, which deftool does not support";
            return Err(self.error(ToolErrorKind::Failure, message));
        }
        let error = |message| ToolError::new(ToolErrorKind::ErrorResult, message);
        let CallResult { value, attachments, is_structured, unknown, data } =
            CallResult::read(result).map_err(error)?;
        let output = ToolOutput { value, attachments };
        for kind in unknown {
            let name = &tool.remote_name;
            self.report_once(format!(
                "`{name}` returns content of the unknown type `{kind}`, which is left out"
            ));
        }
        let mut output =
            if is_structured { self.check(Arc::clone(&tool.entry), output, limit).await? } else { output };
        if !is_structured && tool.entry.returns.is_some() {
            let name = &tool.remote_name;
            self.report_once(format!(
                "`{name}` returns a text instead of the result that its schema describes"
            ));
        }
        without_data(&mut output.value, &data);
        Ok(output)
    }

    /// Returns the result of a call if it matches the output schema of the tool. Validates it in another thread and with
    /// a time limit, because the server chooses both.
    async fn check(
        &self,
        entry: Arc<ToolEntry>,
        result: ToolOutput,
        limit: Duration,
    ) -> Result<ToolOutput, ToolError> {
        if entry.returns.is_none() {
            return Ok(result);
        }
        let checked = tokio::task::spawn_blocking(move || check_result(&entry, result));
        match tokio::time::timeout(limit, checked).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(error)) => Err(self.error(ToolErrorKind::Internal, &error.to_string())),
            Err(_) => {
                let message = format!("the result was not validated within {limit:?}");
                Err(self.error(ToolErrorKind::Timeout, &message))
            }
        }
    }

    /// Returns why the connection was lost, which is known shortly after it was closed.
    async fn reason(&self) -> Option<String> {
        let mut status = self.status.subscribe();
        let lost = status.wait_for(|status| matches!(status, Status::Lost(_)));
        match tokio::time::timeout(REASON_LIMIT, lost).await.ok()?.ok()?.clone() {
            Status::Lost(reason) => Some(reason),
            Status::Starting | Status::Connected(..) => None,
        }
    }
}
