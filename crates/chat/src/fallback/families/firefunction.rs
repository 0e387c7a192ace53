//! `functools[{"name": …, "arguments": {…}}]`, at the start of a line: FireFunction v2.
//!
//! Source: the chat template of fireworks-ai/firefunction-v2.

use super::common::json_calls;
use crate::fallback::grammar::{Form, StartPosition};

pub(super) static FIREFUNCTION: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &[],
    steps: json_calls! {
        "functools", Complete []
    },
};
