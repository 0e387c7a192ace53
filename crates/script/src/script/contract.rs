//! Static analysis of a script: whether it compiles, what its top level returns, its parameters and the globals it
//! uses.
//!
//! Input: a [`Script`](crate::Script) or a [`Module`](crate::Module). Output: a [`Contract`], which the layer above
//! compares with the spec, or the [`LoadError`] that every call returns. Nothing is executed: the parameters are read
//! from the compiled bytecode.

use deftool_lang::tool::{ToolError, ToolErrorKind};
use serde::{Deserialize, Serialize};

use super::bytecode::{self, GlobalUse, MainReturn};
use crate::limits::COMPILE_LIMIT;

/// The reason why a script cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{file}{}: {message}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct LoadError {
    /// The script's file, as in [`Script::file`](crate::Script::file).
    pub file: String,
    /// The line, from 1, if known.
    pub line: Option<usize>,
    /// The message.
    pub message: String,
}

impl LoadError {
    pub(crate) fn into_tool_error(self) -> ToolError {
        ToolError::new(ToolErrorKind::Load, self.to_string())
    }
}

/// The result of analysing a script that compiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// The value that the top level returns.
    pub returned: Returned,
    /// The globals that it uses, sorted by line. Each kind of use of each global is listed once.
    pub globals: Vec<GlobalUse>,
}

/// The value that a top level returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Returned {
    /// A function written in the file.
    Function {
        /// The parameter names, in order.
        parameters: Vec<String>,
        /// Whether the parameters end with `...`.
        is_vararg: bool,
        /// The first line, from 1.
        line: usize,
    },
    /// Nothing, or a value that is not a function: every call would fail. Holds the kind of value, as in `a table`.
    NoFunction(String),
    /// Cannot be determined without running the script.
    Unknown,
}

pub(crate) fn contract_of(bytecode: &[u8]) -> Contract {
    let Some(chunk) = bytecode::read(bytecode) else {
        return Contract { returned: Returned::Unknown, globals: Vec::new() };
    };
    let returned = match chunk.returned {
        MainReturn::Function(function) => Returned::Function {
            parameters: function.parameters,
            is_vararg: function.is_vararg,
            line: function.line,
        },
        MainReturn::Other(kind) => Returned::NoFunction(String::from(kind)),
        MainReturn::Unknown => Returned::Unknown,
    };
    Contract { returned, globals: chunk.globals }
}

/// Returns the error for a source that reached [`COMPILE_LIMIT`].
pub(crate) fn compile_timeout(file: &str) -> LoadError {
    let message = format!("the script takes longer than {} s to compile", COMPILE_LIMIT.as_secs());
    LoadError { file: file.to_owned(), line: None, message }
}
