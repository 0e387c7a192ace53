//! All supported ways to write calls: a file for each model family, and a line in the table for each form.

use serde::{Deserialize, Serialize};

use super::grammar::Form;

mod anthropic;
mod apertus;
mod command_r;
mod common;
mod deepseek;
mod firefunction;
mod functionary;
mod gemma;
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
mod solar;
mod step;
mod tagged;
mod xlam;

macro_rules! families {
    ($($name:ident => $form:path,)+) => {
        /// One way to write calls.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs)] // named after models; their files document them
        pub enum Family {
            $($name,)+
        }

        impl Family {
            /// All families. If two forms are complete at the same character, the first one counts.
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the name of the family, for reports.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// Whether the form is JSON without marks. Replies are always searched for it, to report it.
            pub(in crate::fallback) fn is_json(self) -> bool {
                matches!(self, Self::JsonLine | Self::JsonFence)
            }

            /// Whether a mark closes the form.
            pub(crate) fn is_closed(self) -> bool {
                !self.form().closes.is_empty()
            }

            pub(in crate::fallback) fn form(self) -> &'static Form {
                match self {
                    $(Self::$name => &$form,)+
                }
            }
        }
    };
}

// Each family with its form. The models that write it are rows of the dialects.
families! {
    Hermes => hermes::HERMES,
    Qwen3Coder => qwen_coder::QWEN3_CODER,
    Glm => glm::GLM,
    LongCat => glm::LONGCAT,
    Hunyuan3 => glm::HUNYUAN_3,
    K2Horizon => glm::K2_HORIZON,
    Functionary31 => functionary::FUNCTIONARY_31,
    Functionary32 => functionary::FUNCTIONARY_32,
    Mistral => mistral::MISTRAL,
    PythonTag => llama::PYTHON_TAG,
    DeepSeek => deepseek::DEEPSEEK,
    DeepSeekDsml => deepseek::DSML,
    DeepSeekDsml41 => deepseek::DSML_41,
    Step3 => step::STEP_3,
    Kimi => kimi::KIMI,
    KimiK3 => kimi::KIMI_K3,
    Solar => solar::SOLAR,
    CommandR => command_r::COMMAND_R,
    CommandR7b => command_r::COMMAND_R7B,
    GemmaToolCode => gemma::TOOL_CODE,
    FunctionGemma => gemma::FUNCTION_GEMMA,
    Gemma4 => gemma::GEMMA_4,
    Granite => granite::GRANITE,
    LmStudio => lm_studio::LM_STUDIO,
    MiniMaxM1 => minimax::MINIMAX_M1,
    MiniMaxM2 => minimax::MINIMAX_M2,
    MiniMaxM3 => minimax::MINIMAX_M3,
    MiniMaxM3Plain => minimax::MINIMAX_M3_PLAIN,
    MiniMaxArrows => minimax::ARROWS,
    Anthropic => anthropic::ANTHROPIC,
    AnthropicNamespace => anthropic::NAMESPACE,
    AnthropicTags => anthropic::TAGS,
    Muse => tagged::MUSE,
    Dots => tagged::DOTS,
    Grok => tagged::GROK,
    MiniCpm5 => tagged::MINI_CPM5,
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
    PythonCode => gemma::PYTHON_CODE,
    Xlam => xlam::XLAM,
    PythonicList => pythonic::LIST,
    HermesOther => hermes::OTHER,
    Named => named::NAMED,
}
