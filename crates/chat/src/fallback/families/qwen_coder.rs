//! `<tool_call><function=name><parameter=key>value`, each closed: Qwen3-Coder, Step and
//! Nemotron 3; Seed-OSS with `<seed:tool_call>` around it.
//!
//! The model often omits the first tag, which is in the prompt, and sometimes the last one. Values are text on
//! their own lines.
//!
//! Source: the chat template of Qwen/Qwen3-Coder-30B-A3B-Instruct.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token};

pub(super) static QWEN3_CODER: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &["</function>", "</tool_call>", "</seed:tool_call>"],
    steps: &[
        Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[
                (Token::Literal("<tool_call>"), 1),
                (Token::Literal("<seed:tool_call>"), 1),
                (Token::Literal("<function="), 2),
            ],
        ),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<function="), 2)]),
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), 3)]),
        Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal(">"), 4)]),
        Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[
                (Token::Literal("<parameter="), 5),
                (Token::Literal("</function>"), 9),
                (Token::Literal("</tool_call>"), DONE),
                (Token::Literal("</seed:tool_call>"), DONE),
            ],
        ),
        Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Word(Capture::Key), 6)]),
        Step::new(Gap::Line, OnMismatch::Malformed, &[(Token::Literal(">"), 7)]),
        Step::new(
            Gap::None,
            OnMismatch::Malformed,
            &[(Token::Raw(Capture::Value, "</parameter>", Some('<')), 8)],
        ),
        Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[
                (Token::Literal("<parameter="), 5),
                (Token::Literal("</function>"), 9),
                (Token::Literal("</tool_call>"), DONE),
                (Token::Literal("</seed:tool_call>"), DONE),
            ],
        ),
        Step::new(
            Gap::Any,
            OnMismatch::Complete,
            &[(Token::Literal("</tool_call>"), DONE), (Token::Literal("</seed:tool_call>"), DONE)],
        ),
    ],
};
