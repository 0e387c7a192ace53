//! `env.get(name)`: variables of the engine's environment, under `:allow (:env …)`.

use std::rc::Rc;
use std::sync::Arc;

use mlua::{Lua, MultiValue, Table};

use super::{FunctionDoc, Host, TableDoc, text_argument};
use crate::script::Script;
use crate::script::error::{HostError, clean};
use crate::syntax::quoted;
use crate::tool::ToolErrorKind;

pub(super) const DOC: TableDoc = TableDoc {
    permissions: &["env"],
    functions: &[FunctionDoc::new(
        "get",
        "(name: string) -> string?",
        "The value of an environment variable, nil where it is not set.",
    )
    .needs(&["env"])
    .fails(
        "A variable that the spec does not list under `:allow (:env [\"NAME\"])`; a value that is not UTF-8.",
    )
    .as_in("local key = env.get(\"API_KEY\") or error(tool.failure(\"no API_KEY is set\"))")],
    ..TableDoc::new(
        "env",
        "Environment variables by name; there is no list of them. What a script reads is its own affair from then on: \
         it is not taken out of results.",
    )
};

pub(super) fn table(lua: &Lua, host: &Rc<Host>, script: &Script) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let granted: Arc<[String]> = script.permissions.env.clone().into();
    let shared = Rc::clone(host);
    table.raw_set(
        "get",
        lua.create_function(move |lua, arguments: MultiValue| {
            shared.only_in_function("env.get")?;
            let name = text_argument("env.get", &arguments, 0)?;
            if !granted.contains(&name) {
                return Err(denied(&name, &granted));
            }
            // A name with `=` or NUL, which std would not take, is never granted: no variable has it.
            match std::env::var(&name) {
                Ok(value) => lua.create_string(value).map(Some),
                Err(std::env::VarError::NotPresent) => Ok(None),
                Err(std::env::VarError::NotUnicode(_)) => Err(HostError::script(format!(
                    "env.get: the value of {} is not UTF-8",
                    clean(&name, 100)
                ))),
            }
        })?,
    )?;
    Ok(table)
}

fn denied(name: &str, granted: &[String]) -> mlua::Error {
    let shown = clean(name, 100);
    let allowed = if granted.is_empty() {
        String::from("this tool may read no environment variable")
    } else {
        let names: Vec<String> = granted.iter().map(|name| quoted(&clean(name, 100))).collect();
        format!("this tool may read {} only", names.join(" "))
    };
    HostError::lua(
        ToolErrorKind::Permission,
        format!(
            "env.get: {shown} is not allowed: {allowed}; to allow it, add :allow (:env [{}]) to the spec",
            quoted(&shown)
        ),
    )
}
