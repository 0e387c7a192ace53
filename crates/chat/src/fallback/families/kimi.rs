//! `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`, in a section of such calls:
//! Kimi K2. The name has a prefix and the call's number. The marks of the section are also written in the singular.
//!
//! Source: the tool call guide of moonshotai/Kimi-K2-Instruct.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token};

pub(super) static KIMI: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &["<|tool_call_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
    steps: &[
        Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[
                (Token::Literal("<|tool_calls_section_begin|>"), 1),
                (Token::Literal("<|tool_call_section_begin|>"), 1),
                (Token::Literal("<|tool_call_begin|>"), 2),
            ],
        ),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<|tool_call_begin|>"), 2)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Word(Capture::Name), 3)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<|tool_call_argument_begin|>"), 4)]),
        Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Object(Capture::Arguments), 5)]),
        Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[
                (Token::Literal("<|tool_call_end|>"), 6),
                (Token::Literal("<|tool_calls_section_end|>"), DONE),
                (Token::Literal("<|tool_call_section_end|>"), DONE),
            ],
        ),
        Step::new(
            Gap::Any,
            OnMismatch::Complete,
            &[
                (Token::Literal("<|tool_calls_section_end|>"), DONE),
                (Token::Literal("<|tool_call_section_end|>"), DONE),
            ],
        ),
    ],
};
