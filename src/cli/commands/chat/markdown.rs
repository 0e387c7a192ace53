//! Exports a conversation as Markdown.

use std::fmt::Write;

use deftool_chat::{Message, MessageToolCall};
use deftool_record::session::Session;

/// Maximum length of a printed result, in characters. The session file has the full results.
const MAX_RESULT: usize = 4_000;

/// Returns the session as Markdown.
pub(super) fn markdown(session: &Session, title: &str) -> String {
    let mut text = format!("# {}\n", title.replace('\n', " "));
    if let Some(system) = &session.system {
        let _ = write!(text, "\n## System\n\n{}\n", system.trim());
    }
    for message in &session.messages {
        match message {
            Message::System { content } => {
                let _ = write!(text, "\n## System\n\n{}\n", content.trim());
            }
            Message::User { content, .. } => {
                let _ = write!(text, "\n## User\n\n{}\n", content.trim());
            }
            Message::Assistant { content, tool_calls, .. } => {
                text.push_str("\n## Assistant\n");
                if !content.trim().is_empty() {
                    let _ = write!(text, "\n{}\n", content.trim());
                }
                for MessageToolCall { function, .. } in tool_calls {
                    let _ = write!(text, "\nCalls `{}`:\n", function.name);
                    fenced(&mut text, &function.arguments);
                }
            }
            Message::Tool { content, .. } => {
                text.push_str("\nResult:\n");
                fenced(&mut text, content);
            }
        }
    }
    text
}

/// Writes JSON in a code block. The fence is longer than all backtick runs in the JSON.
fn fenced(text: &mut String, json: &str) {
    let pretty = serde_json::from_str::<serde_json::Value>(json).ok();
    let pretty =
        pretty.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| json.to_owned());
    let mut longest = 0;
    let mut run = 0;
    for c in pretty.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    let length = pretty.chars().count();
    let shown: String = pretty.chars().take(MAX_RESULT).collect();
    let _ = write!(text, "\n{fence}json\n{shown}\n{fence}\n");
    if length > MAX_RESULT {
        let _ = write!(text, "\n({} more characters)\n", length - MAX_RESULT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_truncated_and_fences_are_long_enough() {
        let call = MessageToolCall::new("aaaaaaaaa", "look", r#"{"at":"```"}"#);
        let session = Session {
            messages: vec![
                Message::user("Look."),
                Message::Assistant { content: String::from("I do."), tool_calls: vec![call], received: None },
                Message::tool("aaaaaaaaa", "x".repeat(5_000)),
            ],
            system: Some(String::from("Be brief.")),
            ..Session::default()
        };
        let text = markdown(&session, "Chat");
        let begins = "# Chat\n\n## System\n\nBe brief.\n\n## User\n\nLook.\n\n## Assistant\n\nI do.\n\nCalls `look`:\n\n\
                      ````json\n{\n  \"at\": \"```\"\n}\n````\n\nResult:\n\n```json\nxxx";
        assert!(text.starts_with(begins), "{text}");
        assert!(text.ends_with("\n```\n\n(1000 more characters)\n"));
    }
}
