//! Cohere: Command R writes `Action:` and a code block with an array of calls; Command R7B and Command A write the
//! array between `<|START_ACTION|>` and `<|END_ACTION|>`.
//!
//! Command R's template adds the tool `directly_answer`. A call of this tool means that no tool is called.
//! Source: the chat templates of CohereForAI/c4ai-command-r-plus and c4ai-command-r7b-12-2024.

use super::common::json_calls;
use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static COMMAND_R: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["```"],
    steps: steps! {
        OPEN      None Prose     ["Action:" => FENCE]
        FENCE     Any  Prose     [Fence("json") => LIST]
        LIST      Any  Prose     ["[" => ITEM]
        ITEM      Any  Malformed [Object(Object) => COMMA, "]" => FENCE_END]
        COMMA     Any  Malformed ["," => ITEM, "]" => FENCE_END]
        FENCE_END Any  Unclosed  [FenceEnd => LINE_END]
        LINE_END  Line Complete  ["\n" => DONE]
    },
};

pub(super) static COMMAND_R7B: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|END_ACTION|>"],
    steps: json_calls! {
        "<|START_ACTION|>", Unclosed ["<|END_ACTION|>" => DONE]
    },
};
