//! `<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}<|call|>`: gpt-oss, in OpenAI's harmony
//! format. The recipient may also precede the channel.
//!
//! The `analysis` channel is the model's reasoning (`tags`), so it contains no calls, regardless of the recipient.
//! Commentary without a recipient is text.
//!
//! A server that removes the special tokens leaves `assistantcommentary to=functions.name json{…}`, after the analysis
//! or at the start of the reply. If the start of the message was in the prompt, the reply may begin with the recipient.
//! `channels` then finds the reasoning. Source: openai/harmony, docs/format.md; replies of gpt-oss through `OpenRouter`
//! and MLX, November 2026.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static HARMONY: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|call|>"],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[
                (Token::Literal("<|start|>assistant"), CHANNEL_OR_RECIPIENT),
                (Token::Literal("<|channel|>commentary"), RECIPIENT)
            ],
        ),
        CHANNEL_OR_RECIPIENT = Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[
                (Token::Literal("<|channel|>commentary"), RECIPIENT),
                (Token::Literal("to="), NAME_BEFORE_CHANNEL)
            ],
        ),
        NAME_BEFORE_CHANNEL =
            Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), CHANNEL)]),
        CHANNEL = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal("<|channel|>commentary"), TYPE)]),
        RECIPIENT = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal("to="), NAME)]),
        NAME = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), TYPE)]),
        // The type of the arguments is ignored: they are always JSON.
        TYPE = Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[
                (Token::Literal("<|constrain|>"), TYPE_NAME),
                (Token::Literal("<|message|>"), ARGUMENTS),
                (Token::Word(Capture::Nothing), MESSAGE),
            ],
        ),
        TYPE_NAME = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Word(Capture::Nothing), MESSAGE)]),
        MESSAGE = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal("<|message|>"), ARGUMENTS)]),
        ARGUMENTS = Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Object(Capture::Arguments), CLOSE)]),
        CLOSE = Step::new(Gap::Any, OnMismatch::Complete, &[(Token::Literal("<|call|>"), DONE)]),
    ],
};

pub(super) static STRIPPED: Form = Form {
    marked: true,
    start: StartPosition::Channel,
    closes: &[],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[
                (Token::Literal("assistant"), CHANNEL),
                (Token::Literal("commentary"), RECIPIENT),
                (Token::Literal("to=functions."), NAME_AND_CHANNEL),
            ],
        ),
        CHANNEL = Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[(Token::Literal("commentary"), RECIPIENT), (Token::Literal("to=functions."), NAME_AND_CHANNEL)],
        ),
        RECIPIENT = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal("to=functions."), NAME)]),
        NAME = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), TYPE)]),
        NAME_AND_CHANNEL =
            Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Recipient), TYPE)]),
        // The remains of the channel, the type and the start of the message.
        TYPE = Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[
                (Token::Literal("<|channel|>commentary"), TYPE),
                (Token::Literal("<|constrain|>"), TYPE_NAME),
                (Token::Literal("<|message|>"), ARGUMENTS),
                (Token::Word(Capture::Nothing), MESSAGE),
                (Token::Object(Capture::Arguments), CLOSE),
            ],
        ),
        TYPE_NAME = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Nothing), MESSAGE)]),
        MESSAGE = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[
                (Token::Literal("<|message|>"), ARGUMENTS),
                (Token::Literal("="), ARGUMENTS),
                (Token::Object(Capture::Arguments), CLOSE),
                (Token::Word(Capture::Nothing), ARGUMENTS),
            ],
        ),
        ARGUMENTS = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Arguments), CLOSE)]),
        CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Complete,
            &[
                (Token::Literal("<|call|>"), DONE),
                (Token::Literal("assistantcommentary to=functions."), NAME),
                (Token::Literal("assistant to=functions."), NAME_AND_CHANNEL),
            ],
        ),
    ],
};
