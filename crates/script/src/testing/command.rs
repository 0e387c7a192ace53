//! Calls of tools that are programs, in tests: the program is run by `process.run` of a Lua state, which a test can fake.

use deftool_lang::schema::Arguments;
use deftool_lang::spec::{FilledCommand, ToolCommand};
use deftool_lang::tool::ToolError;
use serde_json::{Value, json};

use crate::control::Answer;
use crate::convert::MAX_BYTES;
use crate::host::command::{Ended, answer_of, fill};
use crate::script::{Parameter, Script};

/// Returns the script that runs the program, and its arguments.
///
/// # Errors
/// If a value cannot be passed to the program.
pub(super) fn script_of(
    script: &Script,
    command: &ToolCommand,
    arguments: &Arguments,
) -> Result<(Script, Arguments), ToolError> {
    let FilledCommand { words, stdin } = fill(script, command, arguments)?;
    let mut options = json!({ "max_output": MAX_BYTES });
    if let (Some(stdin), Some(options)) = (stdin, options.as_object_mut()) {
        options.insert(String::from("stdin"), Value::String(stdin));
    }
    let source = "return function(argv, options) return process.run(argv, options) end";
    let mut runner = Script::new(script.tool.clone(), script.file.clone(), source);
    runner.parameters = ["argv", "options"].map(Parameter::new).to_vec();
    runner.timeout = script.timeout;
    runner.permissions = script.permissions.clone();
    runner.root.clone_from(&script.root);
    let arguments = [(String::from("argv"), json!(words)), (String::from("options"), options)];
    Ok((runner, arguments.into_iter().collect()))
}

/// Returns the answer of the tool for the result of `process.run`. A fake may omit what it does not need.
pub(super) fn answer_from(command: &ToolCommand, result: &Value) -> Answer {
    let integer = |key: &str| result.get(key)?.as_i64().and_then(|number| i32::try_from(number).ok());
    let bytes = |key: &str| result.get(key).and_then(Value::as_str).unwrap_or_default().as_bytes().to_vec();
    let flag = |key: &str| result.get(key).and_then(Value::as_bool).unwrap_or_default();
    let ended = Ended {
        code: integer("code").or_else(|| flag("ok").then_some(0)),
        signal: integer("signal"),
        stdout: bytes("stdout"),
        truncated: flag("truncated"),
        stderr: bytes("stderr"),
    };
    answer_of(command, ended)
}
