//! Reads of Luau bytecode what a script's top level returns.

/// A function as its bytecode describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FunctionShape {
    pub(super) parameters: Vec<String>,
    pub(super) is_vararg: bool,
    pub(super) line: usize,
}

/// What the main function returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MainReturn {
    Function(FunctionShape),
    Other(&'static str),
    Unknown,
}

pub(super) fn main_return(_bytecode: &[u8]) -> Option<MainReturn> {
    None
}
