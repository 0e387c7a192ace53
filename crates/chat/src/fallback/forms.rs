//! The forms that are read in the replies of a model: those of its name and of its chat template, or all marked forms if
//! both are unknown. None is read from a host that returns calls itself.

use serde::{Deserialize, Serialize};

use super::families::Family;
use super::grammar::Token;

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

    /// Returns the forms of both sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    pub(crate) fn contains(self, family: Family) -> bool {
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
    /// Returns the forms of a model. `is_native`: whether its server returns all calls itself.
    pub(crate) fn of(of_model: FormSet, is_native: bool) -> Self {
        Self { of_model, is_native, all_unmarked: false }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_name_their_forms() {
        let forms: Vec<Family> = FormSet::of_template("{{- '<|tool_calls_section_begin|>' }}").into();
        assert_eq!(forms, [Family::Kimi]);
        assert!(FormSet::of_template("{{ messages }}").is_empty());
    }
}
