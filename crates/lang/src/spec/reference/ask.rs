//! The keys of asks, and the forms of values in them.

use super::key::{Key, KeyValue, Plist, key_of};

/// A list in the calls of an ask that stands for several values.
#[derive(Debug, Clone, Copy)]
pub struct PatternDoc {
    /// The head.
    pub head: &'static str,
    /// The documentation: one sentence.
    pub doc: &'static str,
}

/// The lists that stand for several values.
pub const PATTERNS: [PatternDoc; 3] = [
    PatternDoc { head: "any", doc: "`(any A B…)`: one of these values." },
    PatternDoc { head: "optional", doc: "`(optional A)`: this value, or a call without the argument." },
    PatternDoc {
        head: "schema",
        doc: "`(schema :type string :pattern \"^[0-9]+$\")`: a value that is valid under this JSON Schema.",
    },
];

const HISTORY: Key = key_of(
    "history",
    KeyValue::Entries(Plist::PastCall),
    "Calls that the model has made after the prompt, such as `[(get_weather :call (:city \"Oslo\") :result \"12 °C\")]`. \
     The next reply counts.",
);

const IGNORE: Key = key_of("ignore", KeyValue::Arguments, "Arguments that do not matter, such as `(note)`.");

pub(super) const PROJECT_ASK: [Key; 5] = [
    key_of("prompt", KeyValue::Text, "The message of the user."),
    key_of(
        "calls",
        KeyValue::Entries(Plist::ExpectedCall),
        "The calls that the model should make, and no other: `[(get_weather :call (:city \"Oslo\")) …]`.",
    ),
    key_of("call", KeyValue::Words(&["none"]), "`none`: the model should call no tool."),
    key_of("ordered", KeyValue::Flag, "`t`: the order of the calls matters."),
    HISTORY,
];

pub(super) const ASK: [Key; 3] = [
    key_of(
        "call",
        KeyValue::Call(&["t", "nil"]),
        "The arguments of the call that the model should make; `t`: any call of the tool; `nil`: no call of the tool. \
         A value may be `(any A B…)`, `(optional A)` or `(schema :type …)`.",
    ),
    IGNORE,
    HISTORY,
];

pub(super) const EXPECTED_CALL: [Key; 2] = [
    key_of(
        "call",
        KeyValue::Call(&["t"]),
        "The arguments; `t`: any. A value may be `(any A B…)`, `(optional A)` or `(schema :type …)`.",
    ),
    IGNORE,
];

pub(super) const PAST_CALL: [Key; 2] = [
    key_of("call", KeyValue::Call(&["nil"]), "The arguments of the call. Default: none."),
    key_of("result", KeyValue::Any, "The result of the call."),
];
