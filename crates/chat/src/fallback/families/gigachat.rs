//! `function call<|role_sep|>` on its own line, then a call as JSON: `GigaChat` 3. Version 3.1 writes
//! `<|function_call|>`, which is read as Granite's form.
//!
//! Source: the chat templates of ai-sage/GigaChat3-10B-A1.8B and 3.1, November 2026.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static GIGACHAT_3: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &[],
    steps: steps![
        OPEN =
            Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("function call<|role_sep|>"), OBJECT)]),
        OBJECT = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Object), CLOSE)]),
        CLOSE = Step::new(
            Gap::Line,
            OnMismatch::Complete,
            &[(Token::Literal("</s>"), DONE), (Token::Literal("<|message_sep|>"), DONE)],
        ),
    ],
};
