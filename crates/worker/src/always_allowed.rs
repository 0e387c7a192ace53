//! The answer "always" to requests for approval.

use std::collections::HashSet;

/// The tools whose calls the user always allows, for one generation of the tools, because a reload may change a tool. A
/// load at the start of a request sends no event, so every question names the [generation](crate::Worker::generation).
#[derive(Debug, Clone, Default)]
pub struct AlwaysAllowed {
    generation: u64,
    tools: HashSet<String>,
}

impl AlwaysAllowed {
    /// Returns whether the calls of `tool` are allowed. Those of another generation are forgotten.
    pub fn contains(&mut self, tool: &str, generation: u64) -> bool {
        self.enter(generation);
        self.tools.contains(tool)
    }

    /// Allows the calls of `tool`, whose user answered for `generation`.
    pub fn insert(&mut self, tool: String, generation: u64) {
        self.enter(generation);
        self.tools.insert(tool);
    }

    /// Forgets all tools.
    pub fn clear(&mut self) {
        self.tools.clear();
    }

    fn enter(&mut self, generation: u64) {
        if std::mem::replace(&mut self.generation, generation) != generation {
            self.tools.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_generation_is_asked_about_again() {
        let mut allowed = AlwaysAllowed::default();
        assert!(!allowed.contains("drop", 1));
        allowed.insert(String::from("drop"), 1);
        assert!(allowed.contains("drop", 1) && !allowed.contains("other", 1));
        assert!(!allowed.contains("drop", 2));
        assert!(!allowed.contains("drop", 1), "an earlier generation is asked about again");
    }
}
