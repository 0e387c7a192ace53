//! Luau types of what a script is given: the host tables and each tool's arguments.
//!
//! In: tools and [`host_tables`]. Out: a definition file, which editors (luau-lsp) and `deftool check --types` read: a
//! `declare` for each host table, and for each tool the types of its arguments and of the function that its script
//! returns. What a schema leaves open is `any`; what a type cannot say (lengths, patterns, ranges) is left to the
//! validator, which has seen the arguments before the script does.
//!
//! Source: luau-lsp's README and `editors/README.md` (definition files, `luau-lsp.types.definitionFiles`) and the tests
//! of definition files in Luau itself (`export type`, `declare`), read in November 2026. Their syntax is not promised to
//! stay: a test has them read by the checker where the feature `types` is on.

mod check;
mod schema;

use std::collections::HashSet;
use std::fmt::Write;

use super::host::{TableDoc, host_tables};
use crate::spec::{Tool, ToolKind};

pub(crate) use check::TYPE_LIMIT;
pub use check::{TypeCheck, TypeJob, TypeProblem, check_types, serve_type_checks};

/// Luau's own type of `pcall` says what the function returns when it does not fail, and nothing of the message.
const PROTECTED: &str = "\ndeclare function pcall(called: (...any) -> ...any, ...: any): (boolean, ...any)\n";

/// The definition file of a project: what every script finds, and the types of `tools` that are valid and have scripts.
pub fn definitions<'t>(tools: impl IntoIterator<Item = &'t Tool>) -> String {
    let mut file =
        String::from("-- Made by `deftool types`: what scripts are given. Changes made here are lost.\n");
    file.push_str(PROTECTED);
    for table in host_tables() {
        declare(&mut file, table);
    }
    for types in tool_types(tools) {
        file.push_str(&types.text());
    }
    file
}

/// The types of one tool.
pub(crate) struct ToolTypes<'t> {
    tool: &'t Tool,
    /// Of the function that its script returns, as in `GetWeather`.
    name: String,
    /// Of the arguments in order, and what each stands for where it is more than a word.
    arguments: Vec<(String, Option<String>)>,
}

/// The types of `tools` that are valid and have scripts, in their order, under names of which none is there twice.
pub(crate) fn tool_types<'t>(tools: impl IntoIterator<Item = &'t Tool>) -> Vec<ToolTypes<'t>> {
    let mut names = Names::default();
    for table in host_tables() {
        names.0.extend(alias_names(table.types).map(str::to_owned));
    }
    let tools = tools.into_iter().filter(|tool| tool.kind == ToolKind::Normal && tool.valid);
    tools.map(|tool| ToolTypes::of(tool, &mut names)).collect()
}

impl<'t> ToolTypes<'t> {
    fn of(tool: &'t Tool, names: &mut Names) -> Self {
        let name = names.take(&camel(&tool.name.value, "Tool"));
        let arguments = tool.arguments.iter().map(|argument| {
            let written = schema::luau_type(&argument.schema);
            if schema::is_word(&written) {
                return (written, None);
            }
            let alias = names.take(&format!("{name}{}", camel(&argument.name.value, "Argument")));
            (alias, Some(written))
        });
        let arguments = arguments.collect();
        Self { tool, name, arguments }
    }

    /// The tool.
    pub(crate) fn tool(&self) -> &'t Tool {
        self.tool
    }

    /// The type of each parameter of the script's function; `None` where the callback comes.
    pub(crate) fn parameters(&self) -> Vec<Option<String>> {
        let callback = self.tool.is_async.then_some(None);
        let types = self.tool.arguments.iter().zip(&self.arguments).map(|(argument, (name, _))| {
            let mark = if argument.optional && name != "any" { "?" } else { "" };
            Some(format!("{name}{mark}"))
        });
        callback.into_iter().chain(types).collect()
    }

    fn text(&self) -> String {
        let mut text = String::from("\n");
        for (name, written) in &self.arguments {
            if let Some(written) = written {
                let _ = writeln!(text, "export type {name} = {written}");
            }
        }
        let _ = writeln!(text, "--- The function that the script of `{}` returns.", self.tool.name.value);
        let names = self.tool.arguments.iter().map(|argument| parameter_name(&argument.name.value));
        let parameters = self.parameters();
        let given =
            parameters.iter().flatten().zip(names).map(|(written, name)| format!("{name}: {written}"));
        let callback = self.tool.is_async.then(|| String::from("callback: (result: any) -> ()"));
        let given: Vec<String> = callback.into_iter().chain(given).collect();
        let result = if self.tool.is_async { "()" } else { "...any" };
        let _ = writeln!(text, "export type {} = ({}) -> {result}", self.name, given.join(", "));
        text
    }
}

fn declare(file: &mut String, table: &TableDoc) {
    file.push('\n');
    for line in table.types.lines() {
        let export = if line.starts_with("type ") { "export " } else { "" };
        let _ = writeln!(file, "{export}{line}");
    }
    comment(file, "", table.about);
    let _ = writeln!(file, "declare {}: {{", table.name);
    for value in table.values {
        comment(file, "  ", value.about);
        let _ = writeln!(file, "  {}: {},", value.name, value.luau_type);
    }
    for function in table.functions {
        comment(file, "  ", function.about);
        if !function.errors.is_empty() {
            comment(file, "  ", &format!("Fails: {}", function.errors));
        }
        let _ = writeln!(file, "  {}: {},", function.name, function.signature);
    }
    file.push_str("}\n");
}

fn comment(file: &mut String, indent: &str, text: &str) {
    for line in text.lines() {
        let _ = writeln!(file, "{}", format!("{indent}--- {line}").trim_end());
    }
}

/// The names that the lines of a table's types define.
fn alias_names(types: &str) -> impl Iterator<Item = &str> {
    types.lines().filter_map(|line| {
        let rest = line.trim_start_matches("export ").strip_prefix("type ")?;
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    })
}

/// Names that are taken.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    /// `wanted`, or with the first number behind it that makes it another.
    fn take(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            name = format!("{wanted}{number}");
            number += 1;
        }
        name
    }
}

/// `get_weather` → `GetWeather`; `otherwise` goes before what does not begin with a letter.
fn camel(name: &str, otherwise: &str) -> String {
    let mut camel = String::new();
    for word in name.split(|c: char| !c.is_ascii_alphanumeric()) {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    if camel.starts_with(|first: char| first.is_ascii_uppercase()) {
        camel
    } else {
        format!("{otherwise}{camel}")
    }
}

/// An argument's name as a parameter's.
fn parameter_name(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if schema::is_identifier(&name) { name } else { format!("_{name}") }
}
