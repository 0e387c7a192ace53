//! The layout class and the one-line width of each node.

use super::super::NodeId;
use super::super::tree::{Kind, Tree};

/// Maximum number of keys in a plist on one line.
pub(crate) const MAX_KEYS: u32 = 5;

/// The functions with formatted calls; any other call is code.
const CALLS: [&str; 9] =
    ["list", "vector", "cons", "append", "nconc", "vconcat", "concat", "format", "quote"];

/// The heads of lists in asks that stand for several values. They are formatted like calls.
const PATTERNS: [&str; 3] = ["any", "optional", "schema"];

/// The layout class of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// One token.
    Atom,
    /// A prefix with its form.
    Prefix,
    /// `(:key value …)`
    Plist,
    /// A list or vector of constants.
    Data,
    /// `(list …)`: arguments aligned under the first.
    Call,
    /// Head, then keys and values: `("prompt" :call t)`.
    Entry,
    /// Head, then one key per line.
    Form,
    /// Head and name, then the rest indented by two columns.
    Collection,
    /// Moved without changing its layout.
    Code,
}

/// The role of a node in its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A tool form.
    Form,
    /// An `llm-tool-collection-deftool`.
    Collection,
    /// The argument list of an `llm-tool-collection-deftool`.
    CollectionArguments,
    /// One argument of it: `(path "description" :type string)`.
    CollectionArgument,
    /// An evaluated value.
    Value,
    /// A constant: quoted, or inside a quoted form.
    Constant,
    /// An element of a vector, a constant too.
    Element,
    /// Code, whatever its syntax.
    Code,
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    class: Class,
    /// Width on one line; `None` if the node takes several lines.
    flat: Option<usize>,
    /// Number of plist keys in the node.
    keys: u32,
}

/// The shape of every node in some forms, except inside code.
pub(super) struct Shapes {
    shapes: Vec<Shape>,
}

impl Shapes {
    pub(super) fn of(tree: &Tree, text: &str, forms: &[(NodeId, Role)]) -> Self {
        let unseen = Shape { class: Class::Code, flat: None, keys: 0 };
        let mut builder = Builder { tree, text, shapes: vec![unseen; tree.nodes.len()] };
        let mut pending = forms.to_vec();
        let mut seen = Vec::new();
        while let Some((id, role)) = pending.pop() {
            let class = builder.classify(id, role);
            if let Some(shape) = builder.shapes.get_mut(id.0 as usize) {
                shape.class = class;
            }
            builder.push_children(id, role, class, &mut pending);
            seen.push((id, role));
        }
        // Children come after their parent in the list.
        for (id, role) in seen.into_iter().rev() {
            let (flat, keys) = builder.measure(id, role);
            if let Some(shape) = builder.shapes.get_mut(id.0 as usize) {
                (shape.flat, shape.keys) = (flat, keys);
            }
        }
        Self { shapes: builder.shapes }
    }

    pub(super) fn class(&self, id: NodeId) -> Class {
        self.shapes.get(id.0 as usize).map_or(Class::Code, |shape| shape.class)
    }

    pub(super) fn flat(&self, id: NodeId) -> Option<usize> {
        self.shapes.get(id.0 as usize).and_then(|shape| shape.flat)
    }
}

struct Builder<'t> {
    tree: &'t Tree,
    text: &'t str,
    shapes: Vec<Shape>,
}

