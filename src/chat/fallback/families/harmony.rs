//! `<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}<|call|>`: gpt-oss, in OpenAI's harmony
//! format. The recipient may stand before the channel as well.
//!
//! The `analysis` channel is the model's thinking (`reasoning`): what stands there is no call, whoever it is addressed
//! to. Commentary without a recipient is text.
//!
//! A server that takes the special tokens away leaves `assistantcommentary to=functions.name json{…}`, after the analysis or at the
//! start of the reply; where the message's start stood in the prompt, the reply may begin with the recipient. `channels` says what is
//! thinking then. Source: openai/harmony, docs/format.md; replies of gpt-oss through `OpenRouter` and MLX, November 2026.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static HARMONY: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["<|call|>"],
    steps: &[
        Step::new(
            Gap::None,
            Rest::Prose,
            &[(Token::Mark("<|start|>assistant"), 1), (Token::Mark("<|channel|>commentary"), 4)],
        ),
        Step::new(
            Gap::Line,
            Rest::Prose,
            &[(Token::Mark("<|channel|>commentary"), 4), (Token::Mark("to="), 2)],
        ),
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 3)]),
        Step::new(Gap::Line, Rest::Prose, &[(Token::Mark("<|channel|>commentary"), 6)]),
        Step::new(Gap::Line, Rest::Prose, &[(Token::Mark("to="), 5)]),
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 6)]),
        // The type of the arguments, which are JSON whatever it says.
        Step::new(
            Gap::Line,
            Rest::Prose,
            &[
                (Token::Mark("<|constrain|>"), 7),
                (Token::Mark("<|message|>"), 9),
                (Token::Word(Capture::Nothing), 8),
            ],
        ),
        Step::new(Gap::Line, Rest::Prose, &[(Token::Word(Capture::Nothing), 8)]),
        Step::new(Gap::Line, Rest::Prose, &[(Token::Mark("<|message|>"), 9)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Object(Capture::Arguments), 10)]),
        Step::new(Gap::Any, Rest::Whole, &[(Token::Mark("<|call|>"), DONE)]),
    ],
};

pub(super) static STRIPPED: Form = Form {
    marked: true,
    at: Place::Channel,
    closes: &[],
    steps: &[
        Step::new(
            Gap::None,
            Rest::Prose,
            &[
                (Token::Mark("assistant"), 1),
                (Token::Mark("commentary"), 2),
                (Token::Mark("to=functions."), 4),
            ],
        ),
        Step::new(
            Gap::Line,
            Rest::Prose,
            &[(Token::Mark("commentary"), 2), (Token::Mark("to=functions."), 4)],
        ),
        Step::new(Gap::Line, Rest::Prose, &[(Token::Mark("to=functions."), 3)]),
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 5)]),
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Recipient), 5)]),
        // What is left of the channel, the type and the message's start.
        Step::new(
            Gap::Line,
            Rest::Prose,
            &[
                (Token::Mark("<|channel|>commentary"), 5),
                (Token::Mark("<|constrain|>"), 6),
                (Token::Mark("<|message|>"), 8),
                (Token::Word(Capture::Nothing), 7),
                (Token::Object(Capture::Arguments), 9),
            ],
        ),
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Nothing), 7)]),
        Step::new(
            Gap::Any,
            Rest::Prose,
            &[
                (Token::Mark("<|message|>"), 8),
                (Token::Mark("="), 8),
                (Token::Object(Capture::Arguments), 9),
                (Token::Word(Capture::Nothing), 8),
            ],
        ),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Arguments), 9)]),
        Step::new(
            Gap::Any,
            Rest::Whole,
            &[
                (Token::Mark("<|call|>"), DONE),
                (Token::Mark("assistantcommentary to=functions."), 3),
                (Token::Mark("assistant to=functions."), 4),
            ],
        ),
    ],
};
