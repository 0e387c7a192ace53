//! Placeholder scripts.

use deftool_lang::spec::Tool;

use crate::types::parameter_name;

/// Returns a script with the parameters of `tool`. Its calls fail with `NAME is not implemented`.
pub fn scaffold(tool: &Tool) -> String {
    let callback = tool.is_async.then(|| String::from("callback"));
    let arguments = tool.arguments.iter().map(|argument| parameter_name(&argument.name.value));
    let parameters: Vec<String> = callback.into_iter().chain(arguments).collect();
    let result = if tool.is_async { "Pass any JSON value to callback." } else { "Return any JSON value." };
    format!(
        "-- Arguments arrive in :args order. {result}\nreturn function({})\n  error(tool.failure(\"{} is not implemented\"))\nend\n",
        parameters.join(", "),
        tool.name.value
    )
}
