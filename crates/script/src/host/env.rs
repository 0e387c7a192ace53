//! `env.get(name)`: returns environment variables that `:allow (:env …)` grants.

use std::rc::Rc;
use std::sync::Arc;

use deftool_lang::syntax::quoted;
use deftool_lang::tool::ToolErrorKind;
use mlua::{Lua, MultiValue, Table};

use super::arguments::text_argument;
use super::docs::{FunctionDoc, TableDoc};
use super::state::Host;
use crate::error::{HostError, clean};
use crate::script::Script;

pub(super) const DOC: TableDoc = TableDoc {
    permissions: &["env"],
    functions: &[FunctionDoc::new(
        "get",
        "(name: string) -> string?",
        "Returns the value of an environment variable, or nil if it is not set.",
    )
    .with_permissions(&["env"])
    .with_errors(
        "The spec does not list the variable under `:allow (:env [\"NAME\"])`; the value is not UTF-8.",
    )
    .with_example("local key = env.get(\"API_KEY\") or error(tool.failure(\"no API_KEY is set\"))")],
    ..TableDoc::new(
        "env",
        "Environment variables by name. They cannot be listed. Values are not redacted: a script must keep secrets out of its \
         results.",
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
            // A name with `=` or NUL, for which std may panic, is never granted: no variable has such a name.
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
        String::from("this tool may not read environment variables")
    } else {
        let names: Vec<String> = granted.iter().map(|name| quoted(&clean(name, 100))).collect();
        format!("this tool may only read {}", names.join(" "))
    };
    HostError::lua(
        ToolErrorKind::Permission,
        format!(
            "env.get: {shown} is not allowed: {allowed}; to allow it, add :allow (:env [{}]) to the spec",
            quoted(&shown)
        ),
    )
}
