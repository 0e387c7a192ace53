//! Recognises text at the end of a reply that begins like a call although no family's form can read it: a marker named
//! after calls, the name of a tool, and the end of a call.
//!
//! A marker is a control token (`<|tool_call_begin|>`, `[TOOL_CALLS]`) or a tag (`<x:function_call>`, `<invoke name="`).

/// Maximum length of a marker, in bytes.
pub(super) const MAX_MARK: usize = 128;

/// Words in the name of a marker that mean a call by themselves, and those that mean one after `tool` or `function`.
const CALLS: [&str; 6] = ["toolcall", "toolcalls", "functioncall", "functioncalls", "invoke", "dsml"];
const CALL: [&str; 4] = ["call", "calls", "request", "use"];
const TOOL: [&str; 4] = ["tool", "tools", "function", "functions"];

/// Words in the name of a marker that does not begin a call.
const OTHER: [&str; 8] = ["end", "close", "result", "results", "response", "output", "error", "example"];

/// Dots after an opening mark, which stand for omitted text, and the start of a variable: the form is being explained.
const OMITTED: [&str; 9] = ["{..", "{…", "[..", "[…", "(..", "(…", ">..", ">…", "\"$"];

/// Whether a text begins with a marker that is named after calls.
pub(super) fn begins_with_marker(text: &str) -> bool {
    marker_end(text).is_some()
}

/// Returns the end of the marker at the start of `text`.
fn marker_end(text: &str) -> Option<usize> {
    let close = match text.chars().next()? {
        '<' => '>',
        '[' => ']',
        _ => return None,
    };
    let end = text.find([close, '{', '\n']).filter(|end| *end <= MAX_MARK)?;
    // A tag has the name of the tool after its own name.
    let name = text.get(1..end)?.split_once([' ', '=']).map_or(text.get(1..end)?, |(name, _)| name);
    let inner = if name.is_empty() || name.contains(['|', '｜']) { text.get(1..end)? } else { name };
    let is_upper = close == '>' || !inner.contains(|ch: char| ch.is_lowercase());
    let words = inner.split(|ch: char| !ch.is_alphanumeric()).map(str::to_lowercase).collect::<Vec<_>>();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let is_call = has(&CALLS) || (has(&TOOL) && (has(&CALL) || text.get(1..end)?.contains('=')));
    (is_call && !has(&OTHER) && is_upper && !inner.starts_with('/')).then_some(end + 1)
}

/// Marks of the arguments of a call.
const ARGUMENTS: [&str; 4] = ["<param", "<arg", "\"arguments\"", "\"parameters\""];

/// Returns the name of the tool that a text at the end of a reply seems to call, and the text after it. The name is empty
/// if the text has arguments and no name of a tool.
pub(crate) fn suspected_call(text: &str, is_tool: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let is_omitted = OMITTED.iter().any(|dots| text.contains(dots));
    let start = marker_end(text)?;
    // The marker may contain the name.
    let mut ends = text.split_inclusive(|ch: char| !is_of_name(ch)).scan(0, |at, word| {
        *at += word.len();
        Some((*at - word.len(), word.trim_end_matches(|ch: char| !is_of_name(ch))))
    });
    let named = ends.find(|(_, word)| is_tool(word));
    let has_arguments = || ARGUMENTS.iter().any(|mark| text.contains(mark));
    let (at, name) = named.or_else(|| has_arguments().then_some((start, "")))?;
    let end = at + name.len();
    let rest = text.get(end..)?;
    let is_call = if rest.trim().is_empty() {
        // The reply may end in the name, which then follows the marker.
        text.get(start..end).is_some_and(|between| between.trim() == name)
    } else {
        ends_like_call(text)
    };
    (is_call && !is_omitted).then_some((name, rest))
}

/// Whether a character may be a part of a name.
pub(super) fn is_of_name(ch: char) -> bool {
    ch.is_alphanumeric() || matches!(ch, '_' | '-')
}

/// Whether the last character of a text may be the last one of a call.
pub(crate) fn ends_like_call(text: &str) -> bool {
    text.trim_end().ends_with(['}', '>', ']', ')', '"', '\'', '`'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_ends_like_a_call_of_a_tool_is_recognised() {
        for text in [
            "<x:tool_call>{\"name\": \"f\"}</x:tool_call>",
            "<|tool_call_start|>\n{ 'name': 'f' }",
            "<function_calls>\n[f(a=1)]",
            "<｜｜DSML｜｜invoke name=\"f\">{}",
            "<tool_call>\n<functio name=\"f\">",
            "<x:tool_call>\ninvoke name=\"f\">\n</x:tool_call>",
            "< | DSML | invoke name=\"f\">{}",
            "<|tool_calls|>f{}",
            "[TOOL_CALL]f(a)",
            "[TOOL_CALLS]f",
            "<invoke name=\"f\">\n{\"a\": 1}\n</invoke>",
            "<function=f>\n<x>1</x>\n</function>",
            "<tool_call>\n<function=>\n<parameter=a>\n1\n</parameter>",
        ] {
            assert!(suspected_call(text, |name| name == "f").is_some(), "{text}");
        }
        for text in [
            "<tool_call> is the tag of f",
            "<tool_call>f, it is.",
            "<tool_call>{...}</tool_call> of f()",
            "<tool_call>\n<tool_response>\n",
            "<tool_call>g</tool_call>",
            "<|im_end|>f{}",
            "<div>f</div>",
            "<function>f()</function>",
            "[x]f()",
            "</tool_call>{f}",
            "<|tool_response|>{\"f\": 1}",
        ] {
            assert_eq!(suspected_call(text, |name| name == "f"), None, "{text}");
        }
    }
}
