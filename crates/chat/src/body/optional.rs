//! The optional members of a request, without which a reply means the same. A server that names one in a rejection gets
//! the request without it, whatever the wording. `tools`, `response_format`, `stop` and all members that are not listed
//! here are never omitted.

use serde::{Deserialize, Serialize};

/// Words that name all members of a group.
const SAMPLING: &[&str] = &["sampling"];
const PENALTY: &[&str] = &["penalty", "penalties"];

/// The members, each with other words for it.
const MEMBERS: [(&str, &[&str]); 38] = [
    ("temperature", SAMPLING),
    ("top_p", SAMPLING),
    ("top_k", SAMPLING),
    ("top_a", SAMPLING),
    ("min_p", SAMPLING),
    ("typical_p", SAMPLING),
    ("top_n_sigma", SAMPLING),
    ("mirostat", SAMPLING),
    ("mirostat_tau", SAMPLING),
    ("mirostat_eta", SAMPLING),
    ("dynatemp_range", SAMPLING),
    ("dynatemp_exponent", SAMPLING),
    ("xtc_probability", SAMPLING),
    ("xtc_threshold", SAMPLING),
    ("presence_penalty", PENALTY),
    ("frequency_penalty", PENALTY),
    ("repetition_penalty", PENALTY),
    ("repeat_penalty", PENALTY),
    ("repeat_last_n", PENALTY),
    ("length_penalty", PENALTY),
    ("no_repeat_ngram_size", PENALTY),
    ("dry_multiplier", PENALTY),
    ("dry_base", PENALTY),
    ("dry_allowed_length", PENALTY),
    ("dry_penalty_last_n", PENALTY),
    ("seed", &[]),
    ("random_seed", &[]),
    ("stream_options", &["include_usage"]),
    ("usage", &[]),
    ("return_progress", &[]),
    ("timings_per_token", &[]),
    ("cache_prompt", &[]),
    ("cache_control", &[]),
    ("prompt_cache_key", &[]),
    ("prompt_cache_options", &[]),
    ("prompt_cache_retention", &[]),
    ("parallel_tool_calls", &[]),
    ("eager_input_streaming", &[]),
];

/// Returns the letters and digits of a word, in lower case.
fn letters(word: &str) -> impl Iterator<Item = u8> {
    word.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase())
}

/// An optional member of a request: its position in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&str")]
pub struct OptionalMember(u8);

impl OptionalMember {
    /// The number of members.
    pub(super) const COUNT: usize = MEMBERS.len();

    /// Returns all members.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).take(Self::COUNT).map(Self)
    }

    /// Returns the member called `name`, if it is optional.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|member| member.name() == name)
    }

    /// Returns the name of the member.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    pub(super) fn index(self) -> u32 {
        u32::from(self.0)
    }

    /// Whether the message of a server names the member: as a word of its own, also in camel case.
    pub(super) fn is_named_in(self, message: &str) -> bool {
        let (name, others) = self.names();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        message.split(|c| !is_part(c)).any(|word| {
            letters(word).eq(letters(name)) || others.iter().any(|other| letters(word).eq(letters(other)))
        })
    }

    fn names(self) -> (&'static str, &'static [&'static str]) {
        MEMBERS[usize::from(self.0)]
    }
}

impl From<OptionalMember> for &'static str {
    fn from(member: OptionalMember) -> Self {
        member.name()
    }
}

impl TryFrom<String> for OptionalMember {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::named(&name).ok_or_else(|| format!("unknown optional member `{name}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_named_by_a_word() {
        let named = |message: &str| -> Vec<&str> {
            OptionalMember::all()
                .filter(|member| member.is_named_in(message))
                .map(OptionalMember::name)
                .collect()
        };
        for (message, expected) in [
            ("invalid temperature: only 1 is allowed for this model", &["temperature"][..]),
            // xAI
            ("Argument not supported on this model: presencePenalty", &["presence_penalty"]),
            ("`temperature` and `top_p` cannot both be specified", &["temperature", "top_p"]),
            ("messages.0.content.1.cache_control: Extra inputs are not permitted", &["cache_control"]),
            ("top-k is not supported", &["top_k"]),
            ("include_usage: unknown field", &["stream_options"]),
            ("temperatures in the prompt; seeded; top_pk", &[]),
            ("tools, response_format and stop are not supported", &[]),
        ] {
            assert_eq!(named(message), expected, "{message}");
        }
        assert_eq!(named("Sampling parameters are fixed for this model").len(), 14);
        assert!(
            ["tools", "response_format", "stop"].iter().all(|name| OptionalMember::named(name).is_none())
        );
    }
}
