use crate::diagnostic::{Diagnostic, rule};
use crate::schema::value_checker::Misfit;
use crate::text::Location;

rule! {
    /// an ask that no valid call can meet
    ///
    /// A call with arguments that the schema rejects is not made. An ask that states such arguments, or leaves out a
    /// required argument, fails whatever the model does. `:ignore` names the arguments that do not matter.
    ///
    /// ```eld fails
    /// (defproject :preview (asks))
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer))
    ///     :asks [("Do it once." :call (:x "1"))])
    /// ```
    ///
    /// ```eld repaired
    /// (defproject :preview (asks))
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer))
    ///     :asks [("Do it once." :call (:x 1))])
    /// ```
    pub(crate) ASK_MISFIT, "DT261", "ask-misfit", Error
}

/// The finding for a value that the schema rejects. `is_nil`: it is written as nil.
pub(in crate::schema) fn finding(at: Location, misfit: &Misfit, is_nil: bool) -> Diagnostic {
    let message = format!("no valid call has this value: {}", misfit.message);
    let finding = misfit.suggest(Diagnostic::new(&ASK_MISFIT, at, message));
    if is_nil && misfit.message.ends_with("of type boolean") {
        return finding.fixed_by("write `:json-false`", at.span, ":json-false");
    }
    finding
}

/// The finding for a value of another type than `name`.
pub(in crate::schema) fn of_type(at: Location, name: &str) -> Diagnostic {
    Diagnostic::new(&ASK_MISFIT, at, format!("no valid call has this value: it is not of type {name}"))
}

/// The finding for a member that the schema does not allow.
pub(in crate::schema) fn member(at: Location, name: &str) -> Diagnostic {
    Diagnostic::new(&ASK_MISFIT, at, format!("no valid call has the member `{name}`: it is not in `:properties`"))
}

/// The finding for required arguments or members that are not stated.
pub(in crate::schema) fn missing(at: Location, names: &[&str]) -> Diagnostic {
    let shown: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let message = format!("every valid call has {}, which the ask does not state", shown.join(", "));
    Diagnostic::new(&ASK_MISFIT, at, message).note("state a value, or name the argument in `:ignore`")
}
