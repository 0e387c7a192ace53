//! Tools that Emacs Lisp makes from the value of a variable: `(apply #'gptel-make-tool spec)`.
//!
//! Two uses are read without executing code. If a loop takes the variable from a quoted table of plists, each plist is a
//! tool. If the variable is a parameter of a function or macro, this is a wrapper, and its calls are tools of a project
//! that declares it (`:tool-forms` of `defproject`). A wrapper may add and replace keys, except `:name`, and may pass its
//! parameter to another wrapper.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::form::{
    BINDERS, Evaluation, Form, SpecForm, is_declared, is_function, is_reserved_head, named_function,
    origin_of,
};
use crate::spec::{ToolForms, ToolKind, Wrapper};
use crate::syntax::{Kind, NodeId, Tree};
use crate::text::Spanned;

/// Functions that call a function for each element of a list.
const LOOPS: [&str; 5] = ["mapc", "mapcar", "mapcan", "seq-do", "seq-map"];

/// Forms that define a variable with its value.
const GLOBALS: [&str; 3] = ["defvar", "defconst", "defcustom"];

/// Forms that define a wrapper.
const DEFINITIONS: [&str; 5] = ["defun", "defmacro", "defsubst", "cl-defun", "cl-defmacro"];

/// Functions that return a plist with all keys of one that they take.
const KEEPING: [&str; 7] =
    ["append", "nconc", "plist-put", "copy-sequence", "copy-tree", "cl-copy-list", "cl-list*"];

/// Maximum number of variables to search for the innermost one with a name.
const MAX_VARIABLES: usize = 256;

/// Maximum number of variables and calls between a parameter and the function that makes the tool.
const MAX_STEPS: usize = 8;

/// Maximum number of wrappers that call each other.
const MAX_LEVELS: usize = 4;

/// The tools and wrappers of a file.
#[derive(Default)]
pub(super) struct Indirect {
    /// The plists in quoted tables.
    pub(super) plists: BTreeMap<NodeId, SpecForm>,
    /// The wrappers, by the nodes of their names.
    pub(super) wrappers: BTreeMap<NodeId, Wrapper>,
    /// The calls of functions that make tools, if all their tools are in tables or in calls of wrappers, and the plists of
    /// tables that wrappers read.
    pub(super) calls: BTreeSet<NodeId>,
}

impl Indirect {
    pub(super) fn of(tree: &Tree, text: &str, forms: &ToolForms) -> Self {
        // The names of all functions of Emacs packages that make tools contain this.
        if forms.is_empty() && !text.contains("-tool") {
            return Self::default();
        }
        let globals = globals(tree, text);
        let mut functions = forms.clone();
        let mut found = Self::default();
        for _ in 0..MAX_LEVELS {
            let mut search = Search {
                tree,
                text,
                forms,
                functions: &functions,
                globals: &globals,
                variables: Vec::new(),
                mapped: None,
                tables: BTreeMap::new(),
                applied: BTreeSet::new(),
                found: Self::default(),
            };
            for node in tree.iter() {
                search.visit(node);
            }
            found = search.finish();
            let known = functions.clone();
            found.wrappers.values().for_each(|wrapper| functions.add_wrapper(wrapper));
            if functions == known {
                break;
            }
        }
        found
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
    Parameter(Parameter),
    Unknown,
}

/// A parameter of a definition, unless it follows an optional one: the number of arguments before it is not known then.
#[derive(Clone, Copy)]
struct Parameter {
    /// The name of the definition.
    definition: NodeId,
    /// The number of parameters before it.
    before: usize,
    kind: ParameterKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ParameterKind {
    Required,
    Rest,
    Key,
}

/// A call that makes tools from values of variables.
struct Call {
    function: NodeId,
    /// The form whose value has the keys of the tool or, if they are passed one by one, that of `:name`.
    plist: NodeId,
    is_name: bool,
}

struct Search<'t> {
    tree: &'t Tree,
    text: &'t str,
    /// The declared heads.
    forms: &'t ToolForms,
    /// The declared heads and the wrappers that are already known.
    functions: &'t ToolForms,
    globals: &'t HashMap<&'t str, Option<NodeId>>,
    /// The variables around the current node, innermost last.
    variables: Vec<Variable<'t>>,
    /// The last lambda that a loop calls. The loop binds its parameter.
    mapped: Option<NodeId>,
    /// The lists that were read with a declared function or without, and whether they contain only plists.
    tables: BTreeMap<(NodeId, bool), bool>,
    /// The wrappers that a loop calls for each plist of a table.
    applied: BTreeSet<&'t str>,
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
        if let Some(call) = self.call_of(node) {
            self.read(node, &call);
        }
        self.bind(node);
    }

