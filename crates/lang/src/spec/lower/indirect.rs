//! Tools that Emacs Lisp makes from the value of a variable: `(apply #'gptel-make-tool spec)`.
//!
//! Two uses are read without executing code. If a loop takes the variable from a quoted table of plists, each plist is a
//! tool. If the variable is the rest parameter of a function or macro, this is a wrapper, and its calls are tools of a
//! project that declares it (`:tool-forms` of `defproject`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::form::{BINDERS, Evaluation, Form, SpecForm, named_function, origin_of};
use crate::spec::{ToolForms, ToolKind, Wrapper};
use crate::syntax::{Kind, NodeId, Tree};
use crate::text::Spanned;

/// Functions that call a function for each element of a list.
const LOOPS: [&str; 5] = ["mapc", "mapcar", "mapcan", "seq-do", "seq-map"];

/// Forms that define a variable with its value.
const GLOBALS: [&str; 3] = ["defvar", "defconst", "defcustom"];

/// Forms that define a wrapper.
const DEFINITIONS: [&str; 5] = ["defun", "defmacro", "defsubst", "cl-defun", "cl-defmacro"];

/// Maximum number of variables to search for the innermost one with a name.
const MAX_VARIABLES: usize = 256;

/// The tools and wrappers of a file.
#[derive(Default)]
pub(super) struct Indirect {
    /// The plists in quoted tables.
    pub(super) plists: BTreeMap<NodeId, SpecForm>,
    /// The wrappers that are not declared, by the nodes of their names.
    pub(super) wrappers: BTreeMap<NodeId, Wrapper>,
    /// The calls of functions that make tools, if all their tools are in tables or in calls of wrappers.
    pub(super) calls: BTreeSet<NodeId>,
}

impl Indirect {
    pub(super) fn of(tree: &Tree, text: &str, forms: &ToolForms) -> Self {
        // The names of all functions of Emacs packages that make tools contain this.
        if forms.is_empty() && !text.contains("-tool") {
            return Self::default();
        }
        let mut search = Search {
            tree,
            text,
            forms,
            globals: globals(tree, text),
            variables: Vec::new(),
            mapped: None,
            tables: BTreeMap::new(),
            found: Self::default(),
        };
        for node in tree.iter() {
            search.visit(node);
        }
        search.found
    }
}

/// Returns the plists in quoted tables from which a loop makes tools.
pub fn tabled_plists(tree: &Tree, text: &str, forms: &ToolForms) -> BTreeSet<NodeId> {
    Indirect::of(tree, text, forms).plists.into_keys().collect()
}

/// Returns the values of the global variables. A variable with several definitions has no value.
fn globals<'t>(tree: &'t Tree, text: &'t str) -> HashMap<&'t str, Option<NodeId>> {
    let mut globals = HashMap::new();
    for node in tree.iter().filter(|node| tree.kind(*node) == Kind::List) {
        let mut children = tree.children(node);
        let is_global = children.next().is_some_and(|head| GLOBALS.contains(&tree.text(head, text)));
        if is_global && let (Some(name), Some(value)) = (children.next(), children.next()) {
            globals.entry(tree.text(name, text)).and_modify(|known| *known = None).or_insert(Some(value));
        }
    }
    globals
}

/// A local variable.
#[derive(Clone, Copy)]
struct Variable<'t> {
    name: &'t str,
    /// The end of the form that binds it.
    end: u32,
    value: Value,
}

#[derive(Clone, Copy)]
enum Value {
    /// The value of this form.
    Form(NodeId),
    /// In turn, each element of the list that is the value of this form.
    Each(NodeId),
    /// The rest parameter of the definition with this name, and the number of parameters before it.
    Rest(NodeId, usize),
    Unknown,
}

struct Search<'t> {
    tree: &'t Tree,
    text: &'t str,
    forms: &'t ToolForms,
    globals: HashMap<&'t str, Option<NodeId>>,
    /// The variables around the current node, innermost last.
    variables: Vec<Variable<'t>>,
    /// The last lambda that a loop calls. The loop binds its parameter.
    mapped: Option<NodeId>,
    /// The lists that were read, and whether they contain only plists.
    tables: BTreeMap<NodeId, bool>,
    found: Indirect,
}

