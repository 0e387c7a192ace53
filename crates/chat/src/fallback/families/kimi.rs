//! `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`, in a section of such calls:
//! Kimi K2. The name has a prefix and the call's number. The marks of the section are also written in the singular.
//!
//! Source: the tool call guide of moonshotai/Kimi-K2-Instruct.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static KIMI: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|tool_call_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[
                (Token::Literal("<|tool_calls_section_begin|>"), CALL_OPEN),
                (Token::Literal("<|tool_call_section_begin|>"), CALL_OPEN),
                (Token::Literal("<|tool_call_begin|>"), NAME),
            ],
        ),
        CALL_OPEN = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<|tool_call_begin|>"), NAME)]),
        NAME = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Word(Capture::Name), ARGUMENTS_OPEN)]),
        ARGUMENTS_OPEN = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Literal("<|tool_call_argument_begin|>"), ARGUMENTS)]
        ),
        ARGUMENTS =
            Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Object(Capture::Arguments), CALL_CLOSE)]),
        CALL_CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[
                (Token::Literal("<|tool_call_end|>"), CLOSE),
                (Token::Literal("<|tool_calls_section_end|>"), DONE),
                (Token::Literal("<|tool_call_section_end|>"), DONE),
            ],
        ),
        CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Complete,
            &[
                (Token::Literal("<|tool_calls_section_end|>"), DONE),
                (Token::Literal("<|tool_call_section_end|>"), DONE),
            ],
        ),
    ],
};
