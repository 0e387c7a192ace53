//! `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`, in a section of such calls:
//! Kimi K2. The name has a prefix and the call's number. The section's marks are written in the singular as well.
//!
//! Source: the tool call guide of moonshotai/Kimi-K2-Instruct.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static KIMI: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["<|tool_call_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
    steps: &[
        Step::new(
            Gap::None,
            Rest::Prose,
            &[
                (Token::Mark("<|tool_calls_section_begin|>"), 1),
                (Token::Mark("<|tool_call_section_begin|>"), 1),
                (Token::Mark("<|tool_call_begin|>"), 2),
            ],
        ),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("<|tool_call_begin|>"), 2)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Word(Capture::Name), 3)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("<|tool_call_argument_begin|>"), 4)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Object(Capture::Arguments), 5)]),
        Step::new(
            Gap::Any,
            Rest::Closing,
            &[
                (Token::Mark("<|tool_call_end|>"), 6),
                (Token::Mark("<|tool_calls_section_end|>"), DONE),
                (Token::Mark("<|tool_call_section_end|>"), DONE),
            ],
        ),
        Step::new(
            Gap::Any,
            Rest::Whole,
            &[
                (Token::Mark("<|tool_calls_section_end|>"), DONE),
                (Token::Mark("<|tool_call_section_end|>"), DONE),
            ],
        ),
    ],
};
