//! `<tool_call><function=name><parameter=key>value`, with a closing tag for each: Qwen3-Coder, Qwen 3.5 to 3.8, Step 3.5
//! and Nemotron 3. Seed-OSS writes `<seed:tool_call>` around it.
//!
//! The model often omits the first tag, which is in the prompt, and sometimes closing tags. Values are text on
//! their own lines.
//!
//! Source: the chat template of Qwen/Qwen3-Coder-30B-A3B-Instruct.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static QWEN3_CODER: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</function>", "</tool_call>", "</seed:tool_call>"],
    steps: steps! {
        OPEN            None Prose     ["<tool_call>" | "<seed:tool_call>" => FUNCTION, "<function=" => NAME]
        FUNCTION        Any  Prose     ["<function=" => NAME]
        NAME            None Prose     [Word(Name) => NAME_END]
        NAME_END        Line Prose     [">" => FIRST_PARAMETER]
        FIRST_PARAMETER Any  Prose     [
            "<parameter=" => KEY, "</function>" => CLOSE, "</tool_call>" | "</seed:tool_call>" => DONE
        ]
        KEY             None Malformed [Word(Key) => KEY_END]
        KEY_END         Line Malformed [">" => VALUE]
        VALUE           None Malformed [Element(
            "<parameter=" until "</parameter>"
            inside ["<function=" "<tool_call>"]
            or "\n<parameter=" => KEY, "</function>" => CLOSE, "</tool_call>" | "</seed:tool_call>" => DONE
        ) => PARAMETER]
        PARAMETER       Any  Malformed [
            "<parameter=" => KEY, "</function>" => CLOSE, "</tool_call>" | "</seed:tool_call>" => DONE
        ]
        CLOSE           Any  Complete  ["</tool_call>" | "</seed:tool_call>" => DONE]
    },
};
