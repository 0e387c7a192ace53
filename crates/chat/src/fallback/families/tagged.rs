//! Families with the tags of Anthropic's form under other names: Muse, Dots, Grok and `MiniCPM5`.
//!
//! Source: the chat templates of Muse and `MiniCPM5` in ggml-org/llama.cpp, vLLM's parser for Dots, public transcripts
//! of Grok, November 2026.

use super::common::tag_calls;
use crate::fallback::grammar::{Form, StartPosition};

pub(super) static MUSE: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</atem:function_calls>"],
    steps: tag_calls! {
        ["<atem:function_calls>"] until ["</atem:function_calls>"],
        "<atem:invoke name=\"" until "</atem:invoke>",
        "<atem:parameter name=\"" until "</atem:parameter>"
    },
};

pub(super) static DOTS: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</dots_function_call>"],
    steps: tag_calls! {
        ["<dots_function_call>"] until ["</dots_function_call>"],
        "<invoke name=\"" until "</invoke>",
        "<parameter name=\"" until "</parameter>"
    },
};

pub(super) static GROK: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</xai:function_call>"],
    steps: tag_calls! {
        ["<has_function_call>"] until ["</has_function_call>"],
        "<xai:function_call name=\"" until "</xai:function_call>",
        "<parameter name=\"" until "</parameter>"
    },
};

pub(super) static MINI_CPM5: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</function>"],
    steps: tag_calls! {
        [] until [],
        "<function name=\"" until "</function>",
        "<param name=\"" until "</param>"
    },
};
