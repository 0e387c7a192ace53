//! Finish reasons: what the values that servers send mean.
//!
//! Sources: the references of the APIs, and <https://ai.google.dev/api/generate-content#FinishReason>. Gemini's
//! compatible API sends its own names, alone or after a category, as in `content_filter: SAFETY` and
//! `function_call_filter: MALFORMED_FUNCTION_CALL`. 2026-11.

use deftool_lang::text::one_line;

/// Maximum length of a reported value, in characters.
const MAX_SHOWN: usize = 64;

/// Maximum length of a reported explanation, in characters.
const MAX_DETAIL: usize = 500;

/// The meaning of a finish reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinishMeaning {
    /// The model finished.
    Finished,
    /// The model called tools.
    Called,
    /// The server paused the reply, and continues it when it gets it back.
    Paused,
    /// A limit was reached.
    CutShort,
    /// A filter ended the reply, or the model refused.
    Filtered,
    /// The server failed. The reply is not complete.
    Failed,
}

/// The known values in lower case, and the servers that send them if it is not all of them.
const VALUES: &[(FinishMeaning, &[&str])] = {
    use FinishMeaning::{Called, CutShort, Failed, Filtered, Finished, Paused};
    &[
        (Finished, &["stop", "stop_sequence", "end_turn", "completed"]),
        // Together and TGI; Cohere.
        (Finished, &["eos", "eos_token", "complete"]),
        (Called, &["tool_calls", "function_call", "tool_call", "tool_use"]),
        // Anthropic, during calls of its own tools.
        (Paused, &["pause_turn"]),
        (CutShort, &["length", "max_tokens", "max_output_tokens"]),
        // Mistral; GLM, Anthropic and Bedrock.
        (CutShort, &["model_length", "model_context_window_exceeded"]),
        (Filtered, &["content_filter", "refusal"]),
        // GLM; Bedrock; Cohere.
        (Filtered, &["sensitive", "content_filtered", "guardrail_intervened", "error_toxic"]),
        // Gemini.
        (Filtered, &["safety", "recitation", "language", "blocklist", "prohibited_content", "spii"]),
        (Filtered, &["image_safety", "image_prohibited_content", "image_recitation"]),
        (Failed, &["error"]),
        // GLM; DeepSeek; vLLM and SGLang.
        (Failed, &["network_error", "insufficient_system_resource", "abort", "repetition"]),
        // Gemini.
        (Failed, &["malformed_function_call", "unexpected_tool_call", "too_many_tool_calls"]),
        (Failed, &["missing_thought_signature", "malformed_response", "other"]),
        // Bedrock.
        (Failed, &["malformed_model_output", "malformed_tool_use"]),
    ]
};

/// Returns the meaning of a finish reason, or `None` if it is unknown.
pub(crate) fn finish_meaning(reason: &str) -> Option<FinishMeaning> {
    let is_known = |part: &str| {
        let known = VALUES.iter().find(|(_, names)| names.iter().any(|name| part.eq_ignore_ascii_case(name)));
        known.map(|(meaning, _)| *meaning)
    };
    reason.split(':').map(str::trim).find_map(is_known)
}

/// Returns a finish reason for a message.
pub(crate) fn shown_finish_reason(reason: &str) -> String {
    one_line(reason.chars().take(MAX_SHOWN).collect())
}

/// Returns the explanation of a finish reason for a message.
pub(crate) fn shown_finish_detail(detail: &str) -> String {
    one_line(detail.chars().take(MAX_DETAIL).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_value_has_one_meaning() {
        let names: Vec<&str> = VALUES.iter().flat_map(|(_, names)| *names).copied().collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert!(
            names.iter().all(|name| !name.contains(|char: char| char == ':' || char.is_ascii_uppercase()))
        );
    }

    #[test]
    fn values_are_found_in_any_case_and_after_a_category() {
        for (reason, meaning) in [
            ("STOP", Some(FinishMeaning::Finished)),
            ("MAX_TOKENS", Some(FinishMeaning::CutShort)),
            ("content_filter: SAFETY", Some(FinishMeaning::Filtered)),
            ("function_call_filter: MALFORMED_FUNCTION_CALL", Some(FinishMeaning::Failed)),
            ("", None),
            ("stopped", None),
        ] {
            assert_eq!(finish_meaning(reason), meaning, "{reason}");
        }
    }
}
