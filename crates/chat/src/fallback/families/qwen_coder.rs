//! `<tool_call><function=name><parameter=key>value`, with a closing tag for each: Qwen3-Coder, Qwen 3.5 to 3.8, Step 3.5
//! and Nemotron 3. Seed-OSS writes `<seed:tool_call>` around it.
//!
//! The model often omits the first tag, which is in the prompt, and sometimes closing tags. Values are text on
//! their own lines.
//!
//! Source: the chat template of Qwen/Qwen3-Coder-30B-A3B-Instruct.

use crate::fallback::grammar::{
    Capture, DONE, Element, Form, Gap, OnMismatch, StartPosition, Step, Token, steps,
};

pub(super) static QWEN3_CODER: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</function>", "</tool_call>", "</seed:tool_call>"],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[
                (Token::Literal("<tool_call>"), FUNCTION),
                (Token::Literal("<seed:tool_call>"), FUNCTION),
                (Token::Literal("<function="), NAME),
            ],
        ),
        FUNCTION = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<function="), NAME)]),
        NAME = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), NAME_END)]),
        NAME_END = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal(">"), FIRST_PARAMETER)]),
        FIRST_PARAMETER = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[
                (Token::Literal("<parameter="), KEY),
                (Token::Literal("</function>"), CLOSE),
                (Token::Literal("</tool_call>"), DONE),
                (Token::Literal("</seed:tool_call>"), DONE),
            ],
        ),
        KEY = Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Word(Capture::Key), KEY_END)]),
        KEY_END = Step::new(Gap::Line, OnMismatch::Malformed, &[(Token::Literal(">"), VALUE)]),
        VALUE = Step::new(
            Gap::None,
            OnMismatch::Malformed,
            &[(
                Token::Element(&Element {
                    what: Capture::Value,
                    open: "<parameter=",
                    close: "</parameter>",
                    around: &["<function=", "<tool_call>"],
                    otherwise: &[
                        ("\n<parameter=", KEY),
                        ("</function>", CLOSE),
                        ("</tool_call>", DONE),
                        ("</seed:tool_call>", DONE),
                    ],
                }),
                PARAMETER,
            )],
        ),
        PARAMETER = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[
                (Token::Literal("<parameter="), KEY),
                (Token::Literal("</function>"), CLOSE),
                (Token::Literal("</tool_call>"), DONE),
                (Token::Literal("</seed:tool_call>"), DONE),
            ],
        ),
        CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Complete,
            &[(Token::Literal("</tool_call>"), DONE), (Token::Literal("</seed:tool_call>"), DONE)],
        ),
    ],
};
