//! The client that made a call: receives the progress and the log lines of the call.

// Protocol version 2026-07-28 deprecates log messages; older clients display them.
#![allow(deprecated)]

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use deftool_lang::tool::TraceContext;
use hyper::http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{
    JsonRpcMessage, LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam,
    ProgressNotification, ProgressNotificationParam, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use crate::events::{CallEvent, LogLevel};
use crate::membership::Membership;
use crate::turns::CallerId;

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

/// The address of the client of a request over HTTP, in the extensions of its head.
#[derive(Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

/// The stream of the HTTP response to a request of a session, in the extensions of the request.
#[derive(Clone)]
pub(crate) struct CallStream(pub(crate) UnboundedSender<ServerJsonRpcMessage>);

/// The client that made a call.
pub(crate) struct Caller<'c> {
    pub(crate) context: &'c RequestContext<RoleServer>,
    pub(crate) min_level: Option<LogLevel>,
    /// The last progress of the call.
    pub(crate) progress: Mutex<Option<f64>>,
}

impl Caller<'_> {
    fn membership(&self) -> Option<&Membership> {
        self.context.extensions.get()
    }

    /// Returns the session or, since protocol version 2026-07-28, which has no sessions, the address and the name of the
    /// client.
    pub(crate) fn id(&self) -> CallerId {
        if let Some(membership) = self.membership() {
            return CallerId::clone(&membership.caller);
        }
        let head = self.context.extensions.get::<Parts>();
        let address = head.and_then(|head| head.extensions.get()).map(|ClientAddress(address)| address);
        let client = self.context.client_info().map(|client| (client.name, client.version));
        format!("client {client:?} at {address:?}").into()
    }

    /// Waits until the client cancels the call or ends its session.
    pub(crate) async fn canceled(&self) {
        let ended = async {
            match self.membership() {
                Some(membership) => membership.ended.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.context.ct.cancelled() => {}
            () = ended => {}
        }
    }

    /// Returns the span of the client that made the call.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        let meta = &self.context.meta;
        TraceContext::parse(meta.get_traceparent()?, meta.get_tracestate().unwrap_or_default())
    }

    /// Returns the progress to report for `fraction`. The protocol requires that it grows with each report, whose text
    /// may be new.
    fn grown(&self, fraction: Option<f64>) -> f64 {
        let mut last = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let reported = fraction.unwrap_or_default();
        let grown = last.map_or(reported, |last| if reported > last { reported } else { after(last) });
        *last = Some(grown);
        grown
    }

    /// Reports an event of a call of `tool`, if the client asked for such events. Errors are ignored: they mean that
    /// the client disconnected, which stops the call.
    pub(crate) async fn notify(&self, tool: &str, event: CallEvent) {
        match event {
            CallEvent::Progressed { fraction, text } => {
                let Some(token) = self.context.meta.get_progress_token() else { return };
                let grown = self.grown(fraction);
                let mut report = ProgressNotificationParam::new(token, grown);
                if fraction.is_some() && grown <= 1.0 {
                    report = report.with_total(1.0);
                }
                self.send(ProgressNotification::new(report.with_message(text)).into()).await;
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
                self.send(LoggingMessageNotification::new(message).into()).await;
            }
        }
    }

    async fn send(&self, event: ServerNotification) {
        match self.context.extensions.get() {
            Some(CallStream(stream)) => drop(stream.send(JsonRpcMessage::notification(event))),
            None => drop(self.context.peer.send_notification(event).await),
        }
    }
}

/// Returns a progress after `last`. It stays below 1 as long as it can, so that later fractions are larger.
fn after(last: f64) -> f64 {
    (last + (1.0 - last) / 100.0).max(last.next_up())
}
