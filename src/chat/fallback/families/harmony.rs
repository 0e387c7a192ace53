//! `<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}<|call|>`: gpt-oss, in OpenAI's harmony
//! format. The recipient may stand before the channel as well.
//!
//! The `analysis` channel is the model's thinking (`reasoning`): what stands there is no call, whoever it is addressed
//! to. Commentary without a recipient is text. Source: openai/harmony, docs/format.md.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Rest, Step, Token};

pub(super) static HARMONY: Form = Form {
    marked: true,
    line_start: false,
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
