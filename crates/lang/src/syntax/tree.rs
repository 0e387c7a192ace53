//! The syntax tree: one flat array in source order.
//!
//! Each node stores the end of its subtree. Children are found without pointers, a tree of any depth is dropped in one
//! step, and walking the tree needs no recursion.

use crate::text::Span;

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `( … )`
    List,
    /// `[ … ]`
    Vector,
    /// The dot of a dotted pair, between its neighbours.
    Dot,
    /// A symbol.
    Symbol,
    /// A symbol that begins with a colon.
    Keyword,
    /// `"…"`
    String,
    /// `12`, `+3.`, `#x1f`
    Integer,
    /// `1.5`, `1e3`
    Float,
    /// `?a`
    Character,
    /// `'x`
    Quote,
    /// `#'x`
    Function,
    /// `` `x ``
    Backquote,
    /// `,x`
    Unquote,
    /// `,@x`
    Splice,
    /// Reader syntax without a constant value: `#s(…)`, `#[…]`, `#1=x`, `#1#`, `#:x`, `#&8"…"`, `#$`. Its children are
    /// the forms inside.
    Opaque,
}

impl Kind {
    /// Whether the node takes exactly one form after it.
    pub fn is_prefix(self) -> bool {
        matches!(self, Self::Quote | Self::Function | Self::Backquote | Self::Unquote | Self::Splice)
    }

    /// Whether the node is a single token without child forms (a [`Kind::Opaque`] may have some).
    pub(super) fn is_token(self) -> bool {
        !self.is_prefix() && !matches!(self, Self::List | Self::Vector)
    }
}

/// Index of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) span: Span,
    /// Index of the first node after this subtree.
    pub(super) end: u32,
}

/// The syntax tree of a source.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) comments: Vec<Span>,
    pub(super) errors: SyntaxErrors,
}

/// The spans of all syntax errors, indexed so that lookups are fast for any number of errors.
#[derive(Debug, Clone, Default)]
pub(super) struct SyntaxErrors {
    /// Errors in the order of detection, until [`SyntaxErrors::sort`].
    found: Vec<(Span, SyntaxError)>,
    /// Errors by start offset.
    sorted: Vec<SyntaxErrorRange>,
    /// Top-level forms that are directly followed by a surplus closer, in order.
    pub(super) overclosed: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
struct SyntaxErrorRange {
    start: u32,
    /// Furthest end of this error and all before it.
    reach: u32,
    /// Furthest end of those that are [`SyntaxError::Misnested`].
    misnested_reach: u32,
}

impl SyntaxErrors {
    pub(super) fn push(&mut self, span: Span, error: SyntaxError) {
        self.found.push((span, error));
    }

    /// Builds the index after reading.
    pub(super) fn sort(&mut self) {
        let mut found = std::mem::take(&mut self.found);
        found.sort_unstable_by_key(|(span, _)| span.start);
        let (mut reach, mut misnested_reach) = (0, 0);
        self.sorted = found
            .into_iter()
            .map(|(Span { start, end }, error)| {
                // An empty error belongs to the form that starts there.
                reach = reach.max(end.max(start + 1));
                if error == SyntaxError::Misnested {
                    misnested_reach = misnested_reach.max(end.max(start + 1));
                }
                SyntaxErrorRange { start, reach, misnested_reach }
            })
            .collect();
    }

    /// Returns the most severe error that touches `span`.
    fn worst_in(&self, span: Span) -> Option<SyntaxError> {
        let before_end = self.sorted.partition_point(|mark| mark.start < span.end);
        let mark = self.sorted.get(before_end.checked_sub(1)?)?;
        if mark.misnested_reach > span.start {
            Some(SyntaxError::Misnested)
        } else {
            (mark.reach > span.start).then_some(SyntaxError::InvalidAtom)
        }
    }
}

/// The kind of a syntax error inside a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyntaxError {
    /// An atom is invalid; the structure of the form is intact.
    InvalidAtom,
    /// A form is unclosed or closed too often: the structure of the form and of the forms after it is a guess.
    Misnested,
}

impl Tree {
    /// Returns the source text of a node.
    pub fn text<'t>(&self, id: NodeId, source: &'t str) -> &'t str {
        self.span(id).of(source)
    }

    /// Returns the top-level forms.
    pub fn roots(&self) -> Children<'_> {
        Children { tree: self, next: 0, end: self.nodes.len() as u32 }
    }

    /// Returns the direct children of `id`.
    pub fn children(&self, id: NodeId) -> Children<'_> {
        let end = self.nodes.get(id.0 as usize).map_or(id.0, |node| node.end);
        Children { tree: self, next: id.0 + 1, end }
    }

    /// Returns the kind of `id`.
    pub fn kind(&self, id: NodeId) -> Kind {
        self.nodes.get(id.0 as usize).map_or(Kind::Opaque, |node| node.kind)
    }

    /// Returns the span of `id`.
    pub fn span(&self, id: NodeId) -> Span {
        self.nodes.get(id.0 as usize).map_or(Span::default(), |node| node.span)
    }

    /// Iterates over all nodes in source order, parents before children.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Returns the node after the subtree of `id`, at any depth.
    pub fn next(&self, id: NodeId) -> Option<NodeId> {
        let end = self.nodes.get(id.0 as usize)?.end;
        ((end as usize) < self.nodes.len()).then_some(NodeId(end))
    }

    /// Returns the comments in source order, without their line ends.
    pub fn comments(&self) -> &[Span] {
        &self.comments
    }

    /// Returns the most severe syntax error inside `id`.
    pub fn syntax_error(&self, id: NodeId) -> Option<SyntaxError> {
        self.errors.worst_in(self.span(id))
    }

    /// Whether `id` is in a form with more closing than opening parentheses, so that an opening parenthesis may be
    /// missing in it.
    pub fn is_overclosed(&self, id: NodeId) -> bool {
        let start = self.span(id).start;
        let next = self.errors.overclosed.partition_point(|form| form.start <= start);
        let form = next.checked_sub(1).and_then(|index| self.errors.overclosed.get(index));
        form.is_some_and(|form| start < form.end)
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the tree has no forms.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

/// Sibling nodes, in source order.
#[derive(Debug, Clone)]
pub struct Children<'t> {
    tree: &'t Tree,
    next: u32,
    end: u32,
}

impl Iterator for Children<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        if self.next >= self.end {
            return None;
        }
        let id = NodeId(self.next);
        self.next = self.tree.nodes.get(self.next as usize).map_or(self.end, |node| node.end);
        Some(id)
    }
}
