//! The tag formats of Anthropic's models. A block of function calls contains invocations, each with the tool's name and
//! a tag for each argument; each tag may have the prefix `antml:`. The older format has a tag for everything. Values
//! are text. The tool's schema determines their types.
//!
//! Source: Anthropic's guide to function calling with Claude 2.1 and 3 (the older format).

use super::common::tag_calls;
use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static ANTHROPIC: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</function_calls>"],
    steps: tag_calls! {
        ["<function_calls>"] until ["</function_calls>"],
        "<invoke name=\"" until "</invoke>",
        "<parameter name=\"" until "</parameter>"
    },
};

pub(super) static NAMESPACE: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</antml:function_calls>"],
    steps: tag_calls! {
        ["<antml:function_calls>"] until ["</antml:function_calls>"],
        "<antml:invoke name=\"" until "</antml:invoke>",
        "<antml:parameter name=\"" until "</antml:parameter>"
    },
};

pub(super) static TAGS: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</function_calls>"],
    steps: steps! {
        OPEN         None Prose     ["<function_calls>" => INVOKE]
        INVOKE       Any  Prose     ["<invoke>" => NAME_OPEN]
        NAME_OPEN    Any  Prose     ["<tool_name>" => NAME]
        NAME         Any  Prose     [Word(Name) => NAME_CLOSE]
        NAME_CLOSE   Any  Prose     ["</tool_name>" => PARAMETERS]
        PARAMETERS   Any  Malformed ["<parameters>" => ARGUMENTS, "</invoke>" => CLOSE]
        ARGUMENTS    None Malformed [Raw(Tags until "</parameters>" before '<') => INVOKE_CLOSE]
        INVOKE_CLOSE Any  Malformed ["</invoke>" => CLOSE]
        CLOSE        Any  Unclosed  ["<invoke>" => NAME_OPEN, "</function_calls>" => DONE]
    },
};
