//! The tests of a file, the tools under test, and the outcomes.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deftool_lang::schema::{Arguments, ToolEntry};
use deftool_lang::tool::ToolError;
use serde_json::Value;

use crate::events::ScriptEvent;
use crate::script::Script;

/// A file of tests.
#[derive(Clone)]
pub struct TestFile {
    /// The file, its modules, its root, and the permissions of the tests themselves.
    pub script: Arc<Script>,
    /// The tools that tests may load.
    pub tools: TestTools,
}

impl fmt::Debug for TestFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestFile").field("file", &self.script.file).finish_non_exhaustive()
    }
}

/// A function that finds a tool by its name.
pub type TestTools = Arc<dyn Fn(&str) -> Result<TestSubject, ToolError> + Send + Sync>;

/// A function that validates arguments against a schema.
pub(super) type Validate = Arc<dyn Fn(Value) -> Result<Arguments, ToolError> + Send + Sync>;

/// A function that checks whether a script may run with its permissions.
pub(super) type Authorize = Arc<dyn Fn(&Script) -> Result<(), ToolError> + Send + Sync>;

/// A tool under test.
#[derive(Clone)]
pub struct TestSubject {
    /// The script.
    pub script: Arc<Script>,
    /// Validates arguments against the tool's schema. The error is the one that a model would receive.
    pub validate: Validate,
    /// The compiled tool.
    pub entry: Arc<ToolEntry>,
    /// Checks whether the script may run with its permissions, except those of faked tables and those of the test's own
    /// folder.
    pub authorize: Authorize,
}

impl fmt::Debug for TestSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestSubject").field("script", &self.script).finish_non_exhaustive()
    }
}

/// The name and location of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestName {
    /// The name.
    pub name: String,
    /// The line of the call `test(…)`, from 1.
    pub line: usize,
}

/// The outcome of a test.
#[derive(Debug)]
pub struct TestOutcome {
    /// The failure. `None`: the test passed.
    pub failure: Option<TestFailure>,
    /// The log lines of the test and of the tools that it called.
    pub log: Vec<ScriptEvent>,
    /// The names of the tools that it called.
    pub tools: BTreeSet<String>,
    /// The duration.
    pub elapsed: Duration,
}

/// The failure of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestFailure {
    /// `expectation`, or the kind of error, as in `timeout`.
    pub kind: &'static str,
    /// The line of the test file, from 1.
    pub line: Option<usize>,
    /// The message, one clause.
    pub message: String,
    /// Further lines: more differences, a traceback.
    pub details: Vec<String>,
}
