//! What the asks of a load touch: tools, their arguments, and the values in `:enum`.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use deftool_lang::spec::{Argument, Json, JsonKind, Member, Pattern, PatternKind, Tool};

use crate::model::{Load, LoadedTool};

/// What asks touch, and what they do not.
#[derive(Debug, Default)]
pub struct AskCoverage<'l> {
    /// What no ask touches, in the order of the tools. The parts of something that is untouched are not listed.
    pub untouched: Vec<Untouched<'l>>,
    /// The tools that an ask expects a call of.
    pub tools: Touched,
    /// The arguments that an expected call states.
    pub arguments: Touched,
    /// The values in `:enum` of arguments and of their items that an expected call states.
    pub values: Touched,
}

/// How many of something are touched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Touched {
    /// Those that are touched.
    pub touched: usize,
    /// All.
    pub total: usize,
}

/// A tool, an argument or a value that no ask touches.
#[derive(Debug)]
pub struct Untouched<'l> {
    /// The tool.
    pub tool: &'l Tool,
    /// The argument, if the tool is touched.
    pub argument: Option<&'l Argument>,
    /// The value, if the argument is touched.
    pub value: Option<&'l Json>,
}

/// The arguments that the expected calls of a tool state, with their patterns.
type Stated<'l> = HashMap<&'l str, Vec<&'l Pattern>>;

impl Touched {
    fn add(&mut self, is_touched: bool) {
        self.total += 1;
        self.touched += usize::from(is_touched);
    }
}

/// Returns what the asks of the selected tools touch. A call that an ask expects touches its tool and the arguments and
/// values that it states; an ask that expects no call touches nothing.
pub fn ask_coverage(load: &Load, is_selected: impl Fn(&LoadedTool) -> bool) -> AskCoverage<'_> {
    let mut stated: HashMap<(Option<&Path>, &str), Stated<'_>> = HashMap::new();
    for ask in load.asks() {
        for call in ask.calls() {
            let of_tool = stated.entry((load.root_of(ask.source), call.tool.value.as_str())).or_default();
            if let Some(Pattern { kind: PatternKind::Object(members), .. }) = &call.arguments {
                for (name, pattern) in members {
                    of_tool.entry(name.value.as_str()).or_default().push(pattern);
                }
            }
        }
    }
    let mut coverage = AskCoverage::default();
    for loaded in load.valid_tools().filter(|loaded| is_selected(loaded)) {
        let tool = &*loaded.tool;
        let of_tool = stated.get(&(load.root_of(tool.source), tool.name.value.as_str()));
        coverage.add(tool, of_tool);
    }
    coverage
}

impl<'l> AskCoverage<'l> {
    /// Adds a tool. `stated`: the patterns of its arguments, if an ask expects a call of it.
    fn add(&mut self, tool: &'l Tool, stated: Option<&Stated<'_>>) {
        self.tools.add(stated.is_some());
        if stated.is_none() {
            self.untouched.push(Untouched { tool, argument: None, value: None });
        }
        for argument in &tool.arguments {
            let patterns = stated.and_then(|stated| stated.get(argument.name.value.as_str()));
            self.arguments.add(patterns.is_some());
            if stated.is_some() && patterns.is_none() {
                self.untouched.push(Untouched { tool, argument: Some(argument), value: None });
            }
            let values = values_of(&argument.schema);
            if values.is_empty() {
                continue;
            }
            let mut scalars = HashSet::new();
            for pattern in patterns.into_iter().flatten() {
                collect_scalars(pattern, &mut scalars);
            }
            for value in values {
                let is_stated = scalars.contains(&value.to_value().to_string());
                self.values.add(is_stated);
                if patterns.is_some() && !is_stated {
                    self.untouched.push(Untouched { tool, argument: Some(argument), value: Some(value) });
                }
            }
        }
    }
}

/// Returns the values in `:enum` of a schema and of its `:items`.
fn values_of(schema: &[Member]) -> Vec<&Json> {
    let of_items = match keyword(schema, "items") {
        Some(JsonKind::Object(members)) => listed_values(members),
        _ => &[],
    };
    listed_values(schema).iter().chain(of_items).collect()
}

fn listed_values(schema: &[Member]) -> &[Json] {
    match keyword(schema, "enum") {
        Some(JsonKind::Array(values)) => values,
        _ => &[],
    }
}

fn keyword<'s>(schema: &'s [Member], key: &str) -> Option<&'s JsonKind> {
    schema.iter().find(|member| member.key == key).map(|member| &member.value.kind)
}

/// Adds the scalars that a pattern states, as JSON text.
fn collect_scalars(pattern: &Pattern, scalars: &mut HashSet<String>) {
    match &pattern.kind {
        PatternKind::Scalar(json) => drop(scalars.insert(json.to_value().to_string())),
        PatternKind::Array(patterns) | PatternKind::Any(patterns) => {
            for pattern in patterns {
                collect_scalars(pattern, scalars);
            }
        }
        PatternKind::Optional(pattern) => collect_scalars(pattern, scalars),
        PatternKind::Object(_) | PatternKind::Schema(_) => {}
    }
}
