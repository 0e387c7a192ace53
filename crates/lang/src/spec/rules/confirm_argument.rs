use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, rule};
use crate::spec::confirm::{Testable, testable_members};
use crate::spec::form::keyword;
use crate::spec::{Json, JsonKind, Member, Tool, nearest};
use crate::syntax::write;
use crate::text::Location;

rule! {
    /// a :confirm condition on an unknown argument
    ///
    /// `:confirm (:when …)` names arguments of the tool and members of object arguments. With a misspelt name the
    /// condition never matches, and the call runs without approval.
    ///
    /// ```eld fails
    /// (deftool :name "drop" :description "Drop a file." :confirm (:when (:pth "^/etc/"))
    ///     :args ((:name "path" :description "Which." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "drop" :description "Drop a file." :confirm (:when (:path "^/etc/"))
    ///     :args ((:name "path" :description "Which." :type string)))
    /// ```
    pub(crate) CONFIRM_ARGUMENT, "DT134", "confirm-argument", Error
}

/// Maximum number of suggestions for one tool, to limit their cost.
const MAX_SUGGESTIONS: usize = 20;

pub(in crate::spec) fn check(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    if tool.confirm.conditions().is_empty() {
        return;
    }
    let named = tool.arguments.iter().map(|argument| (argument.name.value.as_str(), Testable::new(&argument.schema)));
    let known: HashMap<&str, Testable<'_>> = named.collect();
    let mut check = Check { tool, reported: 0, findings };
    for condition in tool.confirm.conditions() {
        let JsonKind::Object(tests) = &condition.kind else { continue };
        for test in tests {
            match known.get(test.key.as_str()) {
                Some(argument) => check.members(argument, &test.value),
                None => {
                    let known = tool.arguments.iter().map(|argument| argument.name.value.as_str());
                    check.report(test, "the tool has no argument", known);
                }
            }
        }
    }
}

struct Check<'t> {
    tool: &'t Tool,
    reported: usize,
    findings: &'t mut Vec<Diagnostic>,
}

impl Check<'_> {
    /// Checks the members of an object.
    fn members(&mut self, known: &Testable<'_>, test: &Json) {
        let Some(names) = known.members() else { return };
        match &test.kind {
            JsonKind::Array(tests) => {
                for test in tests {
                    self.members(known, test);
                }
            }
            JsonKind::Object(tests) => {
                for test in tests {
                    match names.get(test.key.as_str()) {
                        Some(Some(inner)) => self.members(inner, &test.value),
                        Some(None) => {}
                        None => {
                            let names = testable_members(known.schema).unwrap_or_default().iter();
                            let names = names.map(|member| member.key.as_str());
                            self.report(test, "the argument has no member", names);
                        }
                    }
                }
            }
            JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => {}
        }
    }

    fn report<'k>(&mut self, test: &Member, lack: &str, known: impl Iterator<Item = &'k str>) {
        let at = Location { source: self.tool.source, span: test.key_span };
        let message = format!("{lack} `{}`; this condition never matches", test.key);
        let finding = Diagnostic::new(&CONFIRM_ARGUMENT, at, message);
        self.reported += 1;
        let near = (self.reported <= MAX_SUGGESTIONS).then(|| nearest(&test.key, known)).flatten();
        self.findings.push(match near {
            // A name may need escapes.
            Some(near) => finding.did_you_mean(at.span, write(&keyword(near, at.span))),
            None => finding,
        });
    }
}
