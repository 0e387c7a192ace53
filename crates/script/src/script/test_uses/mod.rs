//! The tools that a test script loads and calls, as far as its source shows it without running it.
//!
//! Follows `tool.load("name")` through local variables and local functions: a function that returns a loaded tool, and
//! one that passes a parameter to a tool. A table is a table of arguments only if it certainly reaches the tool.
//! Everything else is listed as computed.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use deftool_lang::text::Span;

use super::tokens::{KEYWORDS, TokenKind, Tokens};

/// Maximum number of parameters that a function passes to tools.
const MAX_PASSES: usize = 16;

/// The tools that a test script uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestUses {
    /// The literal names in `tool.load`, in order.
    pub loads: Vec<LoadedName>,
    /// The keys of the argument tables, in order.
    pub keys: Vec<ArgumentKey>,
    /// Uses of `tool.load` without a literal name.
    pub computed_loads: Vec<Span>,
    /// The tools that are called with arguments that are not a table literal, or used in another way than a call.
    pub computed_calls: Vec<(String, Span)>,
}

/// A literal name in `tool.load`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedName {
    /// The name of the tool.
    pub name: String,
    /// The name in the source, without quotation marks.
    pub span: Span,
    /// Whether the test expects or catches an error here.
    pub may_fail: bool,
}

/// A key of an argument table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentKey {
    /// The tool that is called.
    pub tool: String,
    /// The key.
    pub name: String,
    /// The key in the source, without quotation marks.
    pub span: Span,
    /// Whether the key is written as a name: `{ key = 1 }`, and not `{ ["key"] = 1 }`.
    pub is_name: bool,
    /// Whether the test expects or catches an error of the call.
    pub may_fail: bool,
}

/// Returns the tools that a test script uses.
pub fn test_uses(source: &str) -> TestUses {
    let tokens = Tokens::of(source);
    let mut reader = Reader::new(&tokens);
    reader.read();
    let mut uses = reader.uses;
    uses.keys.sort_by_key(|key| key.span);
    uses.keys.dedup();
    uses
}

/// Returns where `name` is written as a string, as the key of a table, or as a field that is assigned.
pub fn find_mentions(source: &str, name: &str) -> Vec<Span> {
    let tokens = Tokens::of(source);
    let is_mention = |index: usize| {
        let is_assigned = tokens.code(index + 1) == "=";
        tokens.is_kind(index, TokenKind::PlainString)
            || (is_assigned && matches!(tokens.code_before(index), "{" | "," | ";" | "."))
    };
    let named = tokens.iter().filter(|(index, token)| token.text == name && is_mention(*index));
    named.map(|(_, token)| token.span).collect()
}

/// Returns whether `text` can be the name of a variable.
pub fn is_variable_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&text)
}

/// What a variable or an expression is.
#[derive(Clone)]
enum Value {
    Unknown,
    /// The global `tool`.
    ToolTable,
    /// A loaded tool, by its name.
    Tool(String),
    /// The function whose keyword has this index.
    Function(usize),
    /// The parameter with this index, from 0, of a function.
    Parameter(usize, usize),
}

/// A function.
#[derive(Default)]
struct Function {
    /// Whether it has a name, so that its calls are found.
    is_named: bool,
    /// The tool that it returns.
    returns: Option<String>,
    /// The parameters that it passes to a tool: the index, the tool, and whether an error is expected or caught.
    passes: Vec<(usize, String, bool)>,
}

/// A variable.
struct Variable {
    value: Value,
    /// The first and the last token at which it is valid.
    from: usize,
    until: usize,
}

struct Reader<'t, 's> {
    tokens: &'t Tokens<'s>,
    /// The variables of each name, innermost last.
    variables: HashMap<&'s str, Vec<Variable>>,
    /// The ends of the open blocks, each with the function that it is the body of.
    blocks: Vec<(usize, Option<usize>)>,
    /// The open brackets.
    brackets: Vec<&'s str>,
    /// Functions by the index of their keyword.
    functions: HashMap<usize, Function>,
    /// The end of the last declaration of a variable that holds a tool, and the number of open brackets around it.
    declaration: (usize, usize),
    /// The end of the last list of declared names.
    end_of_names: usize,
    /// Names that were read before they were declared.
    undeclared: HashSet<&'s str>,
    /// For each token, whether an error is expected or caught there.
    may_fail: Vec<bool>,
    uses: TestUses,
}

impl<'t, 's> Reader<'t, 's> {
    fn new(tokens: &'t Tokens<'s>) -> Self {
        let mut reader = Self {
            tokens,
            variables: HashMap::new(),
            blocks: vec![(tokens.len(), None)],
            brackets: Vec::new(),
            functions: HashMap::new(),
            declaration: (0, 0),
            end_of_names: 0,
            undeclared: HashSet::new(),
            may_fail: failing(tokens),
            uses: TestUses::default(),
        };
        reader.declare("tool", Value::ToolTable, 0);
        reader
    }

