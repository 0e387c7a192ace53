//! The connection of one client: answers its requests, and reports changes of the tools.

// Protocol version 2026-07-28 deprecates log messages and roots; older clients have them.
#![allow(deprecated)]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deftool_lang::schema::{Repair, RepairKind, before_control_token, repair_text};
use deftool_lang::spec::advice_on_name;
use reqwest::Url;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, ServerResult,
    SetLevelRequestParams, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, ServerInitializeError, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OnceCell;
use tokio_util::task::AbortOnDropHandle;

use crate::bounded::Bounded;
use crate::caller::{Caller, level_from};
use crate::catalog::{Catalog, CatalogSource};
use crate::events::LogLevel;
use crate::lines::LineTransport;
use crate::membership::{CancelCalls, SessionTransport};
use crate::server::{ToolServer, failed};

/// Time limit for a client to name its roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(2);

/// The connection of one client.
pub(crate) struct Session {
    server: ToolServer,
    /// The tools, after the first request.
    tools: OnceCell<Arc<dyn CatalogSource>>,
    /// Whether the client is a program of the user, whose roots are folders of this machine.
    is_local: bool,
    /// The lowest level of the log lines that the client receives.
    min_level: Mutex<LogLevel>,
    /// Reports changes of the tools.
    announcer: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Session {
    pub(crate) fn new(server: ToolServer) -> Self {
        let min_level = Mutex::new(LogLevel::Info);
        Self { server, tools: OnceCell::new(), is_local: false, min_level, announcer: Mutex::default() }
    }

    /// Returns the current tools.
    async fn current(&self, peer: &Peer<RoleServer>) -> Arc<dyn Catalog> {
        let tools = self.tools.get_or_init(async || {
            let folder = if self.is_local { first_root(peer).await } else { None };
            let in_folder = folder.and_then(|folder| self.server.tools.in_folder(&folder));
            in_folder.unwrap_or_else(|| Arc::clone(&self.server.tools))
        });
        tools.await.current()
    }

    /// Returns the lowest level of the log lines to send; `None`: the client receives none.
    fn min_level(&self, context: &RequestContext<RoleServer>) -> Option<LogLevel> {
        // Since 2026-07-28 each request names the level.
        if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
            return context.meta.log_level().map(level_from);
        }
        Some(*self.min_level.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the first folder among the roots of the client.
async fn first_root(peer: &Peer<RoleServer>) -> Option<PathBuf> {
    peer.peer_info()?.capabilities.roots.as_ref()?;
    let listed = tokio::time::timeout(ROOTS_TIMEOUT, peer.list_roots()).await.ok()?.ok()?;
    listed.roots.iter().find_map(|root| Url::parse(&root.uri).ok()?.to_file_path().ok())
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
    /// Serves the client at the other end of `input` and `output`, until it closes `input`.
    ///
    /// # Errors
    /// If the client does not start a session.
    pub async fn serve(
        mut self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), ServeError> {
        self.turns = None;
        let transport = Bounded::new(LineTransport::new(input, output));
        let transport = SessionTransport::new(transport, CancelCalls::AtDrop);
        let service = ServiceExt::serve(Session { is_local: true, ..Session::new(self) }, transport)
            .await
            .map_err(|error| match error {
                ServerInitializeError::ConnectionClosed(_) => ServeError::NoSession,
                other => ServeError::Failed(other.to_string()),
            })?;
        // Ends when the client is gone. An error means that the task of the connection panicked.
        service.waiting().await.map(drop).map_err(|error| ServeError::Failed(error.to_string()))
    }
}

impl Session {
    /// Answers a call. `repairs`: the repairs of the text of its arguments.
    async fn answer(
        &self,
        request: CallToolRequestParams,
        mut repairs: Vec<Repair>,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let catalog = self.current(&context.peer).await;
        let name = request.name.as_ref();
        let called = catalog.tool(name).or_else(|| {
            let tool = catalog.tool(before_control_token(name)?)?;
            repairs.push(Repair::of_call(RepairKind::ControlTokenInName));
            Some(tool)
        });
        let Some(tool) = called else {
            let advice = advice_on_name(name, "tools", catalog.names());
            return Err(ErrorData::invalid_params(format!("unknown tool `{name}`; {advice}"), None));
        };
        let min_level = self.min_level(&context);
        let caller = Caller { context: &context, min_level, progress: Mutex::default() };
        tokio::select! {
            response = self.server.call(&*catalog, &tool, request, repairs, &caller) => Ok(response),
            // Nobody reads the answer.
            () = caller.canceled() => Ok(failed(String::from("canceled"))),
        }
    }
}

/// The method of calls.
const CALL_TOOL: &str = "tools/call";

/// The methods whose parameters can be invalid.
const METHODS: [&str; 4] = ["initialize", "tools/list", CALL_TOOL, "logging/setLevel"];

/// Decodes the parameters of a call whose arguments are the text of an object.
fn decode_call(mut params: Value) -> Option<(CallToolRequestParams, Vec<Repair>)> {
    let arguments = params.get_mut("arguments").filter(|arguments| arguments.is_string())?;
    // The string is the outer encoding.
    let (decoded, repairs) = repair_text(&arguments.to_string())?;
    *arguments = decoded.to_value();
    Some((serde_json::from_value(params).ok()?, repairs))
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let tools =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_logging().build();
        let mut info = ServerConfig::new(tools);
        info.server_info = Implementation::new("deftool", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let catalog = self.current(&context.peer).await;
        let listed = |name| Some(catalog.tool(name)?.listed.clone());
        Ok(ListToolsResult::with_all_items(catalog.names().into_iter().filter_map(listed).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Boxed: the library moves the future of each request several times, and it is as large as the largest of all
        // handlers.
        Box::pin(self.answer(request, Vec::new(), context)).await
    }

    /// Answers what is not a request of the protocol, such as a call whose arguments are a string that contains the object.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        if !METHODS.contains(&method.as_str()) {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
        }
        let Some((request, repairs)) = params.filter(|_| method == CALL_TOOL).and_then(decode_call) else {
            return Err(ErrorData::invalid_params(format!("invalid parameters of `{method}`"), None));
        };
        let response = Box::pin(self.answer(request, repairs, context)).await?;
        let result = serde_json::to_value(ServerResult::from(response));
        result.map(CustomResult::new).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.min_level.lock().unwrap_or_else(PoisonError::into_inner) = level_from(request.level);
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.get().unwrap_or(&self.server.tools).current().tool(name).map(|tool| tool.listed.clone())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut changes = self.server.changes.clone();
        changes.mark_unchanged();
        let announcer = tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                if context.peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
        // Replaces the task of a client that initializes twice.
        *self.announcer.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(AbortOnDropHandle::new(announcer));
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let tools = SubscriptionFilter::builder().tools_list_changed().build();
        Some(requested.intersection(&tools))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.server.changes.clone();
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
