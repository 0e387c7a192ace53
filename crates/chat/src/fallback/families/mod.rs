//! All supported ways to write calls: one file for each family, one line in the table.

use serde::{Deserialize, Serialize};

use super::grammar::Form;

mod anthropic;
mod apertus;
mod command_r;
mod deepseek;
mod firefunction;
mod functionary;
pub(super) mod gemma;
mod gigachat;
mod glm;
mod granite;
mod harmony;
mod hermes;
mod internlm;
mod kimi;
mod llama;
mod lm_studio;
mod minimax;
mod mistral;
mod named;
mod nemotron;
mod olmo;
mod plain;
mod pythonic;
mod qwen_coder;
mod step;
mod xlam;

macro_rules! families {
    ($($name:ident => $form:path,)+) => {
        /// One way to write calls.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(in crate::fallback) enum Family {
            $($name,)+
        }

        impl Family {
            /// All families. If two forms are complete at the same character, the first one counts.
            pub(in crate::fallback) const ALL: &[Self] = &[$(Self::$name,)+];

            pub(in crate::fallback) fn form(self) -> &'static Form {
                match self {
                    $(Self::$name => &$form,)+
                }
            }
        }
    };
}

families! {
    Hermes => hermes::HERMES,
    Qwen3Coder => qwen_coder::QWEN3_CODER,
    Glm => glm::GLM,
    LongCat => glm::LONGCAT,
    Functionary31 => functionary::FUNCTIONARY_31,
    Functionary32 => functionary::FUNCTIONARY_32,
    Mistral => mistral::MISTRAL,
    PythonTag => llama::PYTHON_TAG,
    DeepSeek => deepseek::DEEPSEEK,
    DeepSeekDsml => deepseek::DSML,
    DeepSeekDsml41 => deepseek::DSML_41,
    Step3 => step::STEP_3,
    Kimi => kimi::KIMI,
    CommandR => command_r::COMMAND_R,
    CommandR7b => command_r::COMMAND_R7B,
    GemmaToolCode => gemma::TOOL_CODE,
    FunctionGemma => gemma::FUNCTION_GEMMA,
    Gemma4 => gemma::GEMMA_4,
    Granite => granite::GRANITE,
    LmStudio => lm_studio::LM_STUDIO,
    MiniMaxM1 => minimax::MINIMAX_M1,
    MiniMaxM2 => minimax::MINIMAX_M2,
    Anthropic => anthropic::ANTHROPIC,
    AnthropicNamespace => anthropic::NAMESPACE,
    AnthropicTags => anthropic::TAGS,
    Olmo3 => olmo::OLMO_3,
    Apertus => apertus::APERTUS,
    InternLm2 => internlm::INTERNLM_2,
    GigaChat3 => gigachat::GIGACHAT_3,
    Harmony => harmony::HARMONY,
    HarmonyStripped => harmony::STRIPPED,
    Nemotron => nemotron::NEMOTRON,
    Lfm2 => pythonic::LFM2,
    FireFunction => firefunction::FIREFUNCTION,
    JsonLine => plain::LINE,
    JsonFence => plain::FENCE,
    Xlam => xlam::XLAM,
    PythonicList => pythonic::LIST,
    HermesOther => hermes::OTHER,
    Named => named::NAMED,
}

/// The steps of calls as JSON objects between marks, one by one or in an array: opening marks, the meaning of a
/// mismatch after the objects, and the tokens after them.
macro_rules! json_calls {
    ([$($open:literal),+], $on_mismatch:expr, [$($after:expr),*]) => {{
        use crate::fallback::grammar::{Capture, Gap, OnMismatch, Step, Token};
        &[
            Step::new(Gap::None, OnMismatch::Prose, &[$((Token::Literal($open), 1)),+]),
            Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Object), 2), (Token::Literal("["), 3)]),
            Step::new(Gap::Any, $on_mismatch, &[$($after),*]),
            Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Object(Capture::Object), 4), (Token::Literal("]"), 2)]),
            Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Literal(","), 3), (Token::Literal("]"), 2)]),
            // After an opening mark in place of the closing one.
            Step::new(
                Gap::Any,
                OnMismatch::Unclosed,
                &[(Token::Object(Capture::Object), 2), (Token::Literal("["), 3)],
            ),
        ]
    }};
}

/// The steps of calls as tags with a `name` attribute and a tag for each argument.
macro_rules! tag_calls {
    ($open:literal, $close:literal, $invoke:literal, $invoke_close:literal, $parameter:literal, $parameter_close:literal) => {{
        use crate::fallback::grammar::{Capture, DONE, Gap, OnMismatch, Step, Token};
        &[
            Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal($open), 1)]),
            Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal($invoke), 2)]),
            Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), 3)]),
            Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("\""), 4)]),
            Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal(">"), 5)]),
            Step::new(
                Gap::Any,
                OnMismatch::Malformed,
                &[(Token::Literal($parameter), 6), (Token::Literal($invoke_close), 10)],
            ),
            Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Word(Capture::Key), 7)]),
            Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Literal("\""), 8)]),
            Step::new(Gap::Line, OnMismatch::Malformed, &[(Token::Literal(">"), 9)]),
            Step::new(
                Gap::None,
                OnMismatch::Malformed,
                &[(Token::Raw(Capture::Value, $parameter_close, Some('<')), 5)],
            ),
            Step::new(
                Gap::Any,
                OnMismatch::Unclosed,
                &[(Token::Literal($invoke), 2), (Token::Literal($close), DONE)],
            ),
        ]
    }};
}

use {json_calls, tag_calls};
