//! The client that made a call: receives the progress and the log lines of the call.

// Protocol version 2026-07-28 deprecates log messages; older clients display them.
#![allow(deprecated)]

use deftool_lang::tool::TraceContext;
use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam};
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::events::{CallEvent, LogLevel};

pub(crate) fn level_from(level: LoggingLevel) -> LogLevel {
    match level {
        LoggingLevel::Debug => LogLevel::Debug,
        LoggingLevel::Info => LogLevel::Info,
        LoggingLevel::Notice | LoggingLevel::Warning => LogLevel::Warning,
        LoggingLevel::Error | LoggingLevel::Critical | LoggingLevel::Alert | LoggingLevel::Emergency => {
            LogLevel::Error
        }
    }
}

/// The client that made a call.
pub(crate) struct Caller<'c> {
    pub(crate) context: &'c RequestContext<RoleServer>,
    pub(crate) min_level: Option<LogLevel>,
}

impl Caller<'_> {
    /// Returns the span of the client that made the call.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        let meta = &self.context.meta;
        TraceContext::parse(meta.get_traceparent()?, meta.get_tracestate().unwrap_or_default())
    }

    /// Reports an event of a call of `tool`, if the client asked for such events. Errors are ignored: they mean that
    /// the client disconnected, which stops the call.
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
