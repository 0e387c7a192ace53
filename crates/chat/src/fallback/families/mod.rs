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
    ($($name:ident => $form:path, [$($model:literal)*],)+) => {
        /// One way to write calls.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs)] // named after models; their files document them
        pub enum Family {
            $($name,)+
        }

        impl Family {
            /// All families. If two forms are complete at the same character, the first one counts.
            pub(in crate::fallback) const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns the name of the family, for reports.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// Returns the beginnings of words in the names of the models that write the form.
            pub(in crate::fallback) fn models(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => &[$($model),*],)+
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

// Each family with its form and the beginning of a word in the names of the models that write it.
families! {
    Hermes => hermes::HERMES, ["qwen2.5-coder" "qwen" "qwq" "hermes" "smollm" "groq" "granite" "mimo" "ling" "ring" "longcat"
        "internlm"],
    Qwen3Coder => qwen_coder::QWEN3_CODER, ["qwen" "seed-oss" "mimo" "step" "nemotron"],
    Glm => glm::GLM, ["glm" "chatglm" "ling" "ring" "laguna" "spark" "hunyuan"],
    LongCat => glm::LONGCAT, ["longcat"],
    Hunyuan3 => glm::HUNYUAN_3, ["hunyuan" "hy3"],
    K2Horizon => glm::K2_HORIZON, ["k2-horizon"],
    Functionary31 => functionary::FUNCTIONARY_31, ["functionary" "llama"],
    Functionary32 => functionary::FUNCTIONARY_32, ["functionary"],
    Mistral => mistral::MISTRAL, ["mistral" "ministral" "magistral" "mixtral" "devstral" "codestral"],
    PythonTag => llama::PYTHON_TAG, ["llama"],
    DeepSeek => deepseek::DEEPSEEK, ["deepseek"],
    DeepSeekDsml => deepseek::DSML, ["deepseek"],
    DeepSeekDsml41 => deepseek::DSML_41, ["deepseek"],
    Step3 => step::STEP_3, ["step"],
    Kimi => kimi::KIMI, ["kimi"],
    KimiK3 => kimi::KIMI_K3, ["kimi"],
    Solar => solar::SOLAR, ["solar"],
    CommandR => command_r::COMMAND_R, ["command" "c4ai"],
    CommandR7b => command_r::COMMAND_R7B, ["command" "c4ai"],
    GemmaToolCode => gemma::TOOL_CODE, ["gemma"],
    FunctionGemma => gemma::FUNCTION_GEMMA, ["gemma"],
    Gemma4 => gemma::GEMMA_4, ["gemma"],
    Granite => granite::GRANITE, ["granite" "phi-4" "gigachat"],
    LmStudio => lm_studio::LM_STUDIO, ["lm-studio"],
    MiniMaxM1 => minimax::MINIMAX_M1, ["hunyuan" "jamba" "apriel" "minimax"],
    MiniMaxM2 => minimax::MINIMAX_M2, ["minimax"],
    MiniMaxM3 => minimax::MINIMAX_M3, ["minimax"],
    MiniMaxM3Plain => minimax::MINIMAX_M3_PLAIN, ["minimax"],
    MiniMaxArrows => minimax::ARROWS, ["minimax"],
    Anthropic => anthropic::ANTHROPIC, ["claude"],
    AnthropicNamespace => anthropic::NAMESPACE, ["claude"],
    AnthropicTags => anthropic::TAGS, ["claude"],
    Muse => tagged::MUSE, ["muse"],
    Dots => tagged::DOTS, ["dots"],
    Grok => tagged::GROK, ["grok"],
    MiniCpm5 => tagged::MINI_CPM5, ["minicpm"],
    Olmo3 => olmo::OLMO_3, ["olmo"],
    Apertus => apertus::APERTUS, ["apertus"],
    InternLm2 => internlm::INTERNLM_2, ["internlm"],
    GigaChat3 => gigachat::GIGACHAT_3, ["gigachat"],
    Harmony => harmony::HARMONY, ["gpt-oss"],
    HarmonyStripped => harmony::STRIPPED, ["gpt-oss"],
    Nemotron => nemotron::NEMOTRON, ["nemotron"],
    Lfm2 => pythonic::LFM2, ["llama" "lfm2"],
    FireFunction => firefunction::FIREFUNCTION, ["firefunction"],
    JsonLine => plain::LINE, ["qwen2.5-coder" "llama"],
    JsonFence => plain::FENCE, ["qwen2.5-coder"],
    PythonCode => gemma::PYTHON_CODE, [],
    Xlam => xlam::XLAM, ["xlam"],
    PythonicList => pythonic::LIST, [],
    HermesOther => hermes::OTHER, ["qwen2.5-coder"],
    Named => named::NAMED, ["functionary"],
}
