//! What a script is, seen without running it: whether it compiles, what its top level returns, which parameters,
//! which globals it uses.
//!
//! In: a [`Script`] or a [`Module`](super::Module). Out: a [`Contract`], from which the layer above makes findings against the spec, or the
//! [`LoadProblem`] that every call would meet. Nothing is executed: the parameters are read from the compiled
//! bytecode.

use mlua::chunk::Compiler;

use super::bytecode::{self, GlobalUse, MainReturn};
use super::{MAX_SOURCE, Script, error};
use crate::tool::{ToolError, ToolErrorKind};

/// Most times that the word `function` may occur in a source.
const MAX_FUNCTIONS: usize = 5_000;

/// A script that cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// What the top level returns, as far as it can be known.
    pub returned: Returned,
    /// The globals that it uses, in the order of their lines: each kind of use of each once.
    pub globals: Vec<GlobalUse>,
}

/// What a top level returns.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    script.compiled().map(|bytecode| contract_of(&bytecode))
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

/// Compiles `source`, which messages call `file`. The compiler allocates outside any memory limit, so the source is
/// bounded first.
pub(super) fn compile(file: &str, source: &[u8]) -> Result<Vec<u8>, LoadProblem> {
    let problem = |line, message: String| LoadProblem { file: file.to_owned(), line, message };
    if source.len() > MAX_SOURCE {
        return Err(problem(None, format!("the script is longer than {} KiB", MAX_SOURCE / 1024)));
    }
    let text = match std::str::from_utf8(source) {
        Ok(text) if text.starts_with(|first: char| first < '\t') => {
            return Err(problem(None, String::from("the file holds bytecode; only source is run")));
        }
        Ok(text) => text.strip_prefix('\u{FEFF}').unwrap_or(text),
        Err(error) => {
            let before = source.get(..error.valid_up_to()).unwrap_or_default();
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            return Err(problem(Some(line), String::from("the file is not UTF-8 text")));
        }
    };
    // Luau compiles functions in quadratic time: 60,000 take seconds.
    let functions = memchr::memmem::find_iter(text.as_bytes(), "function").take(MAX_FUNCTIONS + 1).count();
    if functions > MAX_FUNCTIONS {
        return Err(problem(None, format!("the script has more than {MAX_FUNCTIONS} functions")));
    }
    Compiler::new().set_optimization_level(1).set_debug_level(2).compile(text).map_err(|error| {
        let message = match &error {
            mlua::Error::SyntaxError { message, .. } => message.clone(),
            other => other.to_string(),
        };
        let (line, message) = split_line(&message);
        problem(line, error::message(message))
    })
}

/// `:3: message` or `3: message` → line 3 and the message.
fn split_line(message: &str) -> (Option<usize>, &str) {
    let text = message.strip_prefix(':').unwrap_or(message);
    match text.split_once(':') {
        Some((line, rest)) => match line.trim().parse() {
            Ok(line) => (Some(line), rest.trim_start()),
            Err(_) => (None, message),
        },
        None => (None, message),
    }
}
