//! `<tool_call>name`, then `<arg_key>k</arg_key><arg_value>v</arg_value>` for each argument, then `</tool_call>`:
//! GLM-4.5 and later, Laguna, Spark 2.5 and Ling 3. `LongCat` and K2-Horizon write a prefix before the name of each tag,
//! Hunyuan 3 a suffix after it and `<tool_sep>` after the tool's name. Values other than strings are JSON; K2-Horizon
//! writes the type. Versions up to GLM-4.6 write line breaks between the tags.
//!
//! The models leave out, repeat and confuse tags. An argument is read if one of its tags or the next one still marks
//! each of its ends.
//!
//! Source: the chat templates of zai-org/GLM-4.5 and GLM-4.7 and tencent/Hy3; vLLM's parsers for the others, November
//! 2026.

use crate::fallback::grammar::{Form, StartPosition, steps};

/// The form with `$prefix` before the name of each tag and `$suffix` after it.
macro_rules! glm {
    ($prefix:literal, $suffix:literal) => {
        Form {
            marked: true,
            start: StartPosition::Line,
            closes: &[concat!("</", $prefix, "tool_call", $suffix, ">")],
            steps: steps! {
                OPEN           None Prose     [
                    ["<" $prefix "tool_calls" $suffix ">"] => CALL_OPEN,
                    ["<" $prefix "tool_call" $suffix ">"] => NAME
                ]
                CALL_OPEN      Any  Prose     [["<" $prefix "tool_call" $suffix ">"] => NAME]
                NAME           Any  Prose     [Word(Name) => FIRST_KEY_OPEN]
                FIRST_KEY_OPEN Any  Prose     [
                    ["<" $prefix "arg_key" $suffix ">"] | ["<" $prefix "tool_call" $suffix ">"] => KEY,
                    ["</" $prefix "tool_call" $suffix ">"] => DONE,
                    ["</" $prefix "arg_value" $suffix ">"] => CLOSE,
                    ["<tool_sep" $suffix ">"] => FIRST_KEY_OPEN,
                    Word(Key) => KEY_CLOSE
                ]
                // A key without its opening tag.
                KEY_CLOSE      Any  Prose     [["</" $prefix "arg_key" $suffix ">"] => VALUE_OPEN]
                KEY            None Malformed [
                    Raw(Key until ["</" $prefix "arg_key" $suffix ">"]) => VALUE_OPEN
                ]
                VALUE_OPEN     Any  Malformed [
                    ["<" $prefix "arg_type" $suffix ">"] => TYPE,
                    ["<" $prefix "arg_value" $suffix ">"] => VALUE,
                    // A value without its opening tag.
                    Raw(Value until ["</" $prefix "arg_value" $suffix ">"] before '<') => KEY_OPEN
                ]
                TYPE           Any  Malformed [
                    Raw(IsString until ["</" $prefix "arg_type" $suffix ">"]) => VALUE_OPEN
                ]
                VALUE          None Malformed [Element(
                    ["<" $prefix "arg_value" $suffix ">"] until ["</" $prefix "arg_value" $suffix ">"]
                    inside [["<" $prefix "tool_call" $suffix ">"]]
                    or ["<" $prefix "arg_key" $suffix ">"] => KEY,
                    ["</" $prefix "tool_call" $suffix ">"] => DONE
                ) => KEY_OPEN]
                KEY_OPEN       Any  Malformed [
                    ["<" $prefix "arg_key" $suffix ">"] => KEY,
                    ["</" $prefix "tool_call" $suffix ">"] => DONE,
                    ["<" $prefix "tool_call" $suffix ">"] => NAME
                ]
                CLOSE          Any  Unclosed  [["</" $prefix "tool_call" $suffix ">"] => DONE]
            },
        }
    };
}

pub(super) static GLM: Form = glm!("", "");
pub(super) static LONGCAT: Form = glm!("longcat_", "");
pub(super) static HUNYUAN_3: Form = glm!("", ":opensource");
pub(super) static K2_HORIZON: Form = glm!("ifm|", "");
