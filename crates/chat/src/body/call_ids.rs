//! The ids of calls in the form that the model's server accepts.
//!
//! In: a conversation with the ids that servers sent. Out: the same ids, except those that break a known rule. The new
//! id depends only on the old one, so that the bodies of all turns agree.

use std::borrow::Cow;
use std::sync::Arc;

use deftool_lang::spec::Api;
use deftool_lang::text::fnv1a;

use super::change::BodyFallback;
use super::model::BodyForm;
use crate::dialect::CallIds;
use crate::message::{Message, portable_id};

/// A rule for the ids of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdRule {
    /// Any text.
    Any,
    /// At most this many bytes.
    AtMost(usize),
    /// `[a-zA-Z0-9_-]`, at most 64.
    Name,
    /// Nine of `[a-zA-Z0-9]`, which every server accepts.
    Nine,
}

/// Replaces the ids that the server rejects. A result keeps the id of its call.
pub(super) fn with_valid_ids<'m>(
    mut messages: Cow<'m, [Arc<Message>]>,
    model: &str,
    form: BodyForm,
) -> Cow<'m, [Arc<Message>]> {
    let rule =
        if form.fallbacks.has(BodyFallback::PortableIds) { IdRule::Nine } else { id_rule(model, form) };
    for number in 0..messages.len() {
        let Some(message) = messages.get(number) else { break };
        let is_valid = match &**message {
            Message::Assistant { tool_calls, .. } => tool_calls.iter().all(|call| rule.accepts(&call.id)),
            Message::Tool { tool_call_id, .. } => rule.accepts(tool_call_id),
            Message::System { .. } | Message::User { .. } => true,
        };
        if is_valid {
            continue;
        }
        let mut changed = Message::clone(message);
        match &mut changed {
            Message::Assistant { tool_calls, received, .. } => {
                for call in tool_calls {
                    let valid = rule.apply(&call.id);
                    if let Some(received) = received.as_mut().map(Arc::make_mut)
                        && let Some(members) = received.parts.calls.remove(&call.id)
                    {
                        received.parts.calls.insert(valid.clone(), members);
                    }
                    call.id = valid;
                }
            }
            Message::Tool { tool_call_id, .. } => *tool_call_id = rule.apply(tool_call_id),
            Message::System { .. } | Message::User { .. } => {}
        }
        if let Some(message) = messages.to_mut().get_mut(number) {
            *message = Arc::new(changed);
        }
    }
    messages
}

fn id_rule(model: &str, form: BodyForm) -> IdRule {
    match (form.server.dialect.call_ids(model), form.effective_api()) {
        (Some(CallIds::FortyBytes), Api::Responses) => IdRule::AtMost(64),
        (Some(CallIds::FortyBytes), Api::ChatCompletions | Api::Messages) => IdRule::AtMost(40),
        (Some(CallIds::Name), _) => IdRule::Name,
        (Some(CallIds::NineLetters), _) => IdRule::Nine,
        (None, _) => IdRule::Any,
    }
}

impl IdRule {
    fn accepts(self, id: &str) -> bool {
        match self {
            Self::Any => true,
            Self::AtMost(limit) => id.len() <= limit,
            Self::Name => {
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
                (1..=64).contains(&id.len()) && id.bytes().all(is_name)
            }
            Self::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        }
    }

    /// Returns the id, or a valid one that depends only on it.
    fn apply(self, id: &str) -> String {
        if self.accepts(id) {
            return id.to_owned();
        }
        portable_id(fnv1a(id.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{request, sent};
    use super::*;
    use crate::ChatRequest;

    #[test]
    fn an_id_is_replaced_only_if_it_breaks_the_rule_of_the_model() {
        let [long, name, longer_name] = [41, 64, 65].map(|length| "x".repeat(length));
        for (model, id, is_kept) in [
            ("kimi-k2", "functions.bash:0", true),
            ("kimi-k2", &long, true),
            ("mistral-large", "call_1", false),
            ("mistral-large", "abcDEF123", true),
            ("claude-opus", "functions.bash:0", false),
            ("claude-opus", "toolu_01-A", true),
            ("claude-opus", &name, true),
            ("claude-opus", &longer_name, false),
            ("gpt-5.5", &long[1..], true),
            ("gpt-5.5", &long, false),
            ("gpt-5.5", "functions.bash:0", true),
            ("openai/gpt-oss-20b", &long, true),
        ] {
            let request = ChatRequest { model: model.to_owned(), ..request(model, id) };
            let messages = sent(&request);
            let call = &messages[1]["tool_calls"][0];
            assert_eq!(call["id"], messages[2]["tool_call_id"], "{model}: {id}");
            assert_eq!(call["id"] == id, is_kept, "{model}: {id}");
            assert_eq!(call["extra_content"], 1, "{model}: {id}");
            assert!(id_rule(model, BodyForm::default()).accepts(call["id"].as_str().unwrap()));
        }
    }
}
