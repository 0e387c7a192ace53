//! A request, and the form of its body.

use std::sync::Arc;

use deftool_lang::spec::Api;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::change::{BodyFallback, BodyFallbacks};
use crate::dialect::{Capabilities, Feature};
use crate::message::Message;
use crate::received::ReplySource;

/// A request for one reply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The model's name.
    pub model: String,
    /// The source of the reply. Parts of earlier replies go back only to their source.
    #[serde(default)]
    pub source: ReplySource,
    /// The conversation. The messages are shared with the requests of the other turns.
    pub messages: Vec<Arc<Message>>,
    /// Tool definitions in the format of the API. An empty list is omitted, because some servers reject it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    /// All other members: `temperature`, `max_tokens`, `tool_choice`, server-specific ones. `tool_choice` is omitted if
    /// there are no tools. [`OWN_MEMBERS`](crate::OWN_MEMBERS) are ignored.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// The prompt describes the tools, so that none are sent, and the model writes its calls as text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub describes_tools: bool,
}

impl ChatRequest {
    /// Whether calls and results are sent as text.
    pub(super) fn writes_calls(&self, fallbacks: BodyFallbacks) -> bool {
        self.describes_tools || fallbacks.has(BodyFallback::PlainRoles)
    }
}

/// The form of a body: the API, the server's capabilities, and the fallbacks after rejected requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyForm {
    /// The API of the worker. [`BodyForm::effective_api`] is the API that the request is sent to.
    pub api: Api,
    /// Whether the reply is streamed; false for the probe after an empty stream.
    pub stream: bool,
    /// The known properties of the server.
    pub server: Capabilities,
    /// The fallbacks that are applied.
    pub fallbacks: BodyFallbacks,
    /// The number of messages whose state is not returned, because the server cannot read it.
    pub stateless: usize,
    /// The first message, and the one after the last, whose images and audio are not sent: the server rejected the
    /// request with them.
    pub without_images: (usize, usize),
}

impl BodyForm {
    /// Returns the form after `fallback` to the body of `request`.
    #[must_use]
    pub fn after(self, fallback: BodyFallback, request: &ChatRequest) -> Self {
        if fallback == BodyFallback::NoEarlierState {
            // Replies from now on have state that the server can read.
            let has_state = |message: &Arc<Message>| match &**message {
                Message::Assistant { received: Some(received), .. } => !received.parts.is_empty(),
                _ => false,
            };
            let last = request.messages.iter().rposition(has_state);
            return Self { stateless: last.map_or(0, |last| last + 1), ..self };
        }
        // The server accepted the request before the last reply, with the images until then.
        let is_reply = |message: &Arc<Message>| matches!(**message, Message::Assistant { .. });
        let first_new = || request.messages.iter().rposition(is_reply).map_or(0, |last| last + 1);
        let first = match fallback {
            BodyFallback::NoNewImages => Some(first_new()),
            BodyFallback::NoEarlierImages => Some(0),
            _ => None,
        };
        if let Some(first) = first {
            let end = request.messages.len();
            // The images of an earlier rejection of this request are not sent again. Those of an earlier request are
            // no longer in the conversation.
            let (start, known_end) = self.without_images;
            let start = if known_end == end { start.min(first) } else { first };
            return Self { without_images: (start, end), ..self };
        }
        Self { fallbacks: self.fallbacks.with(fallback), ..self }
    }
}

impl BodyForm {
    /// Returns the API that the request is sent to.
    pub fn effective_api(self) -> Api {
        match self.api {
            Api::ChatCompletions if self.fallbacks.has(BodyFallback::UseResponses) => Api::Responses,
            api => api,
        }
    }

    /// Whether the body marks where the prompt is stored for the next request. Local servers store all prompts without
    /// marks, and with a mark of its own, a request decides for itself.
    pub(super) fn caches_prompt(self, request: &ChatRequest) -> bool {
        self.effective_api() == Api::Messages
            && self.server.is_hosted()
            && !self.fallbacks.omits("cache_control")
            && !request.params.contains_key("cache_control")
    }

    /// Whether the tools ask for arguments as they are generated.
    pub(super) fn streams_arguments_early(self) -> bool {
        self.server.supports(Feature::EarlyArguments) && !self.fallbacks.omits("eager_input_streaming")
    }
}

impl Default for BodyForm {
    fn default() -> Self {
        Self {
            api: Api::default(),
            stream: true,
            server: Capabilities::default(),
            fallbacks: BodyFallbacks::default(),
            stateless: 0,
            without_images: (0, 0),
        }
    }
}

/// What the form of an item depends on, besides its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools)] // independent facts, not a state machine
pub(super) struct ItemForm {
    pub(super) api: Api,
    /// Null is sent as an empty string.
    pub(super) empty: bool,
    /// The server stores responses, so an item can be identified by its id alone.
    pub(super) stores: bool,
    /// Output items have no ids.
    pub(super) no_ids: bool,
    /// The body marks where the prompt is stored for the next request.
    pub(super) caches: bool,
}