    fn read(&mut self) {
        let tokens = self.tokens;
        for (index, token) in tokens.iter() {
            while self.blocks.len() > 1 && self.blocks.last().is_some_and(|(end, _)| *end <= index) {
                self.blocks.pop();
            }
            match tokens.code(index) {
                bracket @ ("(" | "[" | "{") => self.brackets.push(bracket),
                ")" | "]" | "}" => drop(self.brackets.pop()),
                _ if token.kind != TokenKind::Word || tokens.is_member(index) => {}
                "local" => self.read_local(index + 1),
                "function" => self.read_function(index),
                "for" => self.read_for(index + 1),
                "do" | "then" | "else" | "repeat" => drop(self.open(index, None)),
                name if tokens.is_name(index) && index >= self.end_of_names => self.read_name(index, name),
                _ => {}
            }
        }
    }

    /// Opens the block at `index`, if it is one: an `if` expression has none.
    fn open(&mut self, index: usize, function: Option<usize>) -> bool {
        let end = self.tokens.close(index);
        self.blocks.extend(end.map(|end| (end, function)));
        end.is_some()
    }

    /// Declares a variable of the innermost block.
    fn declare(&mut self, name: &'s str, value: Value, from: usize) {
        if let Value::Function(function) = value {
            self.functions.entry(function).or_default().is_named = true;
        }
        let until = self.blocks.last().map_or(0, |(end, _)| *end);
        self.variables.entry(name).or_default().push(Variable { value, from, until });
    }

    fn variable(&mut self, name: &str, index: usize) -> Option<&mut Variable> {
        let named = self.variables.get_mut(name)?;
        while named.last().is_some_and(|variable| variable.until <= index) {
            named.pop();
        }
        named.iter_mut().rev().find(|variable| variable.from <= index)
    }

    fn value_of(&mut self, name: &str, index: usize) -> Value {
        self.variable(name, index).map_or(Value::Unknown, |variable| variable.value.clone())
    }

    /// Returns the names that are declared from `index` on, without types, and the index after them.
    fn names(&self, mut index: usize) -> (Vec<&'s str>, usize) {
        let (tokens, mut names) = (self.tokens, Vec::new());
        while tokens.is_name(index) {
            names.push(tokens.code(index));
            index += 1;
            if tokens.code(index) == "<" {
                index += 3;
            }
            if tokens.code(index) == ":" {
                // Names after the first type are not found.
                index = tokens.end_of_expressions(index + 1);
            }
            if tokens.code(index) != "," {
                break;
            }
            index += 1;
        }
        (names, index)
    }

    /// Returns the index of the next of these tokens outside of brackets, or the number of tokens.
    fn next(&self, mut index: usize, codes: &[&str]) -> usize {
        while index < self.tokens.len() && !codes.contains(&self.tokens.code(index)) {
            index = self.tokens.skip(index);
        }
        index
    }

    /// Reads the declaration after `local`.
    fn read_local(&mut self, index: usize) {
        if self.tokens.code(index) == "function" {
            self.declare(self.tokens.code(index + 1), Value::Function(index), index);
            return;
        }
        let (names, after) = self.names(index);
        self.end_of_names = after;
        let (mut values, mut end) = (Vec::new(), after);
        if self.tokens.code(after) == "=" {
            end = self.tokens.end_of_expressions(after + 1);
            values = self.tokens.pieces(after + 1, end);
        }
        for (position, name) in names.into_iter().enumerate() {
            let value = values.get(position).map_or(Value::Unknown, |piece| self.whole_value(*piece));
            if matches!(value, Value::Tool(_)) {
                self.declaration = (end, self.brackets.len());
            }
            self.declare(name, value, end);
        }
    }

    /// Returns the value of the expression from `start` to `end`.
    fn whole_value(&mut self, (start, end): (usize, usize)) -> Value {
        let is_whole = |after: usize| after == end;
        if self.tokens.code(start) == "function" {
            let close = self.tokens.skip(start);
            return if is_whole(close) { Value::Function(start) } else { Value::Unknown };
        }
        match self.called_value(start) {
            Some((value, after)) if is_whole(after) => value,
            _ => Value::Unknown,
        }
    }

    /// Returns the value of the variable at `index`, or of its call if that returns a tool, and the index after it.
    fn called_value(&mut self, index: usize) -> Option<(Value, usize)> {
        let tokens = self.tokens;
        let value = self.value_of(Some(tokens.code(index)).filter(|_| tokens.is_name(index))?, index);
        match &value {
            Value::ToolTable => {
                let (name, after) = self.load_at(index)?;
                Some((Value::Tool(name?.0), after))
            }
            Value::Function(function) if tokens.code(index + 1) == "(" => {
                let tool = self.functions.get(function)?.returns.clone()?;
                Some((Value::Tool(tool), tokens.skip(index + 1)))
            }
            _ => Some((value, index + 1)),
        }
    }

