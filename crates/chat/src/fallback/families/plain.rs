//! `{"tool": …, "arguments": {…}}` on its own lines, the form that the BIOS describes, and a code block with
//! only such calls. Llama's bare `{"name": …, "parameters": {…}}` is read the same way.
//!
//! An object is a call only if its keys identify a call (`json`) and only blanks follow it on its last line. Any
//! other object is ordinary JSON, and any other code block is code.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static LINE: Form = Form {
    marked: false,
    start: StartPosition::Line,
    closes: &[],
    steps: steps! {
        OBJECT      None Prose     [Object(Object) => LINE_END]
        LINE_END    Line LineEnd   ["\n" => DONE, ";" => NEXT_OBJECT]
        NEXT_OBJECT Line LineEnd   ["\n" => DONE, Object(Object) => LINE_END]
    },
};

pub(super) static FENCE: Form = Form {
    marked: false,
    start: StartPosition::Line,
    closes: &[],
    steps: steps! {
        OPEN              None Prose     [Fence("" "json" "tool" "tool_call" "tool_calls") => CALLS]
        CALLS             Any  Prose     [Object(Object) => CALL_OR_FENCE_END, "[" => ITEM]
        CALL_OR_FENCE_END Any  LineEnd   [Object(Object) => CALL_OR_FENCE_END, FenceEnd => LINE_END]
        LINE_END          Line LineEnd   ["\n" => DONE]
        ITEM              Any  Prose     [Object(Object) => COMMA]
        COMMA             Any  Prose     ["," => ITEM, "]" => FENCE_END]
        FENCE_END         Any  LineEnd   [FenceEnd => LINE_END]
    },
};
