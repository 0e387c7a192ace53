//! Lists of calls in Python syntax: `[name(a="x"), other(b=1)]`. LFM2 writes marks around its list, and Llama 4
//! sometimes does. Without marks, the list must be alone on its lines.
//!
//! Source: the chat templates of LiquidAI/LFM2-1.2B and meta-llama/Llama-4-Scout, and vLLM's tool parsers for them.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static LFM2: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|tool_call_end|>", "<|python_end|>"],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[(Token::Literal("<|tool_call_start|>"), CALLS), (Token::Literal("<|python_start|>"), CALLS)],
        ),
        CALLS = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Literal("["), ITEM), (Token::Object(Capture::Object), CLOSE)],
        ),
        ITEM = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Literal("]"), CLOSE), (Token::Object(Capture::Object), COMMA), (Token::Call, COMMA)],
        ),
        COMMA = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Literal(","), ITEM), (Token::Literal("]"), CLOSE)]
        ),
        CLOSE = Step::new(
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
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("["), ITEM)]),
        ITEM = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Call, COMMA)]),
        COMMA = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Literal(","), ITEM), (Token::Literal("]"), LINE_END)]
        ),
        LINE_END = Step::new(Gap::Line, OnMismatch::LineEnd, &[(Token::Literal("\n"), DONE)]),
    ],
};