    /// Returns the literal name in the `tool.load` at `index`, and the index after the call. Returns `None` if this is
    /// not a call of `tool.load`.
    fn load_at(&self, index: usize) -> Option<(Option<(String, Span)>, usize)> {
        let tokens = self.tokens;
        if tokens.code(index + 1) != "." || tokens.code(index + 2) != "load" {
            return None;
        }
        let has_parentheses = tokens.code(index + 3) == "(";
        let name = index + 3 + usize::from(has_parentheses);
        let after = if has_parentheses { tokens.skip(index + 3) } else { name + 1 };
        let is_literal = tokens.is_kind(name, TokenKind::PlainString)
            && (!has_parentheses || matches!(tokens.code(name + 1), "," | ")"));
        if !has_parentheses && !is_literal {
            return None;
        }
        let literal = tokens.get(name).filter(|_| is_literal);
        Some((literal.map(|token| (token.text.to_owned(), token.span)), after))
    }

    /// Reads the header of the function at `index`.
    fn read_function(&mut self, index: usize) {
        let tokens = self.tokens;
        let open = self.next(index + 1, &["("]);
        // A global function, `function name(…)`. Calls before its definition were not found.
        let name = tokens.code(index + 1);
        if open == index + 2 && tokens.code_before(index) != "local" && !self.undeclared.contains(name) {
            self.declare(name, Value::Function(index), index);
        }
        self.functions.entry(index).or_default();
        if !self.open(index, Some(index)) {
            return;
        }
        let parameters = tokens.pieces(open + 1, tokens.close(open).unwrap_or(open));
        for (position, (first, _)) in parameters.into_iter().enumerate() {
            if tokens.is_name(first) {
                self.declare(tokens.code(first), Value::Parameter(index, position), index);
            }
        }
    }

    /// Reads the variables of a loop.
    fn read_for(&mut self, index: usize) {
        let (names, after) = self.names(index);
        self.end_of_names = after;
        // Other keywords follow only in a loop that is not complete.
        let start = self.next(index, &["do", "end", "for", "local", "return"]);
        if self.tokens.code(start) == "do"
            && let Some(until) = self.tokens.close(start)
        {
            for name in names {
                let variable = Variable { value: Value::Unknown, from: start, until };
                self.variables.entry(name).or_default().push(variable);
            }
        }
    }

    fn read_name(&mut self, index: usize, name: &'s str) {
        let tokens = self.tokens;
        let is_assigned = tokens.code(index + 1) == "=";
        if is_assigned
            && self.brackets.last() == Some(&"{")
            && matches!(tokens.code_before(index), "{" | "," | ";")
        {
            return;
        }
        if self.variable(name, index).is_none() {
            self.undeclared.insert(name);
        }
        match self.value_of(name, index) {
            Value::ToolTable => self.read_load(index),
            Value::Tool(tool) if !is_assigned => self.read_call(&tool, index, index + 1),
            Value::Function(function) => self.read_function_call(function, index),
            Value::Tool(_) | Value::Parameter(..) | Value::Unknown => {}
        }
        if is_assigned && let Some(variable) = self.variable(name, index) {
            variable.value = Value::Unknown;
        }
    }

    /// Reads a use of the global `tool`.
    fn read_load(&mut self, index: usize) {
        let tokens = self.tokens;
        let span = tokens.get(index).map_or(Span::default(), |token| token.span);
        match self.load_at(index) {
            Some((Some((name, span)), after)) => {
                let may_fail = self.may_fail(index);
                self.uses.loads.push(LoadedName { name: name.clone(), span, may_fail });
                self.read_call(&name, index, after);
            }
            Some((None, _)) => self.uses.computed_loads.push(span),
            // Another function of the table, as in `tool.failure`.
            None if tokens.code(index + 1) == "." && tokens.code(index + 2) != "load" => {}
            None => self.uses.computed_loads.push(span),
        }
    }

    fn may_fail(&self, index: usize) -> bool {
        self.may_fail.get(index).copied().unwrap_or_default()
    }

    /// Reads what is done with a tool: the expression from `start` to `after`.
    fn read_call(&mut self, tool: &str, start: usize, after: usize) {
        let tokens = self.tokens;
        match tokens.code(after) {
            "(" => {
                let end = tokens.close(after).unwrap_or(after);
                if let Some(first) = tokens.pieces(after + 1, end).first() {
                    self.read_arguments(tool, *first, self.may_fail(start));
                }
            }
            "{" => self.read_arguments(tool, (after, tokens.skip(after)), self.may_fail(start)),
            _ if self.is_bound(start, after) => {}
            _ => self.add_computed(tool, start),
        }
    }

