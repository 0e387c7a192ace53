//! The messages of the services.

use deftool_chat::Message;
use deftool_chat::request::{Event, JournalEntry, Outcome, Signal};
use deftool_lang::text::digest;
use deftool_record::JournaledRequest;
use deftool_worker::SubmitRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A request to run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Submission {
    /// The worker; may be missing if the project has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The message of the user. It follows `messages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The conversation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// An additional system message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The model, which overrides that of the worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Members of the request body, such as `temperature`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// Names of the tools that may be called; missing: all tools of the worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// A name for the job.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub job_name: String,
}

impl Submission {
    /// Returns the digest of the submission.
    pub(crate) fn digest(&self) -> String {
        digest([serde_json::to_vec(self).unwrap_or_default()])
    }

    pub(crate) fn into_request(self) -> SubmitRequest {
        let Self { worker: _, prompt, mut messages, system, model, params, tools, job_name } = self;
        messages.extend(prompt.map(Message::user));
        SubmitRequest {
            messages,
            system_prompt: system,
            model,
            params,
            tools,
            job_name,
            ..SubmitRequest::default()
        }
    }
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestResult {
    /// The outcome.
    pub outcome: Outcome,
    /// The conversation. It can be continued with the next message of the user.
    pub messages: Vec<Message>,
}

/// A part of the events of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventPage {
    /// The events.
    pub events: Vec<Event>,
    /// The cursor of the next page; `None`: this is the last page.
    pub next: Option<usize>,
    /// The approvals that these events request, each with the awakeable that takes its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalRequest>,
}

/// A call that waits for the approval of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The id of the call.
    pub call_id: String,
    /// The awakeable of Restate that takes an [`Approval`](deftool_chat::request::Approval).
    pub awakeable: String,
}

/// Size of the images and audio of a step in base64 at which it ends, in bytes. With one more, which has at most 20 MB,
/// the step is smaller than a message of Restate may be.
const FULL_STEP: usize = 4 << 20;

/// What a worker did until the request had to be stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Step {
    /// The start of the request, in its first step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<Box<JournaledRequest>>,
    pub(crate) entries: Vec<(u64, JournalEntry)>,
    /// Whether consumers receive the events up to this step.
    #[serde(default)]
    pub(crate) publishes: bool,
    /// The conversation, in the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<Vec<Message>>,
}

impl Step {
    /// Returns the events of the step.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.entries.iter().filter_map(|(_, entry)| match entry {
            JournalEntry::Event(event) => Some(event),
            JournalEntry::Reply(_) | JournalEntry::Log { .. } | JournalEntry::Attachment(_) => None,
        })
    }

    /// Whether the images and audio of the step are so large that the next entries belong to another step.
    pub(crate) fn is_full(&self) -> bool {
        let sizes = self.entries.iter().map(|(_, entry)| match entry {
            JournalEntry::Attachment(data) => data.encoded_size(),
            JournalEntry::Event(_) | JournalEntry::Reply(_) | JournalEntry::Log { .. } => 0,
        });
        sizes.sum::<usize>() >= FULL_STEP
    }

    /// Returns the calls of exit tools.
    pub(crate) fn signals(&self) -> impl Iterator<Item = &Signal> {
        self.events().filter_map(|event| match event {
            Event::Signal(signal) => Some(signal),
            _ => None,
        })
    }

    /// Returns the outcome, in the last step.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.events().find_map(|event| match event {
            Event::Finished(outcome) => Some(outcome.as_ref()),
            _ => None,
        })
    }
}