impl<'t> Search<'t> {
    fn visit(&mut self, node: NodeId) {
        let start = self.tree.span(node).start;
        while self.variables.last().is_some_and(|variable| variable.end <= start) {
            self.variables.pop();
        }
        if self.tree.kind(node) != Kind::List {
            return;
        }
        if let Some((function, name)) = self.made_from(node) {
            self.read(node, function, name);
        }
        self.bind(node);
    }

    /// Adds the variables that the form `node` binds.
    fn bind(&mut self, node: NodeId) {
        let tree = self.tree;
        let mut children = tree.children(node);
        let Some(head) = children.next() else { return };
        match self.word(head) {
            "let" | "let*" => {
                for binding in children.next().into_iter().flat_map(|bindings| tree.children(bindings)) {
                    let mut parts = tree.children(binding);
                    let name = parts.next().unwrap_or(binding);
                    self.push(node, name, parts.next().map_or(Value::Unknown, Value::Form));
                }
            }
            "dolist" => {
                let Some(variable) = children.next() else { return };
                let mut parts = tree.children(variable);
                if let (Some(name), Some(list)) = (parts.next(), parts.next()) {
                    self.push(node, name, Value::Each(list));
                }
            }
            word if LOOPS.contains(&word) => {
                let (Some(function), Some(list)) = (children.next(), children.next()) else { return };
                let is_prefix = tree.kind(function).is_prefix();
                let lambda = if is_prefix { tree.children(function).next() } else { Some(function) };
                let Some(lambda) = lambda.filter(|lambda| self.head_is(*lambda, "lambda")) else { return };
                let parameters = tree.children(lambda).nth(1);
                if let Some(name) = parameters.and_then(|parameters| tree.children(parameters).next()) {
                    self.mapped = Some(lambda);
                    self.push(node, name, Value::Each(list));
                }
            }
            word => {
                let Some((_, at)) = BINDERS.iter().find(|(binder, _)| *binder == word) else { return };
                if self.mapped != Some(node) {
                    let name = children.next().filter(|_| DEFINITIONS.contains(&word));
                    self.bind_parameters(node, name, tree.children(node).nth(*at));
                }
            }
        }
    }

    /// Adds the parameters of a lambda, or of the definition called `name`.
    fn bind_parameters(&mut self, node: NodeId, name: Option<NodeId>, parameters: Option<NodeId>) {
        let tree = self.tree;
        let (mut before, mut is_rest, mut has_other) = (0, false, false);
        for parameter in parameters.into_iter().flat_map(|parameters| tree.children(parameters)) {
            match self.word(parameter) {
                "&rest" | "&body" => is_rest = true,
                word if word.starts_with('&') => has_other = true,
                _ => {
                    let value = match name {
                        Some(name) if is_rest && !has_other => Value::Rest(name, before),
                        Some(_) | None => Value::Unknown,
                    };
                    // A parameter with a default value is a list.
                    self.push(node, tree.children(parameter).next().unwrap_or(parameter), value);
                    before += 1;
                }
            }
        }
    }

    /// Returns the function and the variable of `(apply #'gptel-make-tool spec)` or `(gptel-make-tool ,@spec)`.
    fn made_from(&self, node: NodeId) -> Option<(NodeId, &'t str)> {
        let mut children = self.tree.children(node);
        let head = children.next()?;
        let (function, argument) = if self.word(head) == "apply" {
            let function = children.next()?;
            named_function(self.tree, self.text, function, self.forms)?;
            (self.tree.children(function).next()?, children.next()?)
        } else {
            let splice = children.next().filter(|splice| self.tree.kind(*splice) == Kind::Splice)?;
            (head, self.tree.children(splice).next()?)
        };
        let takes_plist = self.forms.takes_plist(self.word(function));
        let is_only = children.next().is_none() && self.tree.kind(argument) == Kind::Symbol;
        (takes_plist && is_only).then(|| (function, self.word(argument)))
    }

