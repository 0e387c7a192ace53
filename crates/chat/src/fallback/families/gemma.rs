//! Gemma. Versions 2 and 3 write a `tool_code` block with calls in Python syntax. FunctionGemma and Gemma 4
//! write `call:name{key:value}` between marks, with strings between `<escape>` or `<|"|>`. Gemma 4 also writes
//! `<|tool_call|>` as mark, `call:name({…})` with JSON, and no `call`.
//!
//! Source: ai.google.dev/gemma/docs, "Function calling" (Gemma 3 and 4) and "FunctionGemma formatting and best
//! practices", November 2026.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static TOOL_CODE: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["```"],
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Fence(&["tool_code"]), CALLS)]),
        CALLS = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Literal("["), ITEM), (Token::Call, CALL_OR_FENCE_END)]
        ),
        CALL_OR_FENCE_END = Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[
                (Token::Literal(";"), CALL_OR_FENCE_END),
                (Token::FenceEnd, LINE_END),
                (Token::Call, CALL_OR_FENCE_END)
            ],
        ),
        LINE_END = Step::new(Gap::Line, OnMismatch::Complete, &[(Token::Literal("\n"), DONE)]),
        ITEM = Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Call, COMMA)]),
        COMMA = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Literal(","), ITEM), (Token::Literal("]"), FENCE_END)]
        ),
        FENCE_END = Step::new(Gap::Any, OnMismatch::Unclosed, &[(Token::FenceEnd, LINE_END)]),
    ],
};

pub(super) static FUNCTION_GEMMA: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["<end_function_call>"],
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("<start_function_call>"), CALL)]),
        CALL = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("call:"), NAME)]),
        NAME = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Word(Capture::Name), ARGUMENTS)]),
        ARGUMENTS = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Braces(Capture::Braces), CLOSE)]),
        CLOSE = Step::new(Gap::Any, OnMismatch::Complete, &[(Token::Literal("<end_function_call>"), DONE)]),
    ],
};

pub(super) static GEMMA_4: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<tool_call|>"],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[(Token::Literal("<|tool_call>"), CALL), (Token::Literal("<|tool_call|>"), CALL)],
        ),
        CALL = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Literal("call:"), NAME), (Token::Literal(":"), NAME)],
        ),
        NAME = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Word(Capture::Name), ARGUMENTS)]),
        ARGUMENTS = Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[(Token::Braces(Capture::Braces), CLOSE), (Token::Literal("("), OBJECT)],
        ),
        OBJECT = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Object(Capture::Arguments), OBJECT_END), (Token::Literal(")"), CLOSE)],
        ),
        OBJECT_END = Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Literal(")"), CLOSE)]),
        CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Complete,
            &[
                (Token::Literal("<tool_call|>"), DONE),
                (Token::Literal("<|tool_call|>"), DONE),
                (Token::Literal("</tool_call>"), DONE),
            ],
        ),
    ],
};
