//! Lists of calls in Python syntax: `[name(a="x"), other(b=1)]`. LFM2 writes marks around its list, Llama 4 does so
//! sometimes. Without marks, the list must have its lines to itself.
//!
//! Source: the chat templates of LiquidAI/LFM2-1.2B and meta-llama/Llama-4-Scout, and vLLM's tool parsers for them.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token};

pub(super) static LFM2: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &["<|tool_call_end|>", "<|python_end|>"],
    steps: &[
        Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[(Token::Literal("<|tool_call_start|>"), 1), (Token::Literal("<|python_start|>"), 1)],
        ),
        Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Literal("["), 2), (Token::Object(Capture::Object), 4)],
        ),
        Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Literal("]"), 4), (Token::Object(Capture::Object), 3), (Token::Call, 3)],
        ),
        Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Literal(","), 2), (Token::Literal("]"), 4)]),
        Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[(Token::Literal("<|tool_call_end|>"), DONE), (Token::Literal("<|python_end|>"), DONE)],
        ),
    ],
};

pub(super) static LIST: Form = Form {
    marked: false,
    start: StartPosition::Line,
    closes: &[],
    steps: &[
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("["), 1)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Call, 2)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal(","), 1), (Token::Literal("]"), 3)]),
        Step::new(Gap::Line, OnMismatch::LineEnd, &[(Token::Literal("\n"), DONE)]),
    ],
};
