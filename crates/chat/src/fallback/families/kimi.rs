//! `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`, in a section of such calls:
//! Kimi K2. The name has a prefix and the call's number. The marks of the section are also written in the singular.
//! K3 writes its own tags, `<|open|>argument key="k" type="string"<|sep|>v<|close|>argument<|sep|>`.
//!
//! Source: the tool call guide of moonshotai/Kimi-K2-Instruct; the chat template of Kimi-K3 in ggml-org/llama.cpp,
//! November 2026.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static KIMI: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|tool_call_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
    steps: steps! {
        OPEN           None Prose     [
            "<|tool_calls_section_begin|>" | "<|tool_call_section_begin|>" => CALL_OPEN,
            // Or without the marks before the name.
            "<|tool_call_begin|>" | "functions." => NAME
        ]
        CALL_OPEN      Any  Prose     ["<|tool_call_begin|>" | "functions." => NAME]
        NAME           Any  Prose     [Word(Name) => ARGUMENTS_OPEN]
        ARGUMENTS_OPEN Any  Prose     ["<|tool_call_argument_begin|>" => ARGUMENTS]
        ARGUMENTS      Any  Malformed [Object(Arguments) => CALL_CLOSE]
        CALL_CLOSE     Any  Unclosed  [
            "<|tool_call_end|>" => CLOSE, "<|tool_calls_section_end|>" | "<|tool_call_section_end|>" => DONE
        ]
        CLOSE          Any  Complete  ["<|tool_calls_section_end|>" | "<|tool_call_section_end|>" => DONE]
    },
};

pub(super) static KIMI_K3: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|close|>tools<|sep|>"],
    steps: steps! {
        OPEN      None Prose     [
            "<|open|>tools<|sep|>" => CALL_OPEN, "<|open|>call tool=\"" | "<|open|>toolscall tool=\"" => NAME
        ]
        CALL_OPEN Any  Prose     ["<|open|>call tool=\"" => NAME]
        NAME      None Prose     [Word(Name) => NAME_END]
        NAME_END  None Prose     ["\"" => INDEX]
        INDEX     None Malformed [Raw(Nothing until "<|sep|>") => ARGUMENT]
        ARGUMENT  Any  Malformed [
            "<|open|>argument key=\"" => KEY, "<|close|>call<|sep|>" => CLOSE,
            "<|close|>tools<|sep|>" => DONE, Object(Arguments) => ARGUMENT
        ]
        KEY       None Malformed [Raw(Key until "\"") => TYPE]
        TYPE      Line Malformed ["type=\"" => TYPE_NAME, "<|sep|>" => VALUE]
        TYPE_NAME None Malformed [Word(IsString) => TYPE_END]
        TYPE_END  None Malformed ["\"<|sep|>" => VALUE]
        VALUE     None Malformed [Element(
            "<|open|>argument key=\"" until "<|close|>argument<|sep|>"
            inside ["<|open|>call tool=\""]
            or "<|open|>argument key=\"" => KEY
        ) => ARGUMENT]
        CLOSE     Any  Complete  ["<|open|>call tool=\"" => NAME, "<|close|>tools<|sep|>" => DONE]
    },
};
