//! The tools of MCP servers, as a source of tools.

mod connection;
mod convert;
mod supervisor;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deftool_lang::schema::ToolSet;
use deftool_lang::tool::{
    CallContext, ToolCall, ToolError, ToolErrorKind, ToolRunner, ToolSource, Toolbox, check_result,
};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, try_join_all};
use rmcp::ServiceError;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, RequestParamsMeta};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use connection::{Connection, cause_of};
pub use connection::{Launch, ServerProgram, ServerTransport};
use convert::{RemoteTool, text_of, tools_of, value_of};
use supervisor::{Status, supervise};

/// Time limit of a call without its own limit.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of problems of one listing that are reported.
const MAX_PROBLEMS: usize = 5;

/// Maximum wait for the reason why a connection was lost.
const REASON_LIMIT: Duration = Duration::from_secs(2);

/// An MCP server whose tools are used.
pub struct RemoteServer {
    /// The name. The tools are called `NAME__TOOL`.
    pub name: String,
    /// How to reach it.
    pub transport: ServerTransport,
    /// The tools to use, by the names that the server gives them; `None`: all.
    pub tools: Option<Vec<String>>,
    /// The tools to use, as `NAME__TOOL`; `None`: all.
    pub only: Option<Vec<String>>,
    /// Whether each call needs the user's approval.
    pub confirm: bool,
    /// Time limit of a call.
    pub timeout: Option<Duration>,
}

/// A server could not be used.
#[derive(Debug, thiserror::Error)]
#[error("MCP server `{name}`: {reason}")]
pub struct ConnectError {
    /// The name of the server.
    pub name: String,
    /// One clause.
    pub reason: String,
}

/// Receives messages for the user: the name of a server and one clause.
pub type Report = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// What a server offers.
pub struct Offer {
    /// The tools as the server lists them: the elements of `tools` in the answer to `tools/list`.
    pub listed: Vec<Value>,
    /// The names of the usable tools, as `NAME__TOOL`.
    pub names: Vec<String>,
    /// The problems of the tools, one clause each.
    pub problems: Vec<String>,
}

/// Connects to a server, lists its tools, and closes the connection.
///
/// # Errors
/// If the server does not offer its tools in time. The error is a clause that omits the name of the server.
pub async fn inspect(server: &RemoteServer) -> Result<Offer, String> {
    let connection = Connection::open(&server.transport).await?;
    let listed = Connection::list(&connection.peer).await;
    connection.close().await;
    let listed = listed?;
    let values = listed.iter().map(serde_json::to_value).collect::<Result<_, _>>();
    let values = values.map_err(|error| error.to_string())?;
    let (tools, problems) = tools_of(server, listed);
    let names = tools.iter().map(|tool| tool.entry.name.clone()).collect();
    Ok(Offer { listed: values, names, problems })
}

/// A server and its connection.
pub(crate) struct Server {
    options: RemoteServer,
    status: watch::Sender<Status>,
    /// The tools of the last successful listing. They stay known while the connection is lost.
    tools: Mutex<Arc<Vec<RemoteTool>>>,
    /// The problems of the last listing, which were reported.
    problems: Mutex<Vec<String>>,
    /// The changes of the tools of all servers.
    version: Arc<AtomicU64>,
    report: Report,
}

impl Server {
    fn report(&self, message: &str) {
        (self.report)(&self.options.name, message);
    }

    fn tools(&self) -> Arc<Vec<RemoteTool>> {
        Arc::clone(&self.tools.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Publishes the tools of a listing. A server may repeat a listing often.
    fn set_tools(&self, tools: Vec<RemoteTool>, problems: Vec<String>) {
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
    async fn call(
        &self,
        tool: &RemoteTool,
        call: ToolCall,
        context: CallContext,
    ) -> Result<Value, ToolError> {
        let limit = context.timeout.or(self.options.timeout).unwrap_or(DEFAULT_TIMEOUT);
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
                let ready = status.wait_for(|status| matches!(status, Status::Connected(_))).await;
                let Ok(Status::Connected(peer)) = ready.as_deref() else {
                    return Err(ServiceError::TransportClosed);
                };
                peer.clone()
            };
            peer.call_tool_once(params).await
        };
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(CallToolResponse::Complete(result))) => {
                self.result(result).and_then(|value| check_result(&tool.entry, value))
            }
            Ok(Ok(_)) => Err(self.error(
                ToolErrorKind::Failure,
                "the tool asks for more input, which deftool does not support",
            )),
            Ok(Err(ServiceError::McpError(error))) => {
                Err(self.error(ToolErrorKind::Failure, &format!("{} ({})", error.message, error.code.0)))
            }
            Ok(Err(error)) => {
                let reason = self.reason().await.unwrap_or_else(|| cause_of(&error));
                Err(self.error(ToolErrorKind::Internal, &reason))
            }
            Err(_) => {
                let reason = match &*self.status.borrow() {
                    Status::Connected(_) => format!("no result within {limit:?}"),
                    Status::Starting => String::from("it is still starting"),
                    Status::Lost(reason) => reason.clone(),
                };
                Err(self.error(ToolErrorKind::Timeout, &reason))
            }
        }
    }

    fn result(&self, result: CallToolResult) -> Result<Value, ToolError> {
        if result.is_error == Some(true) {
            return Err(ToolError::new(ToolErrorKind::Failure, text_of(&result)));
        }
        value_of(result).map_err(|error| self.error(ToolErrorKind::Unserialisable, &error.to_string()))
    }

    /// Returns why the connection was lost, which is known shortly after it was closed.
    async fn reason(&self) -> Option<String> {
        let mut status = self.status.subscribe();
        let lost = status.wait_for(|status| matches!(status, Status::Lost(_)));
        match tokio::time::timeout(REASON_LIMIT, lost).await.ok()?.ok()?.clone() {
            Status::Lost(reason) => Some(reason),
            Status::Starting | Status::Connected(_) => None,
        }
    }
}

