//! What an analyzer receives and returns.

use std::sync::Arc;

use deftool_lang::spec::Tool;
use serde::{Deserialize, Serialize};

use crate::script::Script;
use crate::script::module::{module_path, without_extension};
use crate::types::{definitions, test_definitions};

/// What all scripts of a project share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definitions {
    /// The definition file ([`definitions`](crate::definitions)).
    pub scripts: Arc<str>,
    /// More definitions for test scripts ([`test_definitions`](crate::test_definitions)).
    pub tests: Arc<str>,
}

impl Definitions {
    /// Creates the definitions of a project with these tools.
    pub fn of<'t>(tools: impl IntoIterator<Item = &'t Tool>) -> Self {
        Self { scripts: Arc::from(definitions(tools)), tests: Arc::from(test_definitions()) }
    }
}

/// A script, module or test script, with everything that it requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptUnit {
    /// The file name in findings.
    pub file: String,
    /// The text.
    pub text: Arc<str>,
    /// The modules that it requires, directly or indirectly.
    pub modules: Arc<[ModuleText]>,
    /// The type of each parameter of the function that it returns. `None`: unknown.
    pub parameters: Vec<Option<String>>,
    /// Whether it is a test script, which has more globals.
    pub is_test: bool,
}

/// The text of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleText {
    /// The file name in findings.
    pub file: String,
    /// The text.
    pub text: Arc<str>,
}

impl ScriptUnit {
    /// Creates the unit of the script of a tool, with the types of its parameters. Returns `None` if the script is not
    /// UTF-8.
    pub fn of_script(script: &Script, parameters: Vec<Option<String>>) -> Option<Self> {
        let text = std::str::from_utf8(&script.source).ok()?;
        let modules = script.modules.iter().map(|module| ModuleText {
            file: module.file.clone(),
            text: Arc::from(String::from_utf8_lossy(&module.source)),
        });
        Some(Self {
            file: script.file.clone(),
            text: Arc::from(text.strip_prefix('\u{FEFF}').unwrap_or(text)),
            modules: modules.collect(),
            parameters,
            is_test: false,
        })
    }

    /// Returns the text of `file`: the unit or one of its modules.
    pub fn text_of(&self, file: &str) -> Option<&Arc<str>> {
        if file == self.file {
            return Some(&self.text);
        }
        self.modules.iter().find(|module| module.file == file).map(|module| &module.text)
    }

    /// Returns the module that `file`, the unit or one of its modules, requires as `path`.
    pub fn required(&self, file: &str, path: &str) -> Option<&ModuleText> {
        let path = module_path(file, path).ok()?;
        self.modules.iter().find(|module| without_extension(&module.file) == path)
    }
}

/// A type error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeProblem {
    /// The file of the unit or of a module.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The columns, in bytes from 0: the start, and the exclusive end, which may be in a later line.
    pub columns: (usize, usize),
    /// The message, one clause.
    pub message: String,
}
