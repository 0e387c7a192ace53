//! `<|tool_calls|><|tool_call:begin|>id<|tool_call:name|>name<|tool_call:args|>{…}<|tool_call:end|>`: Solar Open.
//!
//! Source: the chat template of upstage/Solar-Open-100B, November 2026.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static SOLAR: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|tool_call:end|>", "<|calls|>"],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[(Token::Literal("<|tool_calls|>"), CALL_OPEN), (Token::Literal("<|tool_call:begin|>"), ID)],
        ),
        CALL_OPEN = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<|tool_call:begin|>"), ID)]),
        ID = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[(Token::Literal("<|tool_call:name|>"), NAME), (Token::Word(Capture::Nothing), NAME_OPEN),],
        ),
        NAME_OPEN = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal("<|tool_call:name|>"), NAME)]),
        NAME = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Word(Capture::Name), ARGUMENTS_OPEN)]),
        ARGUMENTS_OPEN =
            Step::new(Gap::Line, OnMismatch::Malformed, &[(Token::Literal("<|tool_call:args|>"), ARGUMENTS)]),
        ARGUMENTS =
            Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Object(Capture::Arguments), CALL_CLOSE)]),
        CALL_CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[(Token::Literal("<|tool_call:end|>"), CLOSE), (Token::Literal("<|calls|>"), DONE)],
        ),
        CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Complete,
            &[(Token::Literal("<|calls|>"), DONE), (Token::Literal("<|tool_call:begin|>"), ID)],
        ),
    ],
};
