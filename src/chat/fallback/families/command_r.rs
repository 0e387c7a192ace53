//! Cohere: Command R writes `Action:` and a code block with an array of calls, Command R7B and Command A the array
//! between `<|START_ACTION|>` and `<|END_ACTION|>`.
//!
//! `directly_answer` is a tool that Command R's template offers by itself: calling it means to call nothing.
//! Source: the chat templates of CohereForAI/c4ai-command-r-plus and c4ai-command-r7b-12-2024.

use super::json_calls;
use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static COMMAND_R: Form = Form {
    marked: true,
    at: Place::Line,
    closes: &["```"],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("Action:"), 1)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Fence(&["json"]), 2)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("["), 3)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Object(Capture::Object), 4), (Token::Mark("]"), 5)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Mark(","), 3), (Token::Mark("]"), 5)]),
        Step::new(Gap::Any, Rest::Closing, &[(Token::FenceEnd, 6)]),
        Step::new(Gap::Line, Rest::Whole, &[(Token::Mark("\n"), DONE)]),
    ],
};

pub(super) static COMMAND_R7B: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["<|END_ACTION|>"],
    steps: json_calls!(["<|START_ACTION|>"], Rest::Closing, [(Token::Mark("<|END_ACTION|>"), DONE)]),
};
