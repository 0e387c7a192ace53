use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::schema::Target;
use deftool_lang::spec::nearest;
use deftool_lang::text::Location;

use crate::model::Load;

rule! {
    /// an override for an unknown target
    ///
    /// Values in `:targets` under an unknown name are never sent.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time." :targets (:gemni (:description "Tell the hour.")))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time." :targets (:gemini (:description "Tell the hour.")))
    /// ```
    pub(crate) UNKNOWN_TARGET, "DT124", "unknown-target", Warning
}

pub(crate) fn check(load: &Load) -> Vec<Diagnostic> {
    let known = Target::ALL.map(Target::as_str);
    let overrides = load.tools.iter().flat_map(|loaded| {
        let tool = &loaded.tool;
        tool.overrides.iter().map(|over| (tool.source, &over.target))
    });
    overrides
        .filter(|(_, target)| !known.contains(&target.value.as_str()))
        .map(|(source, target)| {
            let at = Location { source, span: target.span };
            let name = target.value.trim_end_matches(':');
            let finding = Diagnostic::new(&UNKNOWN_TARGET, at, format!("unknown target `:{name}`"));
            match nearest(name, known) {
                Some(near) => finding.did_you_mean(at.span, format!(":{near}")),
                None => finding.note(format!("available targets: {}", known.join(", "))),
            }
        })
        .collect()
}
