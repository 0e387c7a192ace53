//! Prompts that a server cut off without a word.
//!
//! Ollama drops the oldest part of a conversation that does not fit, the tools and the system message as it may be,
//! and answers as if nothing were missing (ollama/ollama#18107). The token counts give it away: a prompt that fills
//! its context to the brim, or one whose bytes cannot have fitted.

use serde_json::Value;

use super::dialect::{Capabilities, Feature};
use super::event::Usage;

/// No tokenizer makes fewer tokens of ordinary text and JSON: four bytes a token are usual.
const MOST_BYTES_PER_TOKEN: u64 = 8;

/// A warning where the server cut `sent` to fit its context.
pub fn silently_cut(server: Capabilities, sent: &Value, usage: Usage) -> Option<String> {
    let context = server.context?;
    if !server.lacks(Feature::OverflowRefusal) {
        return None;
    }
    // `input` is the conversation of the Responses API.
    let part = |name: &str| sent.get(name).map_or(0, |part| part.to_string().len() as u64);
    let least = (part("messages") + part("input") + part("tools")) / MOST_BYTES_PER_TOKEN;
    let Usage { prompt_tokens, completion_tokens: _ } = usage;
    (prompt_tokens.saturating_add(1) >= context || least > context).then(|| {
        format!(
            "the prompt does not fit the context of {context} tokens, and the server cuts off its oldest part without a word \
             ({prompt_tokens} tokens were read); enlarge the context (Ollama: num_ctx) or shorten the conversation"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Dialect;
    use serde_json::json;

    #[test]
    fn only_a_server_that_cuts_is_suspected() {
        let usage = |prompt_tokens| Usage { prompt_tokens, completion_tokens: 5 };
        let of = |dialect, context| Capabilities { context, ..Capabilities::of(dialect) };
        let short = json!({"messages": [{"role": "user", "content": "hello"}]});
        let long = json!({"messages": [{"role": "user", "content": "word ".repeat(10_000)}]});
        let ollama = of(Dialect::Ollama, Some(4096));
        assert_eq!(silently_cut(ollama, &short, usage(20)), None);
        assert!(silently_cut(ollama, &short, usage(4095)).unwrap().contains("4096 tokens"));
        assert!(silently_cut(ollama, &long, usage(2100)).is_some());
        assert!(silently_cut(ollama, &short, usage(u64::MAX)).is_some());
        let over_responses = json!({"input": long["messages"]});
        assert!(silently_cut(ollama, &over_responses, usage(2100)).is_some());
        assert_eq!(silently_cut(of(Dialect::Ollama, None), &long, usage(2100)), None);
        assert_eq!(silently_cut(of(Dialect::LlamaCpp, Some(4096)), &long, usage(4096)), None);
    }
}
