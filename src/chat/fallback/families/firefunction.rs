//! `functools[{"name": …, "arguments": {…}}]`, at the start of a line: FireFunction v2.
//!
//! Source: the chat template of fireworks-ai/firefunction-v2.

use super::json_calls;
use crate::chat::fallback::grammar::Form;

pub(super) static FIREFUNCTION: Form =
    Form { marked: true, line_start: true, closes: &[], steps: json_calls!(["functools"], Rest::Whole, []) };
