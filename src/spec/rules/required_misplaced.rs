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

/// `is_true`: the flag is `t`, which says what holds anyway.
pub(in crate::spec) fn finding(at: Location, is_argument: bool, is_true: bool) -> Diagnostic {
    let message = if is_argument {
        "`:required` on an argument says nothing; arguments are required unless `:optional t`"
    } else {
        "`:required` takes a vector of property names and stands on the object"
    };
    let finding = Diagnostic::new(&REQUIRED_MISPLACED, at, message)
        .note("it is sent as it is, and some APIs refuse it");
    match (is_argument, is_true) {
        (true, true) => finding.fixed_by("remove it", at.span, ""),
        (true, false) => finding.maybe_fixed_by("write `:optional t`", at.span, ":optional t"),
        (false, _) => finding,
    }
}
