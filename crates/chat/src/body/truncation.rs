//! Detection of prompts that a server truncates silently.
//!
//! Ollama drops the oldest part of a conversation that does not fit, including the tools and the system message, and
//! answers without an error (ollama/ollama#18107). The token counts reveal this: the prompt fills the context
//! completely, or has more bytes than the context can hold.

use super::encode::Body;
use crate::dialect::{Capabilities, Feature};
use crate::event::Usage;

/// Upper bound. Four bytes per token are usual for text and JSON.
const MAX_BYTES_PER_TOKEN: u64 = 8;

/// Returns a warning if the server truncated the prompt of `sent`.
pub fn truncation_warning(server: Capabilities, sent: &Body, usage: Usage) -> Option<String> {
    let context = server.context?;
    if !server.lacks(Feature::OverflowRefusal) {
        return None;
    }
    let outside = ["system", "tools"].into_iter().filter_map(|name| sent.get(name));
    let outside: usize = outside.map(|value| value.to_string().len()).sum();
    let least = (sent.conversation_bytes() + outside) as u64 / MAX_BYTES_PER_TOKEN;
    let Usage { prompt_tokens, .. } = usage;
    (prompt_tokens.saturating_add(1) >= context || least > context).then(|| {
        format!(
            "the prompt does not fit the context of {context} tokens; the server silently dropped its oldest part \
             ({prompt_tokens} tokens were read); increase the context (Ollama: `num_ctx`) or shorten the conversation"
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::dialect::Dialect;

    use super::*;
    use crate::{Api, BodyForm, ChatRequest, Message};

    #[test]
    fn only_servers_that_truncate_silently_cause_a_warning() {
        let usage = |prompt_tokens| Usage { prompt_tokens, completion_tokens: 5, ..Usage::default() };
        let of = |dialect, context| Capabilities { context, ..Capabilities::of(dialect) };
        let body = |api, text: &str| {
            let messages = vec![Message::user(text).into()];
            let request = ChatRequest { messages, ..ChatRequest::default() };
            request.encode_body(BodyForm { api, ..BodyForm::default() })
        };
        let (short, words) = (body(Api::ChatCompletions, "hello"), "word ".repeat(10_000));
        let long = body(Api::ChatCompletions, &words);
        let ollama = of(Dialect::named("ollama"), Some(4096));
        assert_eq!(truncation_warning(ollama, &short, usage(20)), None);
        assert!(truncation_warning(ollama, &short, usage(4095)).unwrap().contains("4096 tokens"));
        assert!(truncation_warning(ollama, &long, usage(2100)).is_some());
        assert!(truncation_warning(ollama, &short, usage(u64::MAX)).is_some());
        let over_responses = body(Api::Responses, &words);
        assert!(truncation_warning(ollama, &over_responses, usage(2100)).is_some());
        assert_eq!(truncation_warning(of(Dialect::named("ollama"), None), &long, usage(2100)), None);
        assert_eq!(truncation_warning(of(Dialect::named("llama-cpp"), Some(4096)), &long, usage(4096)), None);
    }
}
