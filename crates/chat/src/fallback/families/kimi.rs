//! `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`, in a section of such calls:
//! Kimi K2. The name has a prefix and the call's number. The marks of the section are also written in the singular.
//! K3 writes its own tags, `<|open|>argument key="k" type="string"<|sep|>v<|close|>argument<|sep|>`.
//!
//! Source: the tool call guide of moonshotai/Kimi-K2-Instruct; the chat template of Kimi-K3 in ggml-org/llama.cpp,
//! November 2026.

use crate::fallback::grammar::{
    Capture, DONE, Element, Form, Gap, OnMismatch, StartPosition, Step, Token, steps,
};

pub(super) static KIMI: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|tool_call_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[
                (Token::Literal("<|tool_calls_section_begin|>"), CALL_OPEN),
                (Token::Literal("<|tool_call_section_begin|>"), CALL_OPEN),
                (Token::Literal("<|tool_call_begin|>"), NAME),
            ],
        ),
        CALL_OPEN = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<|tool_call_begin|>"), NAME)]),
        NAME = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Word(Capture::Name), ARGUMENTS_OPEN)]),
        ARGUMENTS_OPEN = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Literal("<|tool_call_argument_begin|>"), ARGUMENTS)]
        ),
        ARGUMENTS =
            Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Object(Capture::Arguments), CALL_CLOSE)]),
        CALL_CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[
                (Token::Literal("<|tool_call_end|>"), CLOSE),
                (Token::Literal("<|tool_calls_section_end|>"), DONE),
                (Token::Literal("<|tool_call_section_end|>"), DONE),
            ],
        ),
        CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Complete,
            &[
                (Token::Literal("<|tool_calls_section_end|>"), DONE),
                (Token::Literal("<|tool_call_section_end|>"), DONE),
            ],
        ),
    ],
};

pub(super) static KIMI_K3: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|close|>tools<|sep|>"],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[
                (Token::Literal("<|open|>tools<|sep|>"), CALL_OPEN),
                (Token::Literal("<|open|>call tool=\""), NAME)
            ],
        ),
        CALL_OPEN = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<|open|>call tool=\""), NAME)]),
        NAME = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), NAME_END)]),
        NAME_END = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("\""), INDEX)]),
        INDEX = Step::new(
            Gap::None,
            OnMismatch::Malformed,
            &[(Token::Raw(Capture::Nothing, "<|sep|>", None), ARGUMENT)],
        ),
        ARGUMENT = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[
                (Token::Literal("<|open|>argument key=\""), KEY),
                (Token::Literal("<|close|>call<|sep|>"), CLOSE),
                (Token::Literal("<|close|>tools<|sep|>"), DONE),
                (Token::Object(Capture::Arguments), ARGUMENT),
            ],
        ),
        KEY = Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Raw(Capture::Key, "\"", None), TYPE)]),
        TYPE = Step::new(
            Gap::Line,
            OnMismatch::Malformed,
            &[(Token::Literal("type=\""), TYPE_NAME), (Token::Literal("<|sep|>"), VALUE)],
        ),
        TYPE_NAME =
            Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Word(Capture::IsString), TYPE_END)]),
        TYPE_END = Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Literal("\"<|sep|>"), VALUE)]),
        VALUE = Step::new(
            Gap::None,
            OnMismatch::Malformed,
            &[(
                Token::Element(&Element {
                    what: Capture::Value,
                    open: "<|open|>argument key=\"",
                    close: "<|close|>argument<|sep|>",
                    around: &["<|open|>call tool=\""],
                    otherwise: &[("<|open|>argument key=\"", KEY)],
                }),
                ARGUMENT,
            )],
        ),
        CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Complete,
            &[
                (Token::Literal("<|open|>call tool=\""), NAME),
                (Token::Literal("<|close|>tools<|sep|>"), DONE),
            ],
        ),
    ],
};
