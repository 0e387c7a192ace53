//! Lists of calls as Python writes them: `[name(a="x"), other(b=1)]`. LFM2 puts marks around its list, Llama 4 at
//! times; without them, it must be all there is on its lines.
//!
//! Source: the chat templates of LiquidAI/LFM2-1.2B and meta-llama/Llama-4-Scout, and vLLM's tool parsers for them.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static LFM2: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["<|tool_call_end|>", "<|python_end|>"],
    steps: &[
        Step::new(
            Gap::None,
            Rest::Prose,
            &[(Token::Mark("<|tool_call_start|>"), 1), (Token::Mark("<|python_start|>"), 1)],
        ),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("["), 2), (Token::Object(Capture::Object), 4)]),
        Step::new(
            Gap::Any,
            Rest::Inside,
            &[(Token::Mark("]"), 4), (Token::Object(Capture::Object), 3), (Token::Call, 3)],
        ),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Mark(","), 2), (Token::Mark("]"), 4)]),
        Step::new(
            Gap::Any,
            Rest::Closing,
            &[(Token::Mark("<|tool_call_end|>"), DONE), (Token::Mark("<|python_end|>"), DONE)],
        ),
    ],
};

pub(super) static LIST: Form = Form {
    marked: false,
    at: Place::Line,
    closes: &[],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("["), 1)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Call, 2)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark(","), 1), (Token::Mark("]"), 3)]),
        Step::new(Gap::Line, Rest::Line, &[(Token::Mark("\n"), DONE)]),
    ],
};
