//! `function call<|role_sep|>` on its own line, then a call as JSON: `GigaChat` 3. Version 3.1 writes
//! `<|function_call|>`, which is read as Granite's form.
//!
//! Source: the chat templates of ai-sage/GigaChat3-10B-A1.8B and 3.1, November 2026.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static GIGACHAT_3: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &[],
    steps: steps! {
        OPEN   None Prose     ["function call<|role_sep|>" => OBJECT]
        OBJECT Any  Prose     [Object(Object) => CLOSE]
        CLOSE  Line Complete  ["</s>" | "<|message_sep|>" => DONE]
    },
};
