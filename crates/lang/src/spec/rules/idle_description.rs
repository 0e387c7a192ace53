use crate::diagnostic::{Diagnostic, Severity, rule};
use crate::spec::{Argument, Json, JsonKind};
use crate::text::{Location, SourceId};

rule! {
    /// an argument description without information
    ///
    /// The model chooses the value of an argument by its name and description. If the description is empty or repeats
    /// the name, the model has to guess.
    ///
    /// ```eld fails
    /// (deftool :name "a" :description "Do a." :args ((:name "path" :description "path" :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "a" :description "Do a." :args ((:name "path" :description "The file to read, relative to the project." :type string)))
    /// ```
    pub(crate) IDLE_DESCRIPTION, "DT240", "idle-description", Note
}

pub(in crate::spec) fn check(source: SourceId, argument: &Argument, findings: &mut Vec<Diagnostic>) {
    let Some(Json { span, kind: JsonKind::String(text) }) = argument.keyword("description") else { return };
    let at = Location { source, span: *span };
    let name = &argument.name.value;
    let plain = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    if text.trim().is_empty() {
        let message = format!("the description of `{name}` is empty");
        let mut finding = Diagnostic::new(&IDLE_DESCRIPTION, at, message);
        finding.severity = Severity::Warning;
        findings.push(finding);
    } else if text.len() <= name.len() + 2 && plain(text) == plain(name) && !plain(name).is_empty() {
        let message = format!("the description of `{name}` only repeats its name");
        findings.push(Diagnostic::new(&IDLE_DESCRIPTION, at, message));
    }
}
