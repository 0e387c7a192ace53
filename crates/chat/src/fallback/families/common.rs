//! Tables of steps that several families share.

/// The steps of calls as JSON objects between marks, one by one or in an array: opening marks, the meaning of a
/// mismatch after the objects, and the tokens after them. These tokens may lead to the steps `CLOSE` (after another
/// object) and `NEXT_CALLS` (after another opening mark).
macro_rules! json_calls {
    ([$($open:literal),+], $on_mismatch:expr, [$($after:expr),*]) => {{
        use crate::fallback::grammar::{Capture, Gap, OnMismatch, Step, Token, steps};
        steps![
            OPEN = Step::new(Gap::None, OnMismatch::Prose, &[$((Token::Literal($open), CALLS)),+]),
            CALLS = Step::new(
                Gap::Any,
                OnMismatch::Prose,
                &[(Token::Object(Capture::Object), CLOSE), (Token::Literal("["), ITEM)],
            ),
            CLOSE = Step::new(Gap::Any, $on_mismatch, &[$($after),*]),
            ITEM = Step::new(
                Gap::Any,
                OnMismatch::Malformed,
                &[(Token::Object(Capture::Object), COMMA), (Token::Literal("]"), CLOSE)],
            ),
            COMMA = Step::new(
                Gap::Any,
                OnMismatch::Malformed,
                &[(Token::Literal(","), ITEM), (Token::Literal("]"), CLOSE)],
            ),
            // After an opening mark in place of the closing mark.
            NEXT_CALLS = Step::new(
                Gap::Any,
                OnMismatch::Unclosed,
                &[(Token::Object(Capture::Object), CLOSE), (Token::Literal("["), ITEM)],
            ),
        ]
    }};
}

/// The steps of calls as tags with a `name` attribute and a tag for each argument: the tags around the calls, of a call
/// and of an argument. The tags around the calls may be missing.
macro_rules! tag_calls {
    ([$($open:literal),*], [$($close:literal),*], $invoke:literal, $invoke_close:literal, $parameter:literal, $parameter_close:literal) => {{
        use crate::fallback::grammar::{Capture, Element, Gap, OnMismatch, Step, Token, steps};
        steps![
            OPEN = Step::new(
                Gap::None,
                OnMismatch::Prose,
                &[$((Token::Literal($open), INVOKE),)* (Token::Literal($invoke), NAME)],
            ),
            INVOKE = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal($invoke), NAME)]),
            NAME = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), NAME_QUOTE)]),
            NAME_QUOTE = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("\""), NAME_END)]),
            NAME_END = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal(">"), FIRST_PARAMETER)]),
            FIRST_PARAMETER = Step::new(
                Gap::Any,
                OnMismatch::Malformed,
                &[(Token::Literal($parameter), KEY), (Token::Literal($invoke_close), CLOSE)],
            ),
            KEY = Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Word(Capture::Key), KEY_QUOTE)]),
            KEY_QUOTE = Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Literal("\""), KEY_END)]),
            KEY_END = Step::new(Gap::Line, OnMismatch::Malformed, &[(Token::Literal(">"), VALUE)]),
            VALUE = Step::new(
                Gap::None,
                OnMismatch::Malformed,
                &[(
                    Token::Element(&Element {
                        what: Capture::Value,
                        open: $parameter,
                        close: $parameter_close,
                        around: &[$invoke],
                        otherwise: &[
                            (concat!("\n", $parameter), KEY),
                            ($invoke_close, CLOSE),
                            $(($close, crate::fallback::grammar::DONE),)*
                        ],
                    }),
                    PARAMETER,
                )],
            ),
            PARAMETER = Step::new(
                Gap::Any,
                OnMismatch::Malformed,
                &[
                    (Token::Literal($parameter), KEY),
                    (Token::Literal($invoke_close), CLOSE),
                    $((Token::Literal($close), crate::fallback::grammar::DONE),)*
                ],
            ),
            CLOSE = Step::new(
                Gap::Any,
                OnMismatch::Complete,
                &[$((Token::Literal($close), crate::fallback::grammar::DONE),)* (Token::Literal($invoke), NAME)],
            ),
        ]
    }};
}

pub(super) use {json_calls, tag_calls};
