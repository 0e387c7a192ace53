//! The methods about one call of a tool: `needs_approval` and `call`.

use std::sync::Arc;

use deftool_chat::request::Approval;
use deftool_jsonrpc::{Error, code};
use deftool_lang::schema::Accepted;
use deftool_lang::tool::{
    CallContext, ToolCall, ToolError, ToolErrorKind, ToolRunner, TraceContext, accept_call, call_title,
};
use deftool_project::{Generation, GenerationRunner};
use serde_json::{Map, Value};

use crate::client::to_json;
use crate::protocol::{ApproveParams, CallParams, CallResult, NeedsApprovalParams, NeedsApprovalResult};
use crate::session::Session;

impl Session {
    pub(crate) fn needs_approval(&self, params: NeedsApprovalParams) -> Result<NeedsApprovalResult, Error> {
        let generation = self.host.project.current();
        let (_, needs_approval) = validate(&generation, &params.tool, params.arguments)?;
        Ok(NeedsApprovalResult { needs_approval })
    }

    pub(crate) async fn call(&self, params: CallParams) -> Result<CallResult, Error> {
        let CallParams { tool: name, arguments, approved, call_id, traceparent, tracestate } = params;
        // The call uses one generation, even if the project is reloaded before the user approves it.
        let generation = self.host.project.current();
        let (Accepted { arguments, repairs }, needs_approval) = validate(&generation, &name, arguments)?;
        let timeout = generation.tool(&name).and_then(|loaded| loaded.entry().timeout);
        if needs_approval && !approved {
            let request_id = String::new();
            let shown = Arc::clone(arguments.shared());
            match self.approve(request_id, call_id.clone(), name.clone(), shown).await {
                Approval::Allowed => {}
                Approval::Refused { reason } => {
                    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                    let message = format!("the user did not allow this call to `{name}`{reason}");
                    return Err(failed(&ToolError::new(ToolErrorKind::Canceled, message)));
                }
            }
        }
        let runner = GenerationRunner {
            trust: self.host.trust.of(&generation),
            generation,
            scripts: Arc::clone(&self.host.scripts),
        };
        let trace = TraceContext::parse(
            traceparent.as_deref().unwrap_or_default(),
            tracestate.as_deref().unwrap_or_default(),
        );
        let context = CallContext { request_id: call_id.clone(), trace, timeout, ..CallContext::default() };
        let result = runner.run(ToolCall { id: call_id, name, arguments }, context).await;
        self.flush_script_events().await;
        let result = result.map_err(|error| failed(&error))?.value;
        let text = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
        Ok(CallResult { result, text, repairs })
    }

    /// Asks the user of the client to approve a call. A client that cannot ask refuses.
    pub(crate) async fn approve(
        &self,
        request_id: String,
        call_id: String,
        tool: String,
        arguments: Arc<Value>,
    ) -> Approval {
        let text = call_title(&tool, &arguments, usize::MAX);
        let response =
            self.client.request("approve", ApproveParams { request_id, call_id, tool, arguments, text });
        let refused = |reason: String| Approval::Refused { reason };
        match response.await {
            Ok(answer) => serde_json::from_value(answer).unwrap_or_else(|error| {
                refused(format!("the client's answer to `approve` is invalid: {error}"))
            }),
            Err(error) => refused(format!("the client did not ask the user: {}", error.message)),
        }
    }
}

/// Returns the arguments to pass to the tool, repaired because a model wrote them, and whether the call needs approval.
fn validate(
    generation: &Generation,
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<(Accepted, bool), Error> {
    let loaded = generation.find_tool(tool).map_err(|error| failed(&error))?;
    let accepted = accept_call(loaded.entry(), Value::Object(arguments)).map_err(|error| failed(&error))?;
    let needs_approval = loaded.entry().needs_approval(&accepted.arguments);
    Ok((accepted, needs_approval))
}

/// Returns the response for a call that failed.
pub(crate) fn failed(error: &ToolError) -> Error {
    Error { data: Some(Box::new(to_json(error))), ..Error::new(code::REQUEST_FAILED, error.message.clone()) }
}
