use crate::diagnostic::{Diagnostic, rule};
use crate::text::Location;

rule! {
    /// :required as a flag, which has no effect
    ///
    /// In JSON Schema, `required` is a list of names and belongs to the object. An argument is required unless it has
    /// `:optional t`; a property is optional unless it is listed in `:required` of its object. The flag is sent
    /// unchanged, and OpenAI rejects a `required` that is not an array.
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

const NOTE: &str = "it is sent unchanged, and some APIs reject it";

/// Reports the flag on an argument. `is_true` means that the flag is `t`; `optional` is the value of `:optional`.
pub(in crate::spec) fn finding(at: Location, is_true: bool, optional: Option<bool>) -> Diagnostic {
    let message =
        "`:required` has no effect on an argument; arguments are required unless they have `:optional t`";
    let finding = Diagnostic::new(&REQUIRED_MISPLACED, at, message).note(NOTE);
    match (is_true, optional) {
        // The flag repeats the actual setting.
        (true, None | Some(false)) | (false, Some(true)) => finding.fixed_by("remove it", at.span, ""),
        (false, None) => finding.maybe_fixed_by("write `:optional t`", at.span, ":optional t"),
        (true, Some(true)) | (false, Some(false)) => finding.note("`:optional` has the opposite value"),
    }
}

/// Reports the flag on a schema inside an argument.
pub(in crate::spec) fn of_property(at: Location) -> Diagnostic {
    let message = "`:required` takes a vector of property names and belongs to the object";
    Diagnostic::new(&REQUIRED_MISPLACED, at, message).note(NOTE)
}
