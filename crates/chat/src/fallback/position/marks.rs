//! Reads the marks of chat templates in a text: of reasoning, and of messages with their roles.

use serde::{Deserialize, Serialize};

/// Maximum length of a mark, and of the word after it, in bytes.
const MAX_MARK: usize = 64;

/// The meaning of a mark for the text that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Reasoning begins, in marks of this pair.
    Think(usize),
    /// Reasoning in marks of this pair ends, even if there was no opening mark.
    EndThink(usize),
    /// A message in the analysis channel of the harmony format begins: reasoning.
    Analysis,
    /// A message of the model begins or ends in the harmony format.
    Message,
    /// The message of another role begins, or the result of a tool.
    OtherRole,
    /// Another control token.
    Token,
}

/// The marks around reasoning, grouped by the models that write them.
const REASONING: [(&str, &str); 16] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<seed:think>", "</seed:think>"),
    // Hunyuan 3, MiniMax M3, Kimi K3.
    ("<think:opensource>", "</think:opensource>"),
    ("<mm:think>", "</mm:think>"),
    ("<|open|>think", "<|close|>think"),
    // Magistral.
    ("[THINK]", "[/THINK]"),
    // Command A.
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    // Apertus, OpenThinker, Kimi-VL, MedGemma.
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("◁think▷", "◁/think▷"),
    ("<unused94>", "<unused95>"),
    // Gemma 4.
    ("<|channel>thought", "<channel|>"),
];

/// Other marks with a fixed text: of gpt-oss, and of templates whose tokens have no bars.
const OTHER: [(&str, Mark); 14] = [
    ("<|channel|>analysis", Mark::Analysis),
    ("<|end|>", Mark::Message),
    ("<|start|>assistant", Mark::Message),
    ("<|return|>", Mark::Message),
    ("<|call|>", Mark::Message),
    ("[INST]", Mark::OtherRole),
    ("[SYSTEM_PROMPT]", Mark::OtherRole),
    ("[TOOL_RESULTS]", Mark::OtherRole),
    ("<s>", Mark::Token),
    ("</s>", Mark::Token),
    ("<bos>", Mark::Token),
    ("<eos>", Mark::Token),
    ("<end_of_turn>", Mark::Token),
    ("<turn|>", Mark::Token),
];

/// Names of the model's role in chat templates. The name may be missing.
const OWN_ROLES: [&str; 6] = ["", "assistant", "model", "ai", "bot", "agent"];

/// Names of other roles, and of the results of tools, in marks.
const OTHER_ROLES: [&str; 15] = [
    "user",
    "human",
    "system",
    "developer",
    "tool",
    "observation",
    "ipython",
    "environment",
    "tool response",
    "tool result",
    "tool results",
    "tool output",
    "tool outputs",
    "function response",
    "function results",
];

/// Returns the meaning of `mark` with the word after it. `None`: not a mark of a template.
fn meaning(mark: &str, word: &str) -> Option<Mark> {
    let is_it = |known: &str| known.strip_prefix(mark).is_some_and(|rest| rest == word);
    let reasoning = REASONING.iter().enumerate().find_map(|(pair, (open, close))| {
        let closes = || is_it(close).then_some(Mark::EndThink(pair));
        if is_it(open) { Some(Mark::Think(pair)) } else { closes() }
    });
    let fixed = || OTHER.iter().find(|(known, _)| is_it(known)).map(|(_, mark)| *mark);
    reasoning.or_else(fixed).or_else(|| {
        let name = name_of(mark);
        if OTHER_ROLES.contains(&name.as_str()) {
            return Some(Mark::OtherRole);
        }
        if takes_role(mark) && !OWN_ROLES.contains(&word.to_ascii_lowercase().as_str()) {
            return Some(Mark::OtherRole);
        }
        is_token(mark).then_some(Mark::Token)
    })
}

/// Whether a mark is a control token of a tokenizer: `<|…|>`, `<｜…｜>`.
fn is_token(mark: &str) -> bool {
    let bars = ['|', '｜'];
    mark.strip_prefix('<').is_some_and(|rest| rest.starts_with(bars))
        && mark.strip_suffix('>').is_some_and(|rest| rest.ends_with(bars))
}

/// Whether the name of a role follows a mark: `<|im_start|>`, `<start_of_turn>`, `<|start_header_id|>`.
fn takes_role(mark: &str) -> bool {
    let begins = |word: &str| matches!(word, "start" | "begin" | "turn" | "header" | "role");
    let is_part = |word: &str| begins(word) || matches!(word, "im" | "of" | "id");
    let words = words_of(mark);
    !mark.starts_with("</") && words.iter().any(|word| begins(word)) && words.iter().all(|word| is_part(word))
}

/// Whether a word after a mark is part of it.
fn takes_word(mark: &str) -> bool {
    matches!(mark, "<|channel|>" | "<|channel>" | "<|open|>" | "<|close|>") || takes_role(mark)
}

