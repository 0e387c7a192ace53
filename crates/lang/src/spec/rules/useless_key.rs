use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// a key that has no effect in its place
    ///
    /// An exit tool is a signal: its call is recorded with its arguments, and nothing is executed, so a script, a timeout
    /// or a permission has no effect. `:stdin`, `:dash`, `:cwd` and `:ok-codes` belong to `:command`. `:async` and
    /// `:memory` are for Lua scripts and have no effect on a program. A worker that starts its own `:server` sends all
    /// requests to it and not to an `:endpoint`.
    ///
    /// ```eld fails
    /// (defexit :name "done" :description "Say that the task is done." :script "scripts/done.lua")
    /// ```
    ///
    /// ```eld repaired
    /// (defexit :name "done" :description "Say that the task is done.")
    /// ```
    ///
    /// In JSON Schema, `required` is a list of names and belongs to the object. An argument is required unless it has
    /// `:optional t`; a property is optional unless it is listed in `:required` of its object. A flag is sent unchanged,
    /// and OpenAI rejects a `required` that is not an array.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :required t :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string)))
    /// ```
    ///
    /// Only arguments have a `:name` and may be `:optional`. In a schema these keys are sent as unknown keywords. A
    /// property is named by its key, and array elements have no name.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "Some x." :type array :items (:name "y" :type string))))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "Some x." :type array :items (:type string))))
    /// ```
    pub USELESS_KEY, "DT122", "useless-key", Warning
}

/// Keys for the execution of a script or program.
pub(in crate::spec) const NOT_ON_EXIT: [&str; 15] = [
    "script", "command", "stdin", "dash", "cwd", "ok-codes", "timeout", "memory", "max-result", "allow", "base", "async", "effect", "returns", "function",
];

const SENT: &str = "it is sent unchanged, and some APIs reject it";

/// `place` completes the sentence, such as `on an exit tool`.
pub(in crate::spec) fn finding(at: Location, key: &str, place: &str) -> Diagnostic {
    Diagnostic::new(&USELESS_KEY, at, format!("`:{key}` has no effect {place}"))
}

/// Reports a flag `:required` on an argument. `is_true` means that the flag is `t`; `optional` is the value of
/// `:optional`.
pub(in crate::spec) fn required(at: Location, is_true: bool, optional: Option<bool>) -> Diagnostic {
    let place = "on an argument; arguments are required unless they have `:optional t`";
    let finding = finding(at, "required", place).note(SENT);
    match (is_true, optional) {
        // The flag repeats the actual setting.
        (true, None | Some(false)) | (false, Some(true)) => finding.fixed_by("remove it", at.span, ""),
        (false, None) => finding.maybe_fixed_by("write `:optional t`", at.span, ":optional t"),
        (true, Some(true)) | (false, Some(false)) => finding.note("`:optional` has the opposite value"),
    }
}

/// Reports a flag `:required` on a schema inside an argument.
pub(in crate::spec) fn required_inside(at: Location) -> Diagnostic {
    let message = "`:required` takes a vector of property names and belongs to the object";
    Diagnostic::new(&USELESS_KEY, at, message).note(SENT)
}

/// Reports a key of an argument inside its schema.
pub(in crate::spec) fn of_argument(at: Location, key: &str) -> Diagnostic {
    finding(at, key, "inside a schema").note(if key == "name" {
        "a property is named by its key: `:properties (:city (:type string))`"
    } else {
        "a property is optional unless it is listed in `:required [\"…\"]` of its object"
    })
}