impl Builder<'_> {
    fn classify(&self, id: NodeId, role: Role) -> Class {
        let kind = self.tree.kind(id);
        match kind {
            Kind::Dot
            | Kind::Symbol
            | Kind::Keyword
            | Kind::String
            | Kind::Integer
            | Kind::Float
            | Kind::Character => Class::Atom,
            Kind::Opaque => Class::Code,
            _ if role == Role::Code => Class::Code,
            Kind::Quote | Kind::Function | Kind::Backquote | Kind::Unquote | Kind::Splice => {
                self.classify_prefix(id, kind)
            }
            Kind::List | Kind::Vector if !self.has_plain_gaps(id) => Class::Code,
            Kind::Vector => Class::Data,
            Kind::List => self.classify_list(id, role),
        }
    }

    fn classify_prefix(&self, id: NodeId, kind: Kind) -> Class {
        let Some(child) = self.tree.children(id).next() else { return Class::Code };
        let is_tight =
            self.tree.span(id).start as usize + prefix(kind).len() == self.tree.span(child).start as usize;
        let is_lambda = kind == Kind::Function && self.tree.kind(child) != Kind::Symbol;
        if is_tight && !is_lambda { Class::Prefix } else { Class::Code }
    }

    fn classify_list(&self, id: NodeId, role: Role) -> Class {
        match role {
            Role::Form if self.head_kind(id) == Some(Kind::Keyword) => return Class::Plist,
            Role::Form => return Class::Form,
            Role::Collection => return Class::Collection,
            _ => {}
        }
        let mut children = self.tree.children(id);
        let Some(head) = children.next() else { return Class::Data };
        if self.tree.children(id).any(|child| self.tree.kind(child) == Kind::Dot) {
            return Class::Data;
        }
        let is_constant = matches!(role, Role::Constant | Role::Element);
        let has_keys = children.clone().next().is_some_and(|next| self.tree.kind(next) == Kind::Keyword);
        match self.tree.kind(head) {
            Kind::Keyword => Class::Plist,
            Kind::Symbol | Kind::String if role == Role::Element && has_keys => Class::Entry,
            Kind::Symbol if is_constant && PATTERNS.contains(&self.tree.text(head, self.text)) => Class::Call,
            Kind::Symbol if role == Role::CollectionArgument => Class::Call,
            Kind::Symbol if role == Role::CollectionArguments => Class::Data,
            Kind::Symbol if is_constant => {
                // A list of names is data; `(if (a) …)` is quoted code.
                if children.all(|child| self.is_name(child)) { Class::Data } else { Class::Code }
            }
            Kind::Symbol if CALLS.contains(&self.tree.text(head, self.text)) => Class::Call,
            Kind::Symbol => Class::Code,
            _ => Class::Data,
        }
    }

    fn head_kind(&self, id: NodeId) -> Option<Kind> {
        self.tree.children(id).next().map(|head| self.tree.kind(head))
    }

    fn is_name(&self, id: NodeId) -> bool {
        self.tree.kind(id).is_token() && self.tree.kind(id) != Kind::Opaque
    }

    fn push_children(&self, id: NodeId, role: Role, class: Class, pending: &mut Vec<(NodeId, Role)>) {
        let kind = self.tree.kind(id);
        let children = self.tree.children(id);
        match class {
            Class::Atom | Class::Code => {}
            Class::Prefix => {
                let is_quote = matches!(kind, Kind::Quote | Kind::Backquote);
                let inner = if is_quote { Role::Constant } else { Role::Value };
                pending.extend(children.map(|child| (child, inner)));
            }
            Class::Form | Class::Plist if role == Role::Form => {
                let mut after_code_key = false;
                for child in children {
                    pending.push((child, if after_code_key { Role::Code } else { Role::Value }));
                    after_code_key = self.tree.text(child, self.text) == ":function";
                }
            }
            Class::Collection => {
                let is_plist =
                    self.tree.children(id).nth(2).is_some_and(|c| self.tree.kind(c) == Kind::Keyword);
                for (index, child) in children.enumerate() {
                    let role = match index {
                        0..=2 => Role::Constant,
                        _ if is_plist => Role::Value,
                        3 => Role::CollectionArguments,
                        _ => Role::Code,
                    };
                    pending.push((child, role));
                }
            }
            Class::Form | Class::Plist | Class::Data | Class::Call | Class::Entry => {
                let is_quote = class == Class::Call
                    && children.clone().next().is_some_and(|head| self.tree.text(head, self.text) == "quote");
                let inner = match role {
                    Role::CollectionArguments => Role::CollectionArgument,
                    _ if kind == Kind::Vector => Role::Element,
                    _ if is_quote => Role::Constant,
                    Role::Constant | Role::Element | Role::CollectionArgument => Role::Constant,
                    Role::Form | Role::Collection | Role::Value | Role::Code => Role::Value,
                };
                pending.extend(children.map(|child| (child, inner)));
            }
        }
    }

    /// Returns the width on one line and the number of keys. The shapes of all children must be known.
    fn measure(&self, id: NodeId, role: Role) -> (Option<usize>, u32) {
        let shape = |id: NodeId| self.shapes.get(id.0 as usize);
        let span = self.tree.span(id);
        let Some(class) = shape(id).map(|shape| shape.class) else { return (None, 0) };
        let children = || self.tree.children(id);
        if matches!(class, Class::Atom | Class::Code) {
            let token = span.of(self.text);
            return ((!token.contains('\n')).then(|| token.chars().count()), 0);
        }
        let mut keys = children().filter_map(shape).fold(0u32, |sum, shape| sum.saturating_add(shape.keys));
        if matches!(class, Class::Plist | Class::Call | Class::Entry) {
            let own = children().filter(|child| self.tree.kind(*child) == Kind::Keyword).count();
            keys = keys.saturating_add(own as u32);
        }
        let mut width = match class {
            Class::Prefix => prefix(self.tree.kind(id)).len(),
            _ => 2 + children().count().saturating_sub(1),
        };
        for child in children() {
            match shape(child).and_then(|shape| shape.flat) {
                Some(flat) => width = width.saturating_add(flat),
                None => return (None, keys),
            }
        }
        let is_entry = |child| shape(child).is_some_and(|shape| shape.class == Class::Entry);
        let is_broken = match class {
            Class::Form | Class::Collection => {
                children().nth(1).is_some() || self.is_broken_by_gaps(id, class)
            }
            Class::Plist if role == Role::Form => true,
            Class::Plist | Class::Entry => keys > MAX_KEYS || self.is_broken_by_gaps(id, class),
            Class::Data | Class::Call => {
                let is_list = self.tree.kind(id) == Kind::List;
                keys > MAX_KEYS
                    || self.is_broken_by_gaps(id, class)
                    || (is_list && self.holds_several_plists(id, role))
                    || children().filter(|child| is_entry(*child)).nth(1).is_some()
            }
            Class::Atom | Class::Code | Class::Prefix => false,
        };
        ((!is_broken).then_some(width), keys)
    }

    /// Whether at least two items are plists, quoted or not, or arguments of a collection.
    fn holds_several_plists(&self, id: NodeId, role: Role) -> bool {
        let is_plist = |child: &NodeId| {
            let mut child = *child;
            while self.tree.kind(child).is_prefix() {
                let Some(inner) = self.tree.children(child).next() else { break };
                child = inner;
            }
            self.tree.kind(child) == Kind::List
                && (role == Role::CollectionArguments || self.head_kind(child) == Some(Kind::Keyword))
        };
        self.tree.children(id).filter(is_plist).nth(1).is_some()
    }

    /// Whether all gaps between the items consist of whitespace and comments.
    fn has_plain_gaps(&self, id: NodeId) -> bool {
        self.gaps(id).into_iter().all(is_plain)
    }

    /// Whether there is a comment, or a blank line between entries.
    fn is_broken_by_gaps(&self, id: NodeId, class: Class) -> bool {
        if self.gaps(id).iter().any(|gap| gap.contains([';', '#'])) {
            return true;
        }
        let entries = entries(self.tree, self.text, id, class);
        entries.windows(2).any(|pair| {
            let [before, after] = pair else { return false };
            let start = self.tree.span(before.last()).end as usize;
            let end = self.tree.span(after.first).start as usize;
            let gap = self.text.get(start..end).unwrap_or_default();
            memchr::memchr_iter(b'\n', gap.as_bytes()).nth(1).is_some()
        })
    }

    /// Returns the gaps before each item and before the end.
    fn gaps(&self, id: NodeId) -> Vec<&str> {
        let span = self.tree.span(id);
        let mut at = span.start as usize + 1;
        let mut gaps = Vec::new();
        for child in self.tree.children(id) {
            let child = self.tree.span(child);
            gaps.push(self.text.get(at..child.start as usize).unwrap_or_default());
            at = child.end as usize;
        }
        gaps.push(self.text.get(at..(span.end as usize).saturating_sub(1)).unwrap_or_default());
        gaps
    }
}