    /// Reads the tools that the call `node` of `function` makes from the variable `name`.
    fn read(&mut self, node: NodeId, function: NodeId, name: &str) {
        let Some((index, value)) = self.find(name, self.variables.len()) else { return };
        match value {
            Value::Each(list) => {
                let table = match self.tree.kind(list) {
                    Kind::Symbol => self.value_of(self.word(list), index),
                    _ => Some(list),
                };
                if table.is_some_and(|table| self.is_table(table, function)) {
                    self.found.calls.insert(node);
                }
            }
            Value::Rest(name, skip) => {
                self.found.calls.insert(node);
                let spanned = |node| Spanned::new(self.word(node).to_owned(), self.tree.span(node));
                let wrapper = Wrapper { name: spanned(name), skip, function: spanned(function) };
                if self.forms.skip(self.word(name)).is_none() {
                    self.found.wrappers.entry(name).or_insert(wrapper);
                }
            }
            Value::Form(_) | Value::Unknown => {}
        }
    }

    /// Reads the plists of a quoted list, once. Returns whether it contains nothing else.
    fn is_table(&mut self, table: NodeId, function: NodeId) -> bool {
        if let Some(known) = self.tables.get(&table) {
            return *known;
        }
        let is_table = self.read_table(table, function);
        self.tables.insert(table, is_table);
        is_table
    }

    /// Reads the plists of a quoted list. Returns whether it contains nothing else.
    fn read_table(&mut self, table: NodeId, function: NodeId) -> bool {
        let (tree, is_call) = (self.tree, self.head_is(table, "quote"));
        let evaluation = match tree.kind(table) {
            Kind::Backquote => Evaluation::Backquoted,
            Kind::Quote => Evaluation::Quoted,
            _ if is_call => Evaluation::Quoted,
            _ => return false,
        };
        let list = tree.children(table).nth(usize::from(is_call));
        let Some(list) = list.filter(|list| tree.kind(*list) == Kind::List) else { return false };
        let origin = origin_of(self.word(function), self.forms);
        let (mut plists, mut others) = (0, 0);
        for item in tree.children(list) {
            let first = tree.children(item).next().filter(|_| tree.kind(item) == Kind::List);
            if first.is_some_and(|key| tree.kind(key) == Kind::Keyword) {
                let form = Form::Tool(ToolKind::Normal);
                let plist = SpecForm { form, list: item, skipped: 0, evaluation, origin };
                self.found.plists.insert(item, plist);
                plists += 1;
            } else {
                others += 1;
            }
        }
        plists > 0 && others == 0
    }

    /// Returns the form with the value of a variable that is bound outside of the variable at `index`.
    fn value_of(&self, name: &str, index: usize) -> Option<NodeId> {
        match self.find(name, index) {
            Some((_, Value::Form(form))) => Some(form),
            Some(_) => None,
            None => *self.globals.get(name)?,
        }
    }

    /// Returns the innermost of the first `count` variables with this name, and its index.
    fn find(&self, name: &str, count: usize) -> Option<(usize, Value)> {
        let mut variables = self.variables.iter().enumerate().take(count).rev().take(MAX_VARIABLES);
        let (index, variable) = variables.find(|(_, variable)| variable.name == name)?;
        Some((index, variable.value))
    }

    fn push(&mut self, binder: NodeId, name: NodeId, value: Value) {
        let (name, end) = (self.word(name), self.tree.span(binder).end);
        self.variables.push(Variable { name, end, value });
    }

    fn head_is(&self, node: NodeId, word: &str) -> bool {
        self.tree.kind(node) == Kind::List
            && self.tree.children(node).next().is_some_and(|head| self.word(head) == word)
    }

    fn word(&self, node: NodeId) -> &'t str {
        self.tree.text(node, self.text)
    }
}
