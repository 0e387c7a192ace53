use crate::diagnostic::{Diagnostic, rule};
use crate::spec::Argument;
use crate::text::{Location, SourceId, Span};

rule! {
    /// a :default on a required argument
    ///
    /// An argument without `:optional t` is required: the model passes it in every call, and the default is never used.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer :default 1)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "x" :description "An x." :type integer :default 1 :optional t)))
    /// ```
    pub(crate) DEFAULT_ON_REQUIRED, "DT231", "default-on-required", Note
}

pub(in crate::spec) fn check(source: SourceId, argument: &Argument, findings: &mut Vec<Diagnostic>) {
    let default = argument.schema.iter().find(|member| member.key == "default");
    let Some(default) = default.filter(|_| !argument.optional) else { return };
    let message = format!("`{}` is required, so its default is never used", argument.name.value);
    let end = Span { start: default.value.span.end, end: default.value.span.end };
    findings.push(
        Diagnostic::new(&DEFAULT_ON_REQUIRED, Location { source, span: default.key_span }, message)
            .maybe_fixed_by("add `:optional t`", end, " :optional t"),
    );
}
