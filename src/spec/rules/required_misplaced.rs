use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// :required as a flag, where it says nothing
    ///
    /// In JSON Schema `required` is a list of names and stands on the object. An argument is required unless it has `:optional t`; a property is
    /// optional unless `:required` of its object names it. The flag is sent as it is, and OpenAI refuses a `required` that is no array.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :required t :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type string)))
    /// ```
    pub(crate) REQUIRED_MISPLACED, "DT212", "required-misplaced", Warning
}

const NOTE: &str = "it is sent as it is, and some APIs refuse it";

/// On an argument. `is_true`: the flag is `t`; `optional`: what `:optional` says beside it.
pub(in crate::spec) fn finding(at: Location, is_true: bool, optional: Option<bool>) -> Diagnostic {
    let message = "`:required` on an argument says nothing; arguments are required unless `:optional t`";
    let finding = Diagnostic::new(&REQUIRED_MISPLACED, at, message).note(NOTE);
    match (is_true, optional) {
        // What holds without it.
        (true, None | Some(false)) | (false, Some(true)) => finding.fixed_by("remove it", at.span, ""),
        (false, None) => finding.maybe_fixed_by("write `:optional t`", at.span, ":optional t"),
        (true, Some(true)) | (false, Some(false)) => finding.note("`:optional` says the opposite"),
    }
}

/// On a schema inside of an argument.
pub(in crate::spec) fn of_property(at: Location) -> Diagnostic {
    let message = "`:required` takes a vector of property names and stands on the object";
    Diagnostic::new(&REQUIRED_MISPLACED, at, message).note(NOTE)
}