    /// Returns whether the expression from `start` to `after` is the whole value of a local variable, or is returned
    /// from a function, which is followed.
    fn is_bound(&mut self, start: usize, after: usize) -> bool {
        let tokens = self.tokens;
        if tokens.code_before(start) == "return" {
            let Some((Value::Tool(tool), end)) = self.called_value(start) else { return false };
            let is_whole = end == after && tokens.end_of_expressions(start) == after;
            let function = self.blocks.iter().rev().find_map(|(_, function)| *function);
            let function = function.and_then(|function| self.functions.get_mut(&function));
            return match function.filter(|function| is_whole && function.is_named) {
                // Several returns of one tool are a single one.
                Some(Function { returns: Some(other), .. }) => *other == tool,
                Some(function) => {
                    function.returns = Some(tool);
                    true
                }
                None => false,
            };
        }
        // The variable was declared when the keyword was read.
        let (end, brackets) = self.declaration;
        matches!(tokens.code_before(start), "=" | ",") && after <= end && self.brackets.len() == brackets
    }

    fn add_computed(&mut self, tool: &str, index: usize) {
        if let Some(token) = self.tokens.get(index) {
            self.uses.computed_calls.push((tool.to_owned(), token.span));
        }
    }

    /// Reads a use of a local function.
    fn read_function_call(&mut self, function: usize, index: usize) {
        let tokens = self.tokens;
        let Some(known) = self.functions.get(&function) else { return };
        let (passes, returns) = (known.passes.clone(), known.returns.clone());
        if tokens.code(index + 1) != "(" {
            // The header of the function, or its use as a value.
            if tokens.code_before(index) != "function" {
                let tools = passes.into_iter().map(|(_, tool, _)| tool).chain(returns);
                tools.for_each(|tool| self.add_computed(&tool, index));
            }
            return;
        }
        let pieces = tokens.pieces(index + 2, tokens.close(index + 1).unwrap_or(index + 2));
        for (position, tool, may_fail) in passes {
            if let Some(piece) = pieces.get(position) {
                self.read_arguments(&tool, *piece, may_fail || self.may_fail(index));
            }
        }
        if let Some(tool) = returns {
            self.read_call(&tool, index, tokens.skip(index + 1));
        }
    }

    /// Reads the arguments of a call of a tool.
    fn read_arguments(&mut self, tool: &str, (start, end): (usize, usize), may_fail: bool) {
        let tokens = self.tokens;
        let is_table = tokens.code(start) == "{" && tokens.skip(start) == end;
        let parameter = match self.value_of(tokens.code(start), start) {
            Value::Parameter(function, position) if start + 1 == end => Some((function, position)),
            _ => None,
        };
        if is_table {
            self.read_keys(tool, start, may_fail);
        } else if let Some((function, position)) = parameter
            && let Some(function) = self.functions.get_mut(&function)
            && function.is_named
            && function.passes.len() < MAX_PASSES
        {
            function.passes.push((position, tool.to_owned(), may_fail));
        } else if tokens.code(start) != "nil" {
            self.add_computed(tool, start);
        }
    }

    /// Reads the keys of the table at `open`.
    fn read_keys(&mut self, tool: &str, open: usize, may_fail: bool) {
        let tokens = self.tokens;
        for (start, _) in tokens.pieces(open + 1, tokens.close(open).unwrap_or(open)) {
            let is_name = tokens.is_name(start) && tokens.code(start + 1) == "=";
            let is_string = tokens.code(start) == "["
                && tokens.is_kind(start + 1, TokenKind::PlainString)
                && tokens.code(start + 2) == "]";
            if let Some(token) = tokens.get(start + usize::from(is_string)).filter(|_| is_name || is_string) {
                let (tool, name) = (tool.to_owned(), token.text.to_owned());
                self.uses.keys.push(ArgumentKey { tool, name, span: token.span, is_name, may_fail });
            } else if tokens.code(start) == "[" {
                self.add_computed(tool, start);
            }
        }
    }
}

/// Returns for each token whether its errors are expected or caught: in `expect(…).fails`, `pcall(…)` or `xpcall(…)`.
fn failing(tokens: &Tokens<'_>) -> Vec<bool> {
    let mut until = 0;
    let is_failing = |(index, _)| {
        let close = tokens.close(index + 1).filter(|_| tokens.code(index + 1) == "(");
        let catches = |close: &usize| match tokens.code(index) {
            "pcall" | "xpcall" => true,
            "expect" => tokens.is_member(close + 2) && tokens.code(close + 2) == "fails",
            _ => false,
        };
        until = until.max(close.filter(catches).unwrap_or_default());
        index < until
    };
    tokens.iter().map(is_failing).collect()
}
