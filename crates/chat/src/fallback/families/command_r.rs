//! Cohere: Command R writes `Action:` and a code block with an array of calls; Command R7B and Command A write the
//! array between `<|START_ACTION|>` and `<|END_ACTION|>`.
//!
//! Command R's template adds the tool `directly_answer`. A call of this tool means that no tool is called.
//! Source: the chat templates of CohereForAI/c4ai-command-r-plus and c4ai-command-r7b-12-2024.

use super::common::json_calls;
use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static COMMAND_R: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["```"],
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("Action:"), FENCE)]),
        FENCE = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Fence(&["json"]), LIST)]),
        LIST = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("["), ITEM)]),
        ITEM = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Object(Capture::Object), COMMA), (Token::Literal("]"), FENCE_END)],
        ),
        COMMA = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Literal(","), ITEM), (Token::Literal("]"), FENCE_END)]
        ),
        FENCE_END = Step::new(Gap::Any, OnMismatch::Unclosed, &[(Token::FenceEnd, LINE_END)]),
        LINE_END = Step::new(Gap::Line, OnMismatch::Complete, &[(Token::Literal("\n"), DONE)]),
    ],
};

pub(super) static COMMAND_R7B: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|END_ACTION|>"],
    steps: json_calls!(
        ["<|START_ACTION|>"],
        OnMismatch::Unclosed,
        [(Token::Literal("<|END_ACTION|>"), DONE)]
    ),
};
