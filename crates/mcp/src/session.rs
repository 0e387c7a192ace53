//! The connection of one client: answers its requests, and reports changes of the tools.

// Protocol version 2026-07-28 deprecates log messages; older clients display them.
#![allow(deprecated)]

use std::sync::{Mutex, PoisonError};

use deftool_lang::spec::nearest;
use deftool_lang::tool::TraceContext;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use crate::events::{CallEvent, LogLevel};
use crate::server::{ToolServer, failed};

/// The connection of one client.
pub(crate) struct Session {
    server: ToolServer,
    /// The lowest level of the log lines that the client receives.
    min_level: Mutex<LogLevel>,
    /// Reports changes of the tools.
    announcer: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Session {
    pub(crate) fn new(server: ToolServer) -> Self {
        Self { server, min_level: Mutex::new(LogLevel::Info), announcer: Mutex::default() }
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

fn level_from(level: LoggingLevel) -> LogLevel {
    match level {
        LoggingLevel::Debug => LogLevel::Debug,
        LoggingLevel::Info => LogLevel::Info,
        LoggingLevel::Notice | LoggingLevel::Warning => LogLevel::Warning,
        LoggingLevel::Error | LoggingLevel::Critical | LoggingLevel::Alert | LoggingLevel::Emergency => {
            LogLevel::Error
        }
    }
}

/// The client of a call.
pub(crate) struct Client<'c> {
    pub(crate) context: &'c RequestContext<RoleServer>,
    min_level: Option<LogLevel>,
}

impl Client<'_> {
    /// Returns the span of the client that made the call.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        let meta = &self.context.meta;
        TraceContext::parse(meta.get_traceparent()?, meta.get_tracestate().unwrap_or_default())
    }

    /// Reports an event of a call of `tool`, if the client asked for such events. Errors are ignored: they mean that
    /// the client is gone, and then the call is dropped.
    pub(crate) async fn notify(&self, tool: &str, event: CallEvent) {
        match event {
            CallEvent::Progressed { fraction, text } => {
                let Some(token) = self.context.meta.get_progress_token() else { return };
                let mut report = ProgressNotificationParam::new(token, fraction.unwrap_or_default());
                if fraction.is_some() {
                    report = report.with_total(1.0);
                }
                let _ = self.context.peer.notify_progress(report.with_message(text)).await;
            }
            CallEvent::Logged { level, text } => {
                if self.min_level.is_none_or(|min| level < min) {
                    return;
                }
                let level = match level {
                    LogLevel::Debug => LoggingLevel::Debug,
                    LogLevel::Info => LoggingLevel::Info,
                    LogLevel::Warning => LoggingLevel::Warning,
                    LogLevel::Error => LoggingLevel::Error,
                };
                let message =
                    LoggingMessageNotificationParam::new(level, Value::String(text)).with_logger(tool);
                let _ = self.context.peer.notify_logging_message(message).await;
            }
        }
    }
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
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let catalog = self.server.tools.current();
        Ok(ListToolsResult::with_all_items(catalog.tools.values().map(|tool| tool.listed.clone()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let catalog = self.server.tools.current();
        let name = request.name.as_ref();
        let Some(tool) = catalog.tools.get(name) else {
            let similar = nearest(name, catalog.tools.keys().map(String::as_str));
            let hint = similar.map(|similar| format!("; did you mean `{similar}`?")).unwrap_or_default();
            return Err(ErrorData::invalid_params(format!("unknown tool `{name}`{hint}"), None));
        };
        let client = Client { context: &context, min_level: self.min_level(&context) };
        tokio::select! {
            response = self.server.call(&catalog, tool, request, &client) => Ok(response),
            // Nobody reads the answer.
            () = context.ct.cancelled() => Ok(failed(String::from("canceled"))),
        }
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
        self.server.tools.current().tools.get(name).map(|tool| tool.listed.clone())
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
