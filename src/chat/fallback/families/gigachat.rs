//! `function call<|role_sep|>` on a line of its own, then a call as JSON: `GigaChat` 3. What 3.1 writes, `<|function_call|>`, is read
//! as Granite's.
//!
//! Source: the chat templates of ai-sage/GigaChat3-10B-A1.8B and 3.1, November 2026.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static GIGACHAT_3: Form = Form {
    marked: true,
    at: Place::Line,
    closes: &[],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("function call<|role_sep|>"), 1)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Object), 2)]),
        Step::new(
            Gap::Line,
            Rest::Whole,
            &[(Token::Mark("</s>"), DONE), (Token::Mark("<|message_sep|>"), DONE)],
        ),
    ],
};
