//! `--from`: asks from the calls of a recording. What a model did is not what it should do, so a person edits them.

use std::collections::HashSet;
use std::path::Path;

use deftool_chat::{Message, RawArguments};
use deftool_lang::spec::{FileKind, form_of_calls, format_generated};
use deftool_lang::syntax::write;
use deftool_lang::text::count;
use deftool_record::{Recording, holds_redacted};
use serde_json::Value;

use crate::cli::outcome::{CliError, Exit};
use crate::cli::terminal::output::{clean, eprint_line, eprint_progress, print};
use crate::cli::worker::recordings;

/// Prints an ask for each recorded request: its prompt, and the calls of the first reply.
///
/// # Errors
/// If the recording cannot be read, or contains no prompt that can be an ask.
pub(super) fn run(path: &Path) -> Result<Exit, CliError> {
    let recording = recordings::read(path)?;
    let asks = asks(&recording);
    if asks.is_empty() {
        let name = clean(&path.display().to_string());
        return Err(CliError::Usage(format!("{name}: contains no request that can be an ask")));
    }
    let forms = asks.iter().map(|(prompt, calls)| {
        let calls: Vec<(&str, &Value)> = calls.iter().map(|(tool, value)| (tool.as_str(), value)).collect();
        format!("{}\n", write(&form_of_calls(prompt, &calls)))
    });
    print(&format_generated(forms.collect::<Vec<_>>().join("\n"), FileKind::Specs));
    eprint_progress(&format!(
        "{}: compare each with what the model should do, and remove what does not matter",
        count(asks.len(), "ask")
    ));
    Ok(Exit::Clean)
}

/// Returns the prompts, each with the calls of the first reply. Requests with a longer conversation, without text, or with
/// calls that cannot be stated are reported and left out.
fn asks(recording: &Recording) -> Vec<(String, Vec<(String, Value)>)> {
    let mut calls = recording.calls().into_iter().peekable();
    let (mut asks, mut prompts) = (Vec::new(), HashSet::new());
    for (request, number) in recording.requests().iter().zip(1..) {
        // The calls are in the order of the requests.
        let of_request: Vec<_> =
            std::iter::from_fn(|| calls.next_if(|call| call.request == number)).collect();
        let left_out = |why: &str| eprint_line(&format!("skipped request {number}: {why}"));
        let [Message::User { content: prompt, attachments }] = request.session.conversation.as_slice() else {
            left_out("its conversation has several messages");
            continue;
        };
        if prompt.trim().is_empty() || !attachments.is_empty() {
            left_out("its prompt is not text");
            continue;
        }
        let of_reply = of_request.iter().filter(|call| call.turn == 1);
        let stated = of_reply.map(|call| match &call.arguments {
            RawArguments::Object { value } if !holds_redacted(&value.to_value()) => {
                Some((call.name.clone(), value.to_value()))
            }
            RawArguments::Object { .. } | RawArguments::Malformed { .. } => None,
        });
        let Some(calls) = stated.collect::<Option<Vec<_>>>() else {
            left_out("a call has arguments that are unreadable or redacted");
            continue;
        };
        if prompts.insert(prompt.as_str()) {
            asks.push((prompt.clone(), calls));
        }
    }
    asks
}
