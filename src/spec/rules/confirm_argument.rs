use crate::diagnostic::{Diagnostic, rule};
use crate::spec::confirm::testable_members;
use crate::spec::{Json, JsonKind, Member, Tool, nearest};
use crate::text::Location;

rule! {
    /// a condition of :confirm on an argument that the tool does not have
    ///
    /// `:confirm (:when …)` names arguments of the tool, and members of those that are objects. What is misspelt is in no
    /// call: the condition never holds, and nobody is asked.
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

pub(in crate::spec) fn check(tool: &Tool, findings: &mut Vec<Diagnostic>) {
    for condition in tool.confirm.conditions() {
        let JsonKind::Object(tests) = &condition.kind else { continue };
        for test in tests {
            match tool.arguments.iter().find(|argument| argument.name.value == test.key) {
                Some(argument) => check_members(tool, &argument.schema, &test.value, findings),
                None => {
                    let known = tool.arguments.iter().map(|argument| argument.name.value.as_str());
                    findings.push(finding(tool, test, "the tool has no argument", known));
                }
            }
        }
    }
}

/// The same for what is inside of an object.
fn check_members(tool: &Tool, schema: &[Member], test: &Json, findings: &mut Vec<Diagnostic>) {
    let Some(known) = testable_members(schema) else { return };
    match &test.kind {
        JsonKind::Array(tests) => {
            for test in tests {
                check_members(tool, schema, test, findings);
            }
        }
        JsonKind::Object(tests) => {
            for test in tests {
                match known.iter().find(|member| member.key == test.key).map(|member| &member.value.kind) {
                    Some(JsonKind::Object(inner)) => check_members(tool, inner, &test.value, findings),
                    Some(_) => {}
                    None => {
                        let names = known.iter().map(|member| member.key.as_str());
                        findings.push(finding(tool, test, "the argument has no member", names));
                    }
                }
            }
        }
        JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => {}
    }
}

fn finding<'k>(tool: &Tool, test: &Member, lack: &str, known: impl Iterator<Item = &'k str>) -> Diagnostic {
    let at = Location { source: tool.source, span: test.key_span };
    let finding = Diagnostic::new(&CONFIRM_ARGUMENT, at, format!("{lack} `{}`, so this condition never holds", test.key));
    match nearest(&test.key, known) {
        Some(near) => finding.meant(at.span, format!(":{near}")),
        None => finding,
    }
}
