//! Cohere: Command R writes `Action:` and a code block with an array of calls; Command R7B and Command A write the
//! array between `<|START_ACTION|>` and `<|END_ACTION|>`.
//!
//! Command R's template adds the tool `directly_answer`. A call of it means that no tool is called.
//! Source: the chat templates of CohereForAI/c4ai-command-r-plus and c4ai-command-r7b-12-2024.

use super::json_calls;
use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token};

pub(super) static COMMAND_R: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["```"],
    steps: &[
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("Action:"), 1)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Fence(&["json"]), 2)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("["), 3)]),
        Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Object(Capture::Object), 4), (Token::Literal("]"), 5)],
        ),
        Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Literal(","), 3), (Token::Literal("]"), 5)]),
        Step::new(Gap::Any, OnMismatch::Unclosed, &[(Token::FenceEnd, 6)]),
        Step::new(Gap::Line, OnMismatch::Complete, &[(Token::Literal("\n"), DONE)]),
    ],
};

pub(super) static COMMAND_R7B: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &["<|END_ACTION|>"],
    steps: json_calls!(
        ["<|START_ACTION|>"],
        OnMismatch::Unclosed,
        [(Token::Literal("<|END_ACTION|>"), DONE)]
    ),
};
