//! The kinds of plists, keys and values.

use crate::spec::ToolKind;

/// A plist whose keys have a fixed meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plist {
    /// `deftool`, and the forms that mean the same.
    Tool,
    /// `defexit`.
    Exit,
    /// `defworker`.
    Worker,
    /// `defmcp`.
    Mcp,
    /// `defdialect`.
    Dialect,
    /// A row of a dialect's `:probes`.
    Probe,
    /// A row of a dialect's `:features`.
    Feature,
    /// A row of a dialect's `:errors`.
    ErrorRow,
    /// What a server sends for a row of `:errors` or `:delays`.
    Example,
    /// A row of a dialect's `:finish`.
    Finish,
    /// A row of a dialect's `:delays`.
    Delay,
    /// A row of a dialect's `:models`.
    Model,
    /// The value of a dialect's `:image-limits`.
    ImageLimits,
    /// `defproject`.
    Project,
    /// An element of `:args`.
    Argument,
    /// A schema inside an argument or in `:returns`.
    Schema,
    /// The value of `:allow`.
    Permissions,
    /// The value of a worker's `:server`.
    Server,
    /// An override in `:targets`.
    Override,
    /// The options of a name in `:tool-forms`.
    ToolForm,
    /// `defask`.
    ProjectAsk,
    /// What follows the prompt in an element of `:asks`.
    Ask,
    /// What follows the tool in an element of `:calls`.
    ExpectedCall,
    /// What follows the tool in an element of `:history`.
    PastCall,
}

impl Plist {
    /// Returns the owner of the keys, with its article.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Tool | Self::Exit => "a tool",
            Self::Worker => "a worker",
            Self::Mcp => "an MCP server",
            Self::Dialect => "a dialect",
            Self::Probe => "a row of `:probes`",
            Self::Feature => "a row of `:features`",
            Self::ErrorRow => "a row of `:errors`",
            Self::Example => "an example",
            Self::Finish => "a row of `:finish`",
            Self::Delay => "a row of `:delays`",
            Self::Model => "a row of `:models`",
            Self::ImageLimits => "`:image-limits`",
            Self::Project => "`defproject`",
            Self::Argument => "an argument",
            Self::Schema => "a schema",
            Self::Permissions => "`:allow`",
            Self::Server => "`:server`",
            Self::Override => "a target's override",
            Self::ToolForm => "a tool form",
            Self::ProjectAsk => "`defask`",
            Self::Ask => "an ask",
            Self::ExpectedCall => "a call in `:calls`",
            Self::PastCall => "a call in `:history`",
        }
    }
}

/// A key of a plist.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The name, without a colon.
    pub name: &'static str,
    /// The value.
    pub value: KeyValue,
    /// The documentation in Markdown: one sentence, or several.
    pub doc: &'static str,
}

/// The values that a key takes.
#[derive(Debug, Clone, Copy)]
pub enum KeyValue {
    /// A string.
    Text,
    /// `t` or `nil`.
    Flag,
    /// `t` or `:json-false`.
    JsonFlag,
    /// A number.
    Number,
    /// A string with a duration or a size.
    Quantity,
    /// One of these symbols.
    Words(&'static [&'static str]),
    /// A vector of some of these symbols.
    WordList(&'static [&'static str]),
    /// An HTTP status.
    Status,
    /// A vector of HTTP statuses.
    Statuses,
    /// The name of a dialect, as a symbol.
    Dialect,
    /// One of these strings.
    Strings(&'static [&'static str]),
    /// One type, or a vector of types.
    Type,
    /// The path of a script.
    Script,
    /// A vector of names of tools.
    Tools(ToolKind),
    /// A vector of codes or names of rules.
    Rules,
    /// A list of names of preview features.
    Previews,
    /// A vector of strings.
    List,
    /// A plist.
    Plist(Plist),
    /// A list of plists.
    Plists(Plist),
    /// A vector of plists.
    VectorOf(Plist),
    /// A plist from names to plists.
    Named(Plist),
    /// A vector of plists from arguments of the tool to values.
    Calls,
    /// A vector of lists: a prompt or a tool, then the keys of a plist.
    Entries(Plist),
    /// A plist from arguments of a tool to values, or one of these words.
    Call(&'static [&'static str]),
    /// A list of arguments of a tool.
    Arguments,
    /// `t` or `(:when CONDITION…)`.
    Confirm,
    /// Any value.
    Any,
}

impl KeyValue {
    /// Returns the shape of the values, for people.
    pub fn shape(&self) -> String {
        let fixed = match self {
            Self::Text => "\"text\"",
            Self::Flag => "t|nil",
            Self::JsonFlag => "t|:json-false",
            Self::Number => "number",
            Self::Quantity => "\"quantity\"",
            Self::Words(words) => return words.join("|"),
            Self::WordList(words) => return format!("[{}…]", words.join("|")),
            Self::Status => "status",
            Self::Statuses => "[status…]",
            Self::Dialect => "dialect",
            Self::Strings(_) => "\"word\"",
            Self::Type => "type",
            Self::Script => "\"path\"",
            Self::Tools(_) => "[\"tool\"…]",
            Self::Rules => "[rule…]",
            Self::Previews => "(feature…)",
            Self::List => "[\"text\"…]",
            Self::Plist(_) => "(…)",
            Self::Plists(_) => "((…)…)",
            Self::VectorOf(_) => "[(…)…]",
            Self::Named(_) => "(:name (…)…)",
            Self::Calls => "[(:argument value…)…]",
            Self::Entries(Plist::Ask) => "[(\"prompt\" :key value…)…]",
            Self::Entries(_) => "[(tool :key value…)…]",
            Self::Call(words) => return format!("{}|(:argument value…)", words.join("|")),
            Self::Arguments => "(argument…)",
            Self::Confirm => "t|(:when condition…)",
            Self::Any => "value",
        };
        String::from(fixed)
    }
}

pub(super) const fn key_of(name: &'static str, value: KeyValue, doc: &'static str) -> Key {
    Key { name, value, doc }
}