/// Returns the name of a mark without the words that templates add to roles: `<|im_user|>`, `<|USER_TOKEN|>`.
fn name_of(mark: &str) -> String {
    let is_closing = mark.starts_with("</") || mark.starts_with("<|/");
    let words = if is_closing { Vec::new() } else { words_of(mark) };
    let is_added = |word: &String| matches!(word.as_str(), "im" | "token" | "start" | "begin");
    words.into_iter().filter(|word| !is_added(word)).collect::<Vec<_>>().join(" ")
}

fn words_of(mark: &str) -> Vec<String> {
    let words = mark.split(|ch: char| !ch.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect()
}

/// A streaming reader of marks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MarkReader {
    /// The part of a mark read so far.
    mark: String,
    /// The part read so far of the word after the mark.
    word: Option<String>,
}

impl MarkReader {
    /// Whether the reader is outside a mark.
    pub(super) fn is_idle(&self) -> bool {
        self.mark.is_empty()
    }

    /// Reads one character. Returns the mark that ends with it, or that ended before it: then it is not part of the
    /// mark.
    pub(super) fn push(&mut self, ch: char) -> Option<(Mark, Ends)> {
        if let Some(word) = &mut self.word {
            if (ch.is_alphanumeric() || ch == '_') && word.len() < MAX_MARK {
                word.push(ch);
                return None;
            }
            let found = meaning(&self.mark, word);
            self.mark.clear();
            self.word = None;
            self.begin(ch);
            return found.map(|mark| (mark, Ends::Before));
        }
        if self.mark.is_empty() || begins_mark(ch) {
            self.begin(ch);
            return None;
        }
        self.mark.push(ch);
        if matches!(ch, '>' | ']' | '▷') {
            if takes_word(&self.mark) {
                self.word = Some(String::new());
                return None;
            }
            let found = meaning(&self.mark, "");
            self.mark.clear();
            return found.map(|mark| (mark, Ends::With));
        }
        if ch == '\n' || self.mark.len() > MAX_MARK {
            self.mark.clear();
        }
        None
    }

    fn begin(&mut self, ch: char) {
        self.mark.clear();
        if begins_mark(ch) {
            self.mark.push(ch);
        }
    }
}

/// Whether a mark may begin with `ch`.
pub(super) fn begins_mark(ch: char) -> bool {
    matches!(ch, '<' | '[' | '◁')
}

/// Whether the last character that was read is part of the mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    With,
    Before,
}

/// Returns the mark at the start of `text` and its length in bytes.
pub(super) fn mark_at(text: &str) -> Option<(Mark, usize)> {
    let mut reader = MarkReader::default();
    for (at, ch) in text.char_indices() {
        match reader.push(ch) {
            Some((mark, Ends::With)) => return Some((mark, at + ch.len_utf8())),
            Some((mark, Ends::Before)) => return Some((mark, at)),
            None if reader.is_idle() => return None,
            None => {}
        }
    }
    let word = reader.word?;
    meaning(&reader.mark, &word).map(|mark| (mark, text.len()))
}

/// Whether a text may contain reasoning: marks, or the name of a channel whose marks the server removed.
pub(in crate::fallback) fn may_contain_reasoning(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), b"analysis").is_some()
        // The last byte begins `◁`.
        || memchr::memchr3(b'<', b'[', 0xe2, text.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_templates_are_read() {
        for (text, mark) in [
            ("<think>", Mark::Think(0)),
            ("[/THINK]", Mark::EndThink(9)),
            ("<|channel>thought\n", Mark::Think(15)),
            ("<|channel|>analysis<|message|>", Mark::Analysis),
            ("<|channel|>commentary to=", Mark::Token),
            ("<|start|>assistant<|channel|>", Mark::Message),
            ("<|start|>functions.look to=assistant", Mark::OtherRole),
            ("<|im_start|>user\n", Mark::OtherRole),
            ("<|im_start|>assistant\n", Mark::Token),
            ("<|im_start|>", Mark::Token),
            ("<|im_end|>", Mark::Token),
            ("<|start_header_id|>ipython<|end_header_id|>", Mark::OtherRole),
            ("<start_of_turn>user", Mark::OtherRole),
            ("<｜User｜>", Mark::OtherRole),
            ("<｜Assistant｜>", Mark::Token),
            ("<|USER_TOKEN|>", Mark::OtherRole),
            ("<tool_response>", Mark::OtherRole),
            ("<|tool_response>", Mark::OtherRole),
            ("<|observation|>", Mark::OtherRole),
            ("[INST]", Mark::OtherRole),
            ("</s>", Mark::Token),
        ] {
            assert_eq!(mark_at(text).map(|(mark, _)| mark), Some(mark), "{text}");
        }
        for text in
            ["<tool_call>", "[TOOL_CALLS]", "<b>", "</tool_response>", "<a\n|>", "a<think>", "[x]", ""]
        {
            assert_eq!(mark_at(text), None, "{text}");
        }
    }
}
