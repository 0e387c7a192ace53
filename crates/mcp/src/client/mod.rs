//! The tools of MCP servers, as a source of tools.

mod answer;
mod changes;
mod connection;
mod convert;
mod handshake;
mod http;
mod program;
mod request;
mod result;
mod server;
mod supervisor;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use deftool_lang::schema::{ToolEntry, ToolSet, to_current_draft};
use deftool_lang::tool::{
    CallContext, ToolCall, ToolError, ToolErrorKind, ToolOutput, ToolRunner, ToolSource, Toolbox,
};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, try_join_all};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use connection::Connection;
pub use connection::{Launch, Redact, RemoteServer, ServerProgram, ServerTransport};
use convert::{Names, RemoteTool, name_of, tools_of};
pub use server::Report;
use server::{Server, Status};
use supervisor::supervise;

/// A server could not be used.
#[derive(Debug, thiserror::Error)]
#[error("MCP server `{name}`: {reason}")]
pub struct ConnectError {
    /// The name of the server.
    pub name: String,
    /// One clause.
    pub reason: String,
}

/// What a server offers.
pub struct Offer {
    /// The tools as the server lists them: the elements of `tools` in the answer to `tools/list`, with schemas of 2020-12,
    /// and with names that specs can have.
    pub listed: Vec<Value>,
    /// The tools exactly as the server lists them.
    pub raw: Vec<Value>,
    /// Why the server lists more tools than these, as a clause.
    pub missing: Option<String>,
    /// The usable tools.
    pub tools: Vec<Arc<ToolEntry>>,
    /// The names by which a worker may select them.
    pub names: Vec<String>,
    /// The problems of the tools, one clause each.
    pub problems: Vec<String>,
    /// What model APIs do not accept and is not sent, one clause for each tool.
    pub changes: Vec<String>,
}

/// Connects to a server, lists its tools, and closes the connection.
///
/// # Errors
/// If the server does not offer its tools in time. The error is a clause that omits the name of the server.
pub async fn inspect(server: &RemoteServer) -> Result<Offer, String> {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let warned = Arc::clone(&warnings);
    let warn = move |problem| warned.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
    let connection = Connection::open(server, Arc::new(warn)).await?;
    let listed = Connection::list(server, &connection.peer).await;
    connection.close().await;
    let mut listing = listed?;
    let (tools, problems) = tools_of(server, &listing.tools);
    let warnings = std::mem::take(&mut *warnings.lock().unwrap_or_else(PoisonError::into_inner));
    let warnings = warnings.into_iter().map(|problem| server.redacted(problem));
    let problems = warnings.chain(problems).chain(listing.problem.clone()).collect();
    let raw = listing.tools.clone();
    let listed: Vec<String> = listing.tools.iter().filter_map(name_of).map(str::to_owned).collect();
    let own = Names::new(String::new(), listed.iter().map(String::as_str));
    for tool in &mut listing.tools {
        if let Some(Value::String(name)) = tool.get_mut("name") {
            let [portable, ..] = own.of(name);
            *name = portable;
        }
    }
    let schemas = listing.tools.iter_mut().flat_map(|tool| {
        let members = tool.as_object_mut().into_iter().flatten();
        members.filter(|(name, _)| matches!(name.as_str(), "inputSchema" | "outputSchema"))
    });
    schemas.for_each(|(_, schema)| *schema = to_current_draft(schema));
    let changes = tools.iter().filter_map(RemoteTool::change).collect();
    let names = tools.iter().flat_map(|tool| tool.names.clone()).collect();
    let tools = tools.into_iter().map(|tool| tool.entry).collect();
    Ok(Offer { listed: listing.tools, raw, missing: listing.problem, tools, names, problems, changes })
}

/// The tools of several MCP servers. The servers are stopped when it is dropped.
pub struct RemoteTools {
    servers: Arc<Vec<Arc<Server>>>,
    version: Arc<AtomicU64>,
    cached: Mutex<Option<(u64, ToolSet)>>,
    stop: CancellationToken,
    tasks: TaskTracker,
    left_out: Vec<ConnectError>,
}

impl RemoteTools {
    /// Connects to the servers at the same time, and waits for their tools. A connection that is lost later is
    /// established again. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// If a required server does not offer its tools in time.
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
                message_problems: Mutex::default(),
                version,
                report,
            });
            tasks.spawn(supervise(Arc::clone(&server), stop.clone()));
            server
        });
        let servers: Vec<_> = servers.collect();
        tasks.close();
        let (servers, cached, left_out) = (Arc::new(servers), Mutex::default(), Vec::new());
        let mut tools = Self { servers, version, cached, stop, tasks, left_out };
        let started = tools.servers.iter().map(|server| async {
            let mut status = server.status.subscribe();
            let known = status.wait_for(|status| !matches!(status, Status::Starting)).await;
            match known.as_deref() {
                Ok(Status::Lost(reason)) => {
                    let error = ConnectError { name: server.options.name.clone(), reason: reason.clone() };
                    if server.options.is_required { Err(error) } else { Ok(Some(error)) }
                }
                _ => Ok(None),
            }
        });
        match try_join_all(started).await {
            Ok(left_out) => {
                tools.left_out = left_out.into_iter().flatten().collect();
                Ok(tools)
            }
            Err(error) => {
                tools.close().await;
                Err(error)
            }
        }
    }

    /// Returns the servers that are not required and did not start.
    pub fn left_out(&self) -> &[ConnectError] {
        &self.left_out
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
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
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
