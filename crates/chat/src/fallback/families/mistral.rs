//! `[TOOL_CALLS]`, then an array of calls in JSON, or (since Mistral Small 3.2 and Devstral) a name, optionally
//! `[CALL_ID]` and an id, optionally `[ARGS]`, and the arguments. Each further call repeats the mark.
//!
//! Source: mistral-common, tokenizers v3 to v13.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static MISTRAL: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &[],
    steps: steps! {
        OPEN            None Prose     ["[TOOL_CALLS]" => CALLS]
        CALLS           Any  Prose     [Object(Object) => CLOSE, "[" => ITEM, Word(Name) => ID_OR_ARGUMENTS]
        ID_OR_ARGUMENTS Line Prose     ["[CALL_ID]" => ID, "[ARGS]" => ARGUMENTS, Object(Arguments) => CLOSE]
        ID              None Malformed [Raw(Nothing until "[ARGS]") => ARGUMENTS]
        ARGUMENTS       Any  Malformed [Object(Arguments) => CLOSE]
        CLOSE           Any  Complete  ["[/TOOL_CALLS]" => DONE]
        ITEM            Any  Malformed [Object(Object) => COMMA, "]" => CLOSE]
        COMMA           Any  Malformed ["," => ITEM, "]" => CLOSE]
    },
};
