//! DeepSeek's marks, between them `<steptml:invoke name="…">` with a tag for each argument: Step 3. Step 3.5 writes as Qwen3-Coder.
//!
//! Source: the chat template of stepfun-ai/step3 and `SGLang`'s parser for it, November 2026.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static STEP_3: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
    steps: &[
        Step::new(
            Gap::None,
            Rest::Prose,
            &[(Token::Mark("<｜tool▁calls▁begin｜>"), 1), (Token::Mark("<｜tool▁call▁begin｜>"), 2)],
        ),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("<｜tool▁call▁begin｜>"), 2)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Word(Capture::Nothing), 3)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("<｜tool▁sep｜>"), 4)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("<steptml:invoke name=\""), 5)]),
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 6)]),
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("\">"), 7)]),
        Step::new(
            Gap::Any,
            Rest::Inside,
            &[(Token::Mark("<steptml:parameter name=\""), 8), (Token::Mark("</steptml:invoke>"), 11)],
        ),
        Step::new(Gap::None, Rest::Inside, &[(Token::Word(Capture::Key), 9)]),
        Step::new(Gap::None, Rest::Inside, &[(Token::Mark("\">"), 10)]),
        Step::new(
            Gap::None,
            Rest::Inside,
            &[(Token::Raw(Capture::Value, "</steptml:parameter>", Some('<')), 7)],
        ),
        Step::new(
            Gap::Any,
            Rest::Closing,
            &[(Token::Mark("<｜tool▁call▁end｜>"), 12), (Token::Mark("<｜tool▁calls▁end｜>"), DONE)],
        ),
        Step::new(Gap::Any, Rest::Whole, &[(Token::Mark("<｜tool▁calls▁end｜>"), DONE)]),
    ],
};
