//! `<|python_tag|>`: Llama 3. Calls of built-in tools use Python syntax (`brave_search.call(query="…")`); other calls
//! are JSON objects separated by `;`. Bare JSON objects are unmarked (`plain`).
//!
//! Source: meta-llama/llama-models, the prompt formats of 3.1 to 3.3.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static PYTHON_TAG: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &[],
    steps: steps! {
        OPEN      None Prose     ["<|python_tag|>" => CALL]
        CALL      Any  Prose     [Object(Object) | Call => SEPARATOR]
        SEPARATOR Any  Complete  [";" => NEXT_CALL, "<|eom_id|>" | "<|eot_id|>" => DONE]
        NEXT_CALL Any  Complete  [Object(Object) | Call => SEPARATOR]
    },
};
