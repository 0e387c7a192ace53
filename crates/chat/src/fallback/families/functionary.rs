//! Functionary. Version 3.1 writes `<function=name>{…}</function>`, as does Llama 3 for user-defined tools, sometimes
//! without the first `>` or with wrong marks. Version 3.2 writes `>>>name`, a line break and the arguments. Text after
//! `>>>all` is prose. A first call without its `>>>` is read by `named`.
//!
//! Source: MeetKai/functionary, `prompt_template`; the `failed_generation` that Groq's servers report for Llama 3.3.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static FUNCTIONARY_31: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</function>"],
    steps: steps! {
        OPEN      None Prose     ["<function=" => NAME]
        NAME      None Prose     [Word(Name) => NAME_END]
        NAME_END  Line Prose     [">" | "=" => ARGUMENTS, Object(Arguments) => CLOSE]
        ARGUMENTS Any  Prose     [Object(Arguments) => CLOSE]
        CLOSE     Any  Unclosed  ["</function>" | "<function>" => DONE, ">" => CLOSE_TAG]
        CLOSE_TAG Any  Unclosed  ["</function>" => DONE]
    },
};

pub(super) static FUNCTIONARY_32: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &[],
    steps: steps! {
        OPEN      None Prose     [">>>" => NAME]
        NAME      None Prose     [Word(Name) => LINE_END]
        LINE_END  Line Prose     ["\n" => ARGUMENTS]
        ARGUMENTS Any  Prose     [Object(Arguments) => END]
        END       None Complete  []
    },
};
