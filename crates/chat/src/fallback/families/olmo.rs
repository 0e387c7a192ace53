//! `<function_calls>`, calls in Python syntax, each on its own line, `</function_calls>`: Olmo 3.
//!
//! Source: the chat template of allenai/Olmo-3-7B-Instruct and vLLM's parser for it, November 2026.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static OLMO_3: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</function_calls>"],
    steps: steps! {
        OPEN  None Prose     ["<function_calls>" => CALL]
        CALL  Any  Prose     [Call => CLOSE]
        CLOSE Any  Unclosed  ["</function_calls>" => DONE, "," => CALL, Call => CLOSE]
    },
};
