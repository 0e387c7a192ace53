//! The forms that are read in the replies of a model: those of its name and of its chat template, or all marked forms if
//! both are unknown. None is read from a host that returns calls itself.

use serde::{Deserialize, Serialize};

use super::families::Family;
use super::grammar::Token;

/// Hosts whose calls are native. A leading dot matches every host of the domain. Gateways are not included, nor are
/// vendors whose servers are known to leak the text of calls.
const NATIVE_HOSTS: [&str; 6] = [
    "api.openai.com",
    ".openai.azure.com",
    "api.anthropic.com",
    "generativelanguage.googleapis.com",
    "api.x.ai",
    "api.mistral.ai",
];

/// A set of forms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Family>", into = "Vec<Family>")]
pub struct FormSet(u64);

impl FormSet {
    /// Returns the marked forms that a chat template contains: those whose opening mark it contains.
    pub fn of_template(template: &str) -> Self {
        let opens = |family: &Family| {
            let form = family.form();
            let mut tokens = form.steps.first().into_iter().flat_map(|step| step.next);
            let contains =
                |(token, _): &(Token, u8)| matches!(token, Token::Literal(mark) if template.contains(mark));
            form.marked && tokens.any(contains)
        };
        Family::ALL.iter().copied().filter(opens).collect()
    }

    /// Returns the forms of the models with this name: the name of a repository, of a file or of a deployment.
    pub fn of_name(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let is_in_name = |word: &str| {
            name.match_indices(word).any(|(at, _)| {
                !name.get(..at).unwrap_or_default().ends_with(|before: char| before.is_ascii_alphanumeric())
            })
        };
        let writes = |family: &Family| family.models().iter().any(|word| is_in_name(word));
        Family::ALL.iter().copied().filter(writes).collect()
    }

    /// Returns the forms of both sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    fn contains(self, family: Family) -> bool {
        self.0 & bit(family) != 0
    }
}

const fn bit(family: Family) -> u64 {
    1 << family as u64
}

impl FromIterator<Family> for FormSet {
    fn from_iter<T: IntoIterator<Item = Family>>(families: T) -> Self {
        Self(families.into_iter().fold(0, |set, family| set | bit(family)))
    }
}

impl From<Vec<Family>> for FormSet {
    fn from(families: Vec<Family>) -> Self {
        families.into_iter().collect()
    }
}

impl From<FormSet> for Vec<Family> {
    fn from(set: FormSet) -> Self {
        Family::ALL.iter().copied().filter(|family| set.contains(*family)).collect()
    }
}

/// The forms that are read in a reply. All others are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forms {
    /// The forms of the model. Empty: unknown.
    of_model: FormSet,
    /// The host returns calls itself.
    is_native: bool,
    /// The model was instructed to write calls, so that all unmarked forms are read.
    pub(super) all_unmarked: bool,
}

impl Forms {
    /// Returns the forms of a model. `url`: the URL of the API. `reported`: the forms of the model's names and template
    /// that its server reports.
    pub fn of(url: &str, model: &str, reported: FormSet) -> Self {
        let of_model = FormSet::of_name(model).union(reported);
        Self { of_model, is_native: is_native(url), all_unmarked: false }
    }

    /// Returns the forms of a model that was instructed to write calls as text.
    #[must_use]
    pub fn with_unmarked(self) -> Self {
        Self { all_unmarked: true, ..self }
    }

    /// All marked forms.
    pub(super) const MARKED: Self = Self { of_model: FormSet(0), is_native: false, all_unmarked: false };

    /// All forms.
    pub(super) const ALL: Self = Self { all_unmarked: true, ..Self::MARKED };

    /// Whether a form is read.
    pub(crate) fn read(&self, family: Family) -> Reads {
        let is_marked = family.form().marked;
        if !is_marked && self.all_unmarked {
            Reads::Always
        } else if self.is_native {
            Reads::Never(NotRead::Native)
        } else if is_marked && (self.of_model.is_empty() || self.of_model.contains(family)) {
            Reads::Always
        } else if is_marked {
            Reads::Never(NotRead::OtherModel)
        } else if self.of_model.contains(family) {
            Reads::Alone
        } else {
            Reads::Never(NotRead::Unmarked)
        }
    }

    /// Whether all unmarked forms are read.
    pub(crate) fn reads_unmarked(&self) -> bool {
        self.all_unmarked
    }

    /// Whether any form is read, so that text in an unknown form is a malformed call.
    pub(crate) fn reads_any(&self) -> bool {
        !self.is_native
    }
}

/// Whether a form is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    Always,
    /// Only if the reply consists of it, and as a valid call of a known tool.
    Alone,
    Never(NotRead),
}

/// The reason why a call in a text is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NotRead {
    /// The host returns calls itself.
    Native,
    /// Models with this name or template write other forms.
    OtherModel,
    /// The form has no marks.
    Unmarked,
    /// Something other than a closing mark follows it.
    NotLast,
    /// It does not begin a line.
    InLine,
    InCode,
    OtherRole,
    /// A message of the user or of a tool contains it.
    Copy,
}

fn is_native(url: &str) -> bool {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    NATIVE_HOSTS.iter().any(|known| host == *known || (known.starts_with('.') && host.ends_with(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_known_by_their_names() {
        let forms = |families: &[Family]| families.iter().copied().collect::<FormSet>();
        for (name, families) in [
            ("Qwen/Qwen3-8B", &[Family::Hermes, Family::Qwen3Coder][..]),
            ("unsloth/GLM-4.6-GGUF:Q4_K_M", &[Family::Glm]),
            ("/models/gpt-oss-20b.gguf", &[Family::Harmony, Family::HarmonyStripped]),
            ("starling-7b", &[]),
            ("default", &[]),
        ] {
            assert_eq!(FormSet::of_name(name), forms(families), "{name}");
        }
        let both = FormSet::of_name("DeepSeek-R1-Distill-Qwen-7B");
        assert!(both.contains(Family::DeepSeek) && both.contains(Family::Hermes));
    }

    #[test]
    fn templates_name_their_forms() {
        let forms: Vec<Family> = FormSet::of_template("{{- '<|tool_calls_section_begin|>' }}").into();
        assert_eq!(forms, [Family::Kimi]);
        assert!(FormSet::of_template("{{ messages }}").is_empty());
    }

    #[test]
    fn only_the_host_decides_that_calls_are_native() {
        for (url, expected) in [
            ("https://api.openai.com/v1", true),
            ("https://me.openai.azure.com:443/openai", true),
            ("https://api.x.ai", true),
            ("https://openrouter.ai/api/v1/api.openai.com", false),
            ("https://api.openai.com.example.org/v1", false),
            ("https://api.openai.com@example.org/v1", false),
            ("https://api.deepseek.com/v1", false),
            ("http://127.0.0.1:8080/v1", false),
            ("", false),
        ] {
            assert_eq!(is_native(url), expected, "{url}");
        }
    }
}
