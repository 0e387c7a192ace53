//! Preview features: what a user can try before it is stable.

use super::nearest;

/// A feature that may change or leave in any version, until it is stable.
#[derive(Debug, Clone, Copy)]
pub struct PreviewFeature {
    /// The name, in kebab-case.
    pub name: &'static str,
    /// What it adds, in one sentence.
    pub description: &'static str,
    /// The first version with the feature.
    pub since: &'static str,
    /// The state in this version.
    pub state: PreviewState,
}

/// The state of a preview feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviewState {
    /// It may change or leave.
    Preview,
    /// It needs no name since this version.
    Stable(&'static str),
    /// It left in this version.
    Retired(&'static str),
}

/// All preview features, including those that are stable or retired.
pub static PREVIEWS: [PreviewFeature; 3] = [
    PreviewFeature {
        name: "script-types",
        description: "`check --types` checks the types of scripts with the program `deftool-analyze`.",
        since: "0.1.0",
        state: PreviewState::Preview,
    },
    PreviewFeature {
        name: DIALECTS,
        description: "`defdialect` in a spec file describes a model server, and `:dialect` of a worker selects it.",
        since: "0.1.0",
        state: PreviewState::Preview,
    },
    PreviewFeature {
        name: ASKS,
        description: "`:asks` of a tool and `defask` hold prompts with the calls that a model should make.",
        since: "0.1.0",
        state: PreviewState::Preview,
    },
];

/// The preview feature of `defdialect`.
pub const DIALECTS: &str = "dialects";

/// The preview feature of `:asks` and `defask`.
pub const ASKS: &str = "asks";

/// The reason why a name enables no feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewProblem {
    /// The reason.
    pub message: String,
    /// The feature with a similar name.
    pub similar: Option<&'static str>,
    /// What to do.
    pub help: String,
}

/// Returns why `name` enables no feature; `None` if it enables one.
pub fn preview_problem(name: &str) -> Option<PreviewProblem> {
    problem_among(&PREVIEWS, name)
}

fn problem_among(features: &[PreviewFeature], name: &str) -> Option<PreviewProblem> {
    let without_effect =
        |message| Some(PreviewProblem { message, similar: None, help: String::from("remove the name") });
    match features.iter().find(|feature| feature.name == name).map(|feature| feature.state) {
        Some(PreviewState::Preview) => None,
        Some(PreviewState::Stable(version)) => {
            without_effect(format!("the feature `{name}` is stable since {version}"))
        }
        Some(PreviewState::Retired(version)) => {
            without_effect(format!("the feature `{name}` was removed in {version}"))
        }
        None => {
            let active = features.iter().filter(|feature| feature.state == PreviewState::Preview);
            let names: Vec<&'static str> = active.map(|feature| feature.name).collect();
            let similar = nearest(name, names.iter().copied());
            let list = || format!("preview features: {}", names.join(", "));
            let help = similar.map_or_else(list, |near| format!("did you mean `{near}`?"));
            Some(PreviewProblem { message: format!("unknown preview feature `{name}`"), similar, help })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_answered_by_the_state_of_its_feature() {
        let feature = |name, state| PreviewFeature { name, description: "", since: "0.1.0", state };
        let features = [
            feature("new-words", PreviewState::Preview),
            feature("old-words", PreviewState::Stable("0.3.0")),
            feature("bad-words", PreviewState::Retired("0.4.0")),
        ];
        for (name, expected) in [
            ("new-words", None),
            ("old-words", Some(("the feature `old-words` is stable since 0.3.0", "remove the name"))),
            ("bad-words", Some(("the feature `bad-words` was removed in 0.4.0", "remove the name"))),
            ("new-word", Some(("unknown preview feature `new-word`", "did you mean `new-words`?"))),
            ("other", Some(("unknown preview feature `other`", "preview features: new-words"))),
        ] {
            let problem = problem_among(&features, name);
            let found = problem.as_ref().map(|problem| (problem.message.as_str(), problem.help.as_str()));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn features_have_names_and_descriptions() {
        for PreviewFeature { name, description, .. } in PREVIEWS {
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{name}");
            assert!(description.ends_with('.'), "{name}");
        }
    }
}
