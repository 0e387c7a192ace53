//! `<tool_call>name`, then for each argument `<arg_key>k</arg_key><arg_value>v</arg_value>`, then `</tool_call>`:
//! GLM-4.5 and later. Values that are no strings are JSON.
//!
//! Source: the chat template of zai-org/GLM-4.5.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Rest, Step, Token};

pub(super) static GLM: Form = Form {
    marked: true,
    line_start: false,
    closes: &["</tool_call>"],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("<tool_call>"), 1)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Word(Capture::Name), 2)]),
        Step::new(
            Gap::Any,
            Rest::Prose,
            &[(Token::Mark("<arg_key>"), 3), (Token::Mark("</tool_call>"), DONE)],
        ),
        Step::new(Gap::None, Rest::Inside, &[(Token::Raw(Capture::Key, "</arg_key>", None), 4)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Mark("<arg_value>"), 5)]),
        Step::new(Gap::None, Rest::Inside, &[(Token::Raw(Capture::Value, "</arg_value>", Some('<')), 6)]),
        Step::new(
            Gap::Any,
            Rest::Inside,
            &[(Token::Mark("<arg_key>"), 3), (Token::Mark("</tool_call>"), DONE)],
        ),
    ],
};
