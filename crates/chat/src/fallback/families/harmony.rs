//! `<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}<|call|>`: gpt-oss, in OpenAI's harmony
//! format. The recipient may also precede the channel.
//!
//! The `analysis` channel is the model's reasoning (`tags`), so it contains no calls, whatever the recipient.
//! Commentary without a recipient is text.
//!
//! A server that removes the special tokens leaves `assistantcommentary to=functions.name json{…}`, after the analysis
//! or at the start of the reply. If the start of the message was in the prompt, the reply may begin with the recipient.
//! `channels` then finds the reasoning. Source: openai/harmony, docs/format.md; replies of gpt-oss through `OpenRouter`
//! and MLX, November 2026.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token};

pub(super) static HARMONY: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &["<|call|>"],
    steps: &[
        Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[(Token::Literal("<|start|>assistant"), 1), (Token::Literal("<|channel|>commentary"), 4)],
        ),
        Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[(Token::Literal("<|channel|>commentary"), 4), (Token::Literal("to="), 2)],
        ),
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), 3)]),
        Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal("<|channel|>commentary"), 6)]),
        Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal("to="), 5)]),
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), 6)]),
        // The type of the arguments. They are JSON, whatever the type.
        Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[
                (Token::Literal("<|constrain|>"), 7),
                (Token::Literal("<|message|>"), 9),
                (Token::Word(Capture::Nothing), 8),
            ],
        ),
        Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Word(Capture::Nothing), 8)]),
        Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal("<|message|>"), 9)]),
        Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Object(Capture::Arguments), 10)]),
        Step::new(Gap::Any, OnMismatch::Complete, &[(Token::Literal("<|call|>"), DONE)]),
    ],
};

pub(super) static STRIPPED: Form = Form {
    marked: true,
    start: StartPosition::Channel,
    closes: &[],
    steps: &[
        Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[
                (Token::Literal("assistant"), 1),
                (Token::Literal("commentary"), 2),
                (Token::Literal("to=functions."), 4),
            ],
        ),
        Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[(Token::Literal("commentary"), 2), (Token::Literal("to=functions."), 4)],
        ),
        Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal("to=functions."), 3)]),
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), 5)]),
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Recipient), 5)]),
        // The remains of the channel, the type and the start of the message.
        Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[
                (Token::Literal("<|channel|>commentary"), 5),
                (Token::Literal("<|constrain|>"), 6),
                (Token::Literal("<|message|>"), 8),
                (Token::Word(Capture::Nothing), 7),
                (Token::Object(Capture::Arguments), 9),
            ],
        ),
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Nothing), 7)]),
        Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[
                (Token::Literal("<|message|>"), 8),
                (Token::Literal("="), 8),
                (Token::Object(Capture::Arguments), 9),
                (Token::Word(Capture::Nothing), 8),
            ],
        ),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Arguments), 9)]),
        Step::new(
            Gap::Any,
            OnMismatch::Complete,
            &[
                (Token::Literal("<|call|>"), DONE),
                (Token::Literal("assistantcommentary to=functions."), 3),
                (Token::Literal("assistant to=functions."), 4),
            ],
        ),
    ],
};
