//! DeepSeek's marks around `<steptml:invoke name="…">` with a tag for each argument: Step 3. Step 3.5 writes
//! Qwen3-Coder's form.
//!
//! Source: the chat template of stepfun-ai/step3 and `SGLang`'s parser for it, November 2026.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static STEP_3: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
    steps: steps! {
        OPEN       None Prose     ["<｜tool▁calls▁begin｜>" => CALL_OPEN, "<｜tool▁call▁begin｜>" => TYPE]
        CALL_OPEN  Any  Prose     ["<｜tool▁call▁begin｜>" => TYPE]
        TYPE       Any  Prose     [Word(Nothing) => SEPARATOR]
        SEPARATOR  Any  Prose     ["<｜tool▁sep｜>" => INVOKE]
        INVOKE     Any  Prose     ["<steptml:invoke name=\"" => NAME]
        NAME       None Prose     [Word(Name) => NAME_END]
        NAME_END   None Prose     ["\">" => PARAMETER]
        PARAMETER  Any  Malformed ["<steptml:parameter name=\"" => KEY, "</steptml:invoke>" => CALL_CLOSE]
        KEY        None Malformed [Word(Key) => KEY_END]
        KEY_END    None Malformed ["\">" => VALUE]
        VALUE      None Malformed [Element(
            "<steptml:parameter name=\"" until "</steptml:parameter>"
            inside ["<steptml:invoke name=\""]
            or "\n<steptml:parameter name=\"" => KEY, "</steptml:invoke>" => CALL_CLOSE
        ) => PARAMETER]
        CALL_CLOSE Any  Unclosed  ["<｜tool▁call▁end｜>" => CLOSE, "<｜tool▁calls▁end｜>" => DONE]
        CLOSE      Any  Complete  ["<｜tool▁calls▁end｜>" => DONE]
    },
};
