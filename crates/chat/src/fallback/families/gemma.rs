//! Gemma. Versions 2 and 3 write a `tool_code` block with calls in Python syntax, or without marks a `python` block of
//! calls of tools. FunctionGemma and Gemma 4
//! write `call:name{key:value}` between marks, with strings between `<escape>` or `<|"|>`. Gemma 4 also writes
//! `<|tool_call|>` as mark, `call:name({…})` with JSON, and no `call`.
//!
//! Source: ai.google.dev/gemma/docs, "Function calling" (Gemma 3 and 4) and "FunctionGemma formatting and best
//! practices", November 2026.

use crate::fallback::grammar::{Form, StartPosition, steps};

/// A code block with one of these info strings and calls in Python syntax.
macro_rules! code_block {
    ($marked:literal, $($info:literal)+) => {
        Form {
            marked: $marked,
            start: StartPosition::Line,
            closes: &["```"],
            steps: steps! {
                OPEN              None Prose     [Fence($($info)+) => CALLS]
                CALLS             Any  Prose     ["[" => ITEM, Call => CALL_OR_FENCE_END]
                CALL_OR_FENCE_END Any  Unclosed  [
                    ";" => CALL_OR_FENCE_END, FenceEnd => LINE_END, Call => CALL_OR_FENCE_END
                ]
                LINE_END          Line Complete  ["\n" => DONE]
                ITEM              Any  Malformed [Call => COMMA]
                COMMA             Any  Malformed ["," => ITEM, "]" => FENCE_END]
                FENCE_END         Any  Unclosed  [FenceEnd => LINE_END]
            },
        }
    };
}

pub(super) static TOOL_CODE: Form = code_block!(true, "tool_code");
pub(super) static PYTHON_CODE: Form = code_block!(false, "python" "py");

pub(super) static FUNCTION_GEMMA: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["<end_function_call>"],
    steps: steps! {
        OPEN      None Prose     ["<start_function_call>" => CALL]
        CALL      Any  Prose     ["call:" => NAME]
        NAME      Line Prose     [Word(Name) => ARGUMENTS]
        ARGUMENTS Line Prose     [Braces(Braces) => CLOSE]
        CLOSE     Any  Complete  ["<end_function_call>" => DONE]
    },
};

pub(super) static GEMMA_4: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<tool_call|>"],
    steps: steps! {
        OPEN       None Prose     ["<|tool_call>" | "<|tool_call|>" => CALL]
        CALL       Any  Prose     ["call:" | ":" => NAME]
        NAME       Line Prose     [Word(Name) => ARGUMENTS]
        ARGUMENTS  Line Prose     [Braces(Braces) => CLOSE, "(" => OBJECT]
        OBJECT     Any  Malformed [Object(Arguments) => OBJECT_END, ")" => CLOSE]
        OBJECT_END Any  Malformed [")" => CLOSE]
        CLOSE      Any  Complete  ["<tool_call|>" | "<|tool_call|>" | "</tool_call>" => DONE]
    },
};
