//! Asks the user of the client for approval of a call, through an elicitation.
//!
//! Until protocol version 2025-11-25 the server sends a request. Since 2026-07-28 it returns the elicitation as the
//! result of the call, and the client repeats the call with the user's response.

use std::collections::BTreeMap;

use deftool_lang::schema::Arguments;
use deftool_lang::tool::call_title;
use rmcp::RoleServer;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequiredResult, InputResponses, ProtocolVersion,
};
use rmcp::service::RequestContext;

/// The key of the elicitation and of the user's response.
const KEY: &str = "approval";

/// Whether a call may run.
pub(crate) enum Decision {
    Approved,
    /// It may not. Holds the reason, for the model.
    Refused(String),
    /// The client must ask the user.
    Required(InputRequiredResult),
}

/// Asks whether a call may run. `answers`: those that came with the call.
pub(crate) async fn decide(
    tool: &str,
    arguments: &Arguments,
    answers: Option<&InputResponses>,
    context: &RequestContext<RoleServer>,
) -> Decision {
    let answer = answers.and_then(|answers| answers.get(KEY)).cloned();
    if let Some(answer) = answer.and_then(|answer| serde_json::from_value::<ElicitResult>(answer).ok()) {
        return of_answer(tool, &answer);
    }
    if context.client_capabilities().is_none_or(|client| client.elicitation.is_none()) {
        return Decision::Refused(format!(
            "`{tool}` needs the user's approval, which this client cannot ask for; start the server with --yes to \
             allow such calls"
        ));
    }
    let question = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("Run {}?", call_title(tool, arguments.shared(), usize::MAX)),
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    };
    if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
        let question = InputRequest::Elicitation(ElicitRequest::new(question));
        let questions = BTreeMap::from([(String::from(KEY), question)]);
        return Decision::Required(InputRequiredResult::from_input_requests(questions));
    }
    match context.peer.create_elicitation(question).await {
        Ok(answer) => of_answer(tool, &answer),
        Err(error) => Decision::Refused(format!("`{tool}` needs the user's approval: {error}")),
    }
}

fn of_answer(tool: &str, answer: &ElicitResult) -> Decision {
    Decision::Refused(match answer.action {
        ElicitationAction::Accept => return Decision::Approved,
        ElicitationAction::Decline => format!("the user refused this call to `{tool}`"),
        // A host without a user cancels, and so does a user who closes the form.
        ElicitationAction::Cancel => {
            format!("nobody answered whether this call to `{tool}` may run, so it did not")
        }
        _ => format!("the user did not approve this call to `{tool}`"),
    })
}
