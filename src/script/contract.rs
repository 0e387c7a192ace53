//! What a script is, seen without running it: whether it compiles, what its top level returns, which parameters,
//! which globals it uses.
//!
//! In: a [`Script`] or a [`Module`](super::Module). Out: a [`Contract`], from which the layer above makes findings against the spec, or the
//! [`LoadProblem`] that every call would meet. Nothing is executed: the parameters are read from the compiled
//! bytecode.

use serde::{Deserialize, Serialize};

use super::Script;
use super::bytecode::{self, GlobalUse, MainReturn};
use crate::tool::{ToolError, ToolErrorKind};

/// A script that cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{file}{}: {message}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct LoadProblem {
    /// The script's file, as its [`Script`] names it.
    pub file: String,
    /// The line, from 1, where one is known.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl LoadProblem {
    pub(super) fn into_tool_error(self) -> ToolError {
        ToolError::new(ToolErrorKind::Load, self.to_string())
    }
}

/// What a script that compiles returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// What the top level returns, as far as it can be known.
    pub returned: Returned,
    /// The globals that it uses, in the order of their lines: each kind of use of each once.
    pub globals: Vec<GlobalUse>,
}

/// What a top level returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Returned {
    /// A function written in the file.
    Function {
        /// Its parameters' names, in order.
        parameters: Vec<String>,
        /// Whether `...` follows them.
        is_vararg: bool,
        /// The line that it starts at, from 1.
        line: usize,
    },
    /// Nothing, or something that is not a function: every call would fail. What it is, as in `a table`.
    NoFunction(String),
    /// Something that only running it could tell.
    Unknown,
}

/// Compiles `script` and reads what it returns; never runs it.
///
/// # Errors
/// When it does not compile.
pub fn check_script(script: &Script) -> Result<Contract, LoadProblem> {
    script.compiled.contract(&script.file, &script.source).cloned().map_err(LoadProblem::clone)
}

pub(super) fn contract_of(bytecode: &[u8]) -> Contract {
    let Some(reading) = bytecode::read(bytecode) else {
        return Contract { returned: Returned::Unknown, globals: Vec::new() };
    };
    let returned = match reading.returned {
        MainReturn::Function(function) => Returned::Function {
            parameters: function.parameters,
            is_vararg: function.is_vararg,
            line: function.line,
        },
        MainReturn::Other(what) => Returned::NoFunction(String::from(what)),
        MainReturn::Unknown => Returned::Unknown,
    };
    Contract { returned, globals: reading.globals }
}
