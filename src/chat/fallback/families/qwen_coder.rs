//! `<tool_call><function=name><parameter=key>value`, each closed: Qwen3-Coder, and Step and
//! Nemotron 3 after it; Seed-OSS with `<seed:tool_call>` around it.
//!
//! The model often leaves out the first tag (it stands in the prompt), sometimes the last. Values are text, each on
//! lines of its own.
//!
//! Source: the chat template of Qwen/Qwen3-Coder-30B-A3B-Instruct.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static QWEN3_CODER: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["</function>", "</tool_call>", "</seed:tool_call>"],
    steps: &[
        Step::new(
            Gap::None,
            Rest::Prose,
            &[
                (Token::Mark("<tool_call>"), 1),
                (Token::Mark("<seed:tool_call>"), 1),
                (Token::Mark("<function="), 2),
            ],
        ),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("<function="), 2)]),
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 3)]),
        Step::new(Gap::Line, Rest::Prose, &[(Token::Mark(">"), 4)]),
        Step::new(
            Gap::Any,
            Rest::Prose,
            &[
                (Token::Mark("<parameter="), 5),
                (Token::Mark("</function>"), 9),
                (Token::Mark("</tool_call>"), DONE),
                (Token::Mark("</seed:tool_call>"), DONE),
            ],
        ),
        Step::new(Gap::None, Rest::Inside, &[(Token::Word(Capture::Key), 6)]),
        Step::new(Gap::Line, Rest::Inside, &[(Token::Mark(">"), 7)]),
        Step::new(Gap::None, Rest::Inside, &[(Token::Raw(Capture::Value, "</parameter>", Some('<')), 8)]),
        Step::new(
            Gap::Any,
            Rest::Inside,
            &[
                (Token::Mark("<parameter="), 5),
                (Token::Mark("</function>"), 9),
                (Token::Mark("</tool_call>"), DONE),
                (Token::Mark("</seed:tool_call>"), DONE),
            ],
        ),
        Step::new(
            Gap::Any,
            Rest::Whole,
            &[(Token::Mark("</tool_call>"), DONE), (Token::Mark("</seed:tool_call>"), DONE)],
        ),
    ],
};
