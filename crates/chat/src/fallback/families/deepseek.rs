//! DeepSeek. R1 and V3 write the call's type, its name and a code block with its arguments; V3.1 writes name and
//! arguments; V3.2 writes tags in its own markup language (DSML), where `string` states whether a value is text or JSON.
//! V4 names its block `tool_calls`. V4.1 names it `calls`, with a blank before the name of each tag.
//!
//! The marks contain `｜` (U+FF5C) and `▁` (U+2581). Templates and models also write `|`, `_` and blanks instead, so
//! these are read as well, and so are doubled bars. Source: the chat templates of deepseek-ai/DeepSeek-R1, V3.1 and V3.2, the variants in
//! ggml-org/llama.cpp, and `SGLang`'s table of detectors for V4, November 2026.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static DEEPSEEK: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
    steps: steps! {
        OPEN              None Prose     [
            "<｜tool▁calls▁begin｜>" | "<｜tool▁calls｜>" => CALL_OPEN, "<｜tool▁call▁begin｜>" => TYPE_OR_NAME
        ]
        CALL_OPEN         Any  Prose     ["<｜tool▁call▁begin｜>" => TYPE_OR_NAME]
        TYPE_OR_NAME      Any  Prose     [Word(Name) => SEPARATOR]
        SEPARATOR         Any  Prose     ["<｜tool▁sep｜>" => ARGUMENTS_OR_NAME]
        ARGUMENTS_OR_NAME Any  Malformed [Object(Arguments) => CALL_CLOSE, Word(Rename) => FENCE]
        FENCE             Any  Malformed [
            Fence("json" "") => FENCED_ARGUMENTS, Object(Arguments) => CALL_CLOSE
        ]
        FENCED_ARGUMENTS  Any  Malformed [Object(Arguments) => FENCE_END]
        FENCE_END         Any  Unclosed  [FenceEnd => CALL_CLOSE]
        CALL_CLOSE        Any  Unclosed  ["<｜tool▁call▁end｜>" => CLOSE, "<｜tool▁calls▁end｜>" => DONE]
        CLOSE             Any  Complete  ["<｜tool▁calls▁end｜>" => DONE]
    },
};

/// The form with `$blank` before the name of each tag. The tags around the calls may be missing.
macro_rules! dsml {
    ($blank:literal) => {
        Form {
            marked: true,
            start: StartPosition::Token,
            closes: &[
                concat!("</｜DSML｜", $blank, "function▁calls>"),
                concat!("</｜DSML｜", $blank, "tool▁calls>"),
                concat!("</｜DSML｜", $blank, "calls>"),
            ],
            steps: steps! {
                OPEN            None Prose     [
                    ["<｜DSML｜" $blank "function▁calls>"] | ["<｜DSML｜" $blank "tool▁calls>"]
                    | ["<｜DSML｜" $blank "calls>"] => INVOKE,
                    ["<｜DSML｜" $blank "invoke name=\""] => NAME
                ]
                INVOKE          Any  Prose     [["<｜DSML｜" $blank "invoke name=\""] => NAME]
                NAME            None Prose     [Word(Name) => NAME_END]
                NAME_END        None Prose     ["\">" => FIRST_PARAMETER, "\"/>" => CLOSE]
                FIRST_PARAMETER Any  Malformed [
                    ["<｜DSML｜" $blank "parameter name=\""] => KEY, ["</｜DSML｜" $blank "invoke>"] => CLOSE,
                    Object(Arguments) => PARAMETER
                ]
                PARAMETER       Any  Malformed [
                    ["<｜DSML｜" $blank "parameter name=\""] => KEY, ["</｜DSML｜" $blank "invoke>"] => CLOSE,
                    ["</｜DSML｜" $blank "function▁calls>"] | ["</｜DSML｜" $blank "tool▁calls>"]
                    | ["</｜DSML｜" $blank "calls>"] => DONE
                ]
                KEY             None Malformed [Word(Key) => KEY_END]
                KEY_END         None Malformed ["\" string=\"" => IS_STRING, "\">" => VALUE]
                IS_STRING       None Malformed [Word(IsString) => IS_STRING_END]
                IS_STRING_END   None Malformed ["\">" => VALUE]
                VALUE           None Malformed [Element(
                    ["<｜DSML｜" $blank "parameter name=\""] until ["</｜DSML｜" $blank "parameter>"]
                    inside [["<｜DSML｜" $blank "invoke name=\""]]
                    or ["\n<｜DSML｜" $blank "parameter name=\""] => KEY,
                    ["</｜DSML｜" $blank "invoke>"] => CLOSE,
                    ["</｜DSML｜" $blank "function▁calls>"] | ["</｜DSML｜" $blank "tool▁calls>"]
                    | ["</｜DSML｜" $blank "calls>"] => DONE
                ) => PARAMETER]
                CLOSE           Any  Complete  [
                    ["<｜DSML｜" $blank "invoke name=\""] => NAME,
                    ["</｜DSML｜" $blank "function▁calls>"] | ["</｜DSML｜" $blank "tool▁calls>"]
                    | ["</｜DSML｜" $blank "calls>"] => DONE
                ]
            },
        }
    };
}

pub(super) static DSML: Form = dsml!("");
pub(super) static DSML_41: Form = dsml!("▁");
