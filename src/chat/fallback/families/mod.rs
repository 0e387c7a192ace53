//! Every way to write calls that is read: one file a family, one line in the table.

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
        pub(in crate::chat::fallback) enum Family {
            $($name,)+
        }

        impl Family {
            /// All of them. Of two that are whole at the same character, the first counts.
            pub(in crate::chat::fallback) const ALL: &[Self] = &[$(Self::$name,)+];

            pub(in crate::chat::fallback) fn form(self) -> &'static Form {
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

/// The steps of calls as JSON objects between marks, one by one or in an array: `open`s, what may be missing after
/// them, what may follow them.
macro_rules! json_calls {
    ([$($open:literal),+], $rest:expr, [$($after:expr),*]) => {{
        use crate::chat::fallback::grammar::{Capture, Gap, Rest, Step, Token};
        &[
            Step::new(Gap::None, Rest::Prose, &[$((Token::Mark($open), 1)),+]),
            Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Object), 2), (Token::Mark("["), 3)]),
            Step::new(Gap::Any, $rest, &[$($after),*]),
            Step::new(Gap::Any, Rest::Inside, &[(Token::Object(Capture::Object), 4), (Token::Mark("]"), 2)]),
            Step::new(Gap::Any, Rest::Inside, &[(Token::Mark(","), 3), (Token::Mark("]"), 2)]),
            // After the opening mark in the place of the closing one.
            Step::new(
                Gap::Any,
                Rest::Closing,
                &[(Token::Object(Capture::Object), 2), (Token::Mark("["), 3)],
            ),
        ]
    }};
}

/// The steps of calls as tags with a `name` attribute, each argument a tag of its own.
macro_rules! tag_calls {
    ($open:literal, $close:literal, $invoke:literal, $invoke_close:literal, $parameter:literal, $parameter_close:literal) => {{
        use crate::chat::fallback::grammar::{Capture, DONE, Gap, Rest, Step, Token};
        &[
            Step::new(Gap::None, Rest::Prose, &[(Token::Mark($open), 1)]),
            Step::new(Gap::Any, Rest::Prose, &[(Token::Mark($invoke), 2)]),
            Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 3)]),
            Step::new(Gap::None, Rest::Prose, &[(Token::Mark("\""), 4)]),
            Step::new(Gap::Line, Rest::Prose, &[(Token::Mark(">"), 5)]),
            Step::new(
                Gap::Any,
                Rest::Inside,
                &[(Token::Mark($parameter), 6), (Token::Mark($invoke_close), 10)],
            ),
            Step::new(Gap::None, Rest::Inside, &[(Token::Word(Capture::Key), 7)]),
            Step::new(Gap::None, Rest::Inside, &[(Token::Mark("\""), 8)]),
            Step::new(Gap::Line, Rest::Inside, &[(Token::Mark(">"), 9)]),
            Step::new(
                Gap::None,
                Rest::Inside,
                &[(Token::Raw(Capture::Value, $parameter_close, Some('<')), 5)],
            ),
            Step::new(Gap::Any, Rest::Closing, &[(Token::Mark($invoke), 2), (Token::Mark($close), DONE)]),
        ]
    }};
}

use {json_calls, tag_calls};
