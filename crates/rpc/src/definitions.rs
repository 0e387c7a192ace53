//! The whole protocol as types, from which definitions for other languages are generated.

#![allow(missing_docs)] // the types of the members are documented

use deftool_chat::request::Approval;
use deftool_lang::diagnostic::render::JsonReport;
use deftool_lang::tool::ToolError;
use schemars::JsonSchema;
use ts_rs::TS;

use crate::protocol::{
    ApproveParams, CallParams, CallResult, CancelParams, CheckParams, CompileParams, CompileResult, Empty,
    EventParams, EventsParams, EventsResult, ListResult, LogParams, NeedsApprovalParams, NeedsApprovalResult,
    ProgressParams, ReloadedParams, RequestId, RequestResult, ResultParams, SubmitParams,
};

/// The messages of the protocol by method.
#[derive(JsonSchema, TS)]
pub struct Protocol {
    /// Requests of the client.
    pub requests: Requests,
    /// Requests of the server.
    pub server_requests: ServerRequests,
    /// Notifications of the server.
    pub server_notifications: ServerNotifications,
    /// The notification of both sides.
    pub cancel: Cancel,
    /// The `data` of the error of a failed call.
    pub call_error: ToolError,
}

/// Requests of the client.
#[derive(JsonSchema, TS)]
pub struct Requests {
    pub list: Method<Empty, ListResult>,
    pub check: Method<CheckParams, JsonReport>,
    pub compile: Method<CompileParams, CompileResult>,
    pub needs_approval: Method<NeedsApprovalParams, NeedsApprovalResult>,
    pub call: Method<CallParams, CallResult>,
    pub submit: Method<SubmitParams, RequestId>,
    pub events: Method<EventsParams, EventsResult>,
    pub result: Method<ResultParams, RequestResult>,
    pub cancel: Method<RequestId, Empty>,
    pub shutdown: Method<Empty, Empty>,
}

/// Requests of the server.
#[derive(JsonSchema, TS)]
pub struct ServerRequests {
    pub approve: Method<ApproveParams, Approval>,
}

/// Notifications of the server, with their parameters.
#[derive(JsonSchema, TS)]
pub struct ServerNotifications {
    pub event: EventParams,
    pub log: LogParams,
    pub progress: ProgressParams,
    pub reloaded: ReloadedParams,
}

/// The notification of both sides, with its parameters.
#[derive(JsonSchema, TS)]
pub struct Cancel {
    #[serde(rename = "$/cancelRequest")]
    pub cancel_request: CancelParams,
}

/// A method.
#[derive(JsonSchema, TS)]
pub struct Method<P, R> {
    pub params: P,
    pub result: R,
}