/// An entry of a list with its own line: an item, or a key and its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) first: NodeId,
    pub(super) value: Option<NodeId>,
}

impl Entry {
    pub(super) fn last(&self) -> NodeId {
        self.value.unwrap_or(self.first)
    }
}

/// Returns the number of items before the entries of a list.
pub(super) fn heads(tree: &Tree, id: NodeId, class: Class) -> usize {
    match class {
        // The arguments before the first key go next to the head.
        Class::Form => tree.children(id).position(|child| tree.kind(child) == Kind::Keyword).unwrap_or(1),
        Class::Call | Class::Entry => 1,
        Class::Collection => 2,
        Class::Plist | Class::Data | Class::Atom | Class::Prefix | Class::Code => 0,
    }
}

/// Returns the entries of a list. Keys and values alternate as in the checks; a key without a value is its own entry.
pub(super) fn entries(tree: &Tree, text: &str, id: NodeId, class: Class) -> Vec<Entry> {
    let mut items = tree.children(id).skip(heads(tree, id, class)).peekable();
    let mut entries = Vec::new();
    while let Some(first) = items.next() {
        let takes_next = match tree.kind(first) {
            Kind::Dot => true,
            kind => kind == Kind::Keyword && class != Class::Data,
        };
        let value = items.next_if(|next| takes_next && !is_key(tree, text, *next));
        entries.push(Entry { first, value });
    }
    entries
}

fn is_key(tree: &Tree, text: &str, id: NodeId) -> bool {
    let is_constant = || matches!(tree.text(id, text), ":json-false" | ":false" | ":null" | ":json-null");
    tree.kind(id) == Kind::Keyword && !is_constant()
}

/// Whether a gap consists of whitespace and comments.
fn is_plain(gap: &str) -> bool {
    gap.split('\n').all(|line| {
        let words = line.trim_start_matches([' ', '\t', '\r', '\u{C}']);
        words.is_empty() || words.starts_with(';') || words.starts_with("#!")
    })
}

/// Returns the text of a prefix.
pub(super) fn prefix(kind: Kind) -> &'static str {
    match kind {
        Kind::Quote => "'",
        Kind::Function => "#'",
        Kind::Backquote => "`",
        Kind::Unquote => ",",
        Kind::Splice => ",@",
        _ => "",
    }
}