    fn finish(mut self) -> Indirect {
        for wrapper in self.found.wrappers.values_mut() {
            wrapper.is_applied = self.applied.contains(wrapper.name.value.as_str());
        }
        self.found
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
        let (mut kind, mut before) = (Some(ParameterKind::Required), 0);
        for parameter in parameters.into_iter().flat_map(|parameters| tree.children(parameters)) {
            match self.word(parameter) {
                "&rest" | "&body" => kind = kind.and(Some(ParameterKind::Rest)),
                "&key" => kind = kind.and(Some(ParameterKind::Key)),
                word if word.starts_with('&') => kind = None,
                _ => {
                    let value = name.zip(kind).map_or(Value::Unknown, |(definition, kind)| {
                        Value::Parameter(Parameter { definition, before, kind })
                    });
                    // A parameter with a default value is a list.
                    self.push(node, tree.children(parameter).next().unwrap_or(parameter), value);
                    before += usize::from(kind == Some(ParameterKind::Required));
                }
            }
        }
    }

    /// Returns what `(apply #'gptel-make-tool spec)`, `(gptel-make-tool ,@spec)` or `(gptel-make-tool :name name …)` makes
    /// tools from, if the node is one of them. Other keys may come before and after the plist.
    fn call_of(&self, node: NodeId) -> Option<Call> {
        let mut children = self.tree.children(node);
        let head = children.next()?;
        if self.word(head) == "apply" {
            let function = self.function_of(children.next()?)?;
            let given: Vec<NodeId> = children.skip(self.skip_of(function)?).collect();
            let (plist, added) = given.split_last()?;
            let is_added = added.first().is_none_or(|key| self.tree.kind(*key) == Kind::Keyword);
            return (is_added && self.name_in(added).is_none()).then_some(Call {
                function,
                plist: *plist,
                is_name: false,
            });
        }
        let items: Vec<NodeId> = children.skip(self.skip_of(head)?).collect();
        let name = self.name_in(&items);
        let splice = items.iter().find(|item| self.tree.kind(**item) == Kind::Splice);
        let (of, is_name) = match (splice, name) {
            (Some(splice), None) => (self.tree.children(*splice).next()?, false),
            (None, Some(name)) if self.tree.kind(name) == Kind::Unquote => {
                (self.tree.children(name).next()?, true)
            }
            (None, Some(name)) => (name, true),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some(Call { function: head, plist: of, is_name })
    }

    /// Returns the name in `#'gptel-make-tool`, or in one of the functions of `(if … #'gptel-make-tool #'other)`.
    fn function_of(&self, node: NodeId) -> Option<NodeId> {
        let named = |node: NodeId| {
            named_function(self.tree, self.text, node, self.functions)?;
            self.tree.children(node).next()
        };
        let chosen = || self.tree.children(node).skip(2).find_map(named).filter(|_| self.head_is(node, "if"));
        named(node).or_else(chosen)
    }

    /// Returns the number of arguments before the keys of a function that makes tools. `None`: another function.
    fn skip_of(&self, function: NodeId) -> Option<usize> {
        let name = self.word(function);
        is_function(name, self.functions).then(|| self.functions.skip(name).unwrap_or_default())
    }

    /// Returns the value of `:name` in keys and values.
    fn name_in(&self, items: &[NodeId]) -> Option<NodeId> {
        let at = items.iter().position(|item| self.word(*item) == ":name")?;
        items.get(at + 1).copied()
    }

    /// Reads the tools that the call `node` makes.
    fn read(&mut self, node: NodeId, call: &Call) {
        let Some((index, value)) = self.source_of(call.plist, self.variables.len(), MAX_STEPS) else {
            return;
        };
        match value {
            Value::Each(list) if self.tree.kind(call.plist) == Kind::Symbol && !call.is_name => {
                let table = match self.tree.kind(list) {
                    Kind::Symbol => self.value_of(self.word(list), index),
                    _ => Some(list),
                };
                let name = self.word(call.function);
                if !table.is_some_and(|table| self.is_table(table, call.function)) {
                    return;
                }
                if is_function(name, self.forms) {
                    self.found.calls.insert(node);
                } else {
                    self.applied.insert(name);
                }
            }
            Value::Parameter(Parameter { definition, before, kind })
                if call.is_name == (kind == ParameterKind::Key)
                    && !is_reserved_head(self.word(definition)) =>
            {
                self.found.calls.insert(node);
                let spanned = |node| Spanned::new(self.word(node).to_owned(), self.tree.span(node));
                let wrapper = Wrapper {
                    name: spanned(definition),
                    skip: before,
                    function: spanned(call.function),
                    is_declared: self.forms.skip(self.word(definition)).is_some(),
                    is_applied: false,
                };
                self.found.wrappers.entry(definition).or_insert(wrapper);
            }
            Value::Each(_) | Value::Parameter(_) | Value::Form(_) | Value::Unknown => {}
        }
    }

    /// Returns the value of the variable from which a form makes a plist, by adding and replacing keys, and the index of
    /// the variable. `count`: the number of visible variables; `steps`: the maximum number of forms in between.
    fn source_of(&self, form: NodeId, count: usize, steps: usize) -> Option<(usize, Value)> {
        let (tree, steps) = (self.tree, steps.checked_sub(1)?);
        match tree.kind(form) {
            Kind::Symbol => match self.find(self.word(form), count)? {
                (index, Value::Form(form)) => self.source_of(form, index, steps),
                found => Some(found),
            },
            Kind::List
                if tree.children(form).next().is_some_and(|head| KEEPING.contains(&self.word(head))) =>
            {
                tree.children(form).skip(1).find_map(|argument| self.source_of(argument, count, steps))
            }
            Kind::Backquote => {
                let mut items = tree.children(tree.children(form).next()?);
                let splice = items.find(|item| tree.kind(*item) == Kind::Splice)?;
                self.source_of(tree.children(splice).next()?, count, steps)
            }
            _ => None,
        }
    }

    /// Reads the plists of a quoted list, once. Returns whether it contains nothing else.
    fn is_table(&mut self, table: NodeId, function: NodeId) -> bool {
        let key = (table, is_function(self.word(function), self.forms));
        if let Some(known) = self.tables.get(&key) {
            return *known;
        }
        let is_table = self.read_table(table, function);
        self.tables.insert(key, is_table);
        is_table
    }

    /// Reads the plists of a quoted list, whose tools are those of a declared function only. Returns whether it contains
    /// nothing else.
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
        let name = self.word(function);
        let (origin, is_declared) = (origin_of(name, self.forms), is_declared(name, self.forms));
        let is_read = is_function(name, self.forms);
        let (mut plists, mut others) = (0, 0);
        for item in tree.children(list) {
            let first = tree.children(item).next().filter(|_| tree.kind(item) == Kind::List);
            if first.is_some_and(|key| tree.kind(key) == Kind::Keyword) {
                let form = Form::Tool(ToolKind::Normal);
                let plist = SpecForm { form, list: item, skipped: 0, evaluation, origin, is_declared };
                if is_read {
                    self.found.plists.insert(item, plist);
                } else {
                    self.found.calls.insert(item);
                }
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