/// The tools of several MCP servers. The servers are stopped when it is dropped.
pub struct RemoteTools {
    servers: Arc<Vec<Arc<Server>>>,
    version: Arc<AtomicU64>,
    cached: Mutex<Option<(u64, ToolSet)>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl RemoteTools {
    /// Connects to the servers at the same time, and waits for their tools. A connection that is lost later is
    /// established again. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// If a server does not offer its tools in time.
    pub async fn connect(servers: Vec<RemoteServer>, report: Report) -> Result<Self, ConnectError> {
        let (version, stop, tasks) =
            (Arc::new(AtomicU64::new(0)), CancellationToken::new(), TaskTracker::new());
        let servers = servers.into_iter().map(|options| {
            let (version, report) = (Arc::clone(&version), Arc::clone(&report));
            let status = watch::Sender::new(Status::Starting);
            let server = Arc::new(Server {
                options,
                status,
                tools: Mutex::default(),
                problems: Mutex::default(),
                version,
                report,
            });
            tasks.spawn(supervise(Arc::clone(&server), stop.clone()));
            server
        });
        let servers: Vec<_> = servers.collect();
        tasks.close();
        let tools = Self { servers: Arc::new(servers), version, cached: Mutex::default(), stop, tasks };
        let started = tools.servers.iter().map(|server| async {
            let mut status = server.status.subscribe();
            let known = status.wait_for(|status| !matches!(status, Status::Starting)).await;
            match known.as_deref() {
                Ok(Status::Lost(reason)) => {
                    Err(ConnectError { name: server.options.name.clone(), reason: reason.clone() })
                }
                _ => Ok(()),
            }
        });
        match try_join_all(started).await {
            Ok(_) => Ok(tools),
            Err(error) => {
                tools.close().await;
                Err(error)
            }
        }
    }

    /// Closes the connections, and waits until the programs have ended.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for RemoteTools {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl ToolSource for RemoteTools {
    fn current(&self) -> Toolbox {
        let version = self.version.load(Ordering::Acquire);
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let tools = match &*cached {
            Some((known, tools)) if *known == version => tools.clone(),
            Some(_) | None => {
                let listed: Vec<_> = self.servers.iter().map(|server| server.tools()).collect();
                let entries =
                    listed.iter().flat_map(|tools| tools.iter().map(|tool| Arc::clone(&tool.entry)));
                let tools = ToolSet::new(entries);
                *cached = Some((version, tools.clone()));
                tools
            }
        };
        let runner = RemoteRunner { servers: Arc::clone(&self.servers) };
        Toolbox { generation: version, tools, runner: Arc::new(runner) }
    }

    fn changes_since(&self, _: u64) -> String {
        let counts: BTreeMap<&str, usize> =
            self.servers.iter().map(|server| (server.options.name.as_str(), server.tools().len())).collect();
        let counts: Vec<String> =
            counts.iter().map(|(name, count)| format!("{name} offers {count}")).collect();
        format!("the tools of MCP servers changed: {}", counts.join(", "))
    }
}

struct RemoteRunner {
    servers: Arc<Vec<Arc<Server>>>,
}

impl ToolRunner for RemoteRunner {
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<Value, ToolError>> {
        async move {
            for server in self.servers.iter() {
                let tools = server.tools();
                if let Some(tool) = tools.iter().find(|tool| tool.entry.name == call.name) {
                    return server.call(tool, call, context).await;
                }
            }
            let message = format!("no MCP server offers `{}` any more", call.name);
            Err(ToolError::new(ToolErrorKind::UnknownTool, message))
        }
        .boxed()
    }
}
