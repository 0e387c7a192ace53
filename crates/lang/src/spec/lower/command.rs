//! `:command`, `:stdin`, `:dash`, `:cwd` and `:ok-codes`: the program that a tool runs in place of a script.

use super::lowerer::Lowerer;
use super::plist::Entry;
use crate::diagnostic::Diagnostic;
use crate::spec::rules::{
    invalid_command, path_start, placeholder_in_code, placeholder_optional, unknown_name, unused_argument,
    useless_key,
};
use crate::spec::{CommandInput, Json, Template, Tool, ToolCommand};
use crate::syntax::{Datum, DatumKind};
use crate::text::Spanned;

/// The checks of a command whose words are known.
const CHECKS: [fn(&Tool, &ToolCommand, &mut Vec<Diagnostic>); 5] = [
    unknown_name::check_placeholders,
    placeholder_optional::check,
    invalid_command::check_arrays,
    placeholder_in_code::check,
    unused_argument::check,
];

impl Lowerer {
    /// Reports keys that do not fit together.
    pub(super) fn check_command_keys(&mut self, entries: &[Entry]) {
        let key_span = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| entry.key_span);
        let Some(command) = key_span("command") else {
            for (key, span) in
                ["stdin", "dash", "cwd", "ok-codes"].into_iter().filter_map(|key| Some((key, key_span(key)?)))
            {
                self.findings.push(useless_key::finding(self.at(span), key, "without `:command`"));
            }
            return;
        };
        if let Some(script) = key_span("script") {
            self.findings.push(invalid_command::with_script(self.at(command), script));
        }
        for (key, span) in ["async", "memory"].into_iter().filter_map(|key| Some((key, key_span(key)?))) {
            self.findings.push(useless_key::finding(self.at(span), key, "on a program that `:command` runs"));
        }
    }

    /// Reads the words of `:command`.
    pub(super) fn lower_command(&mut self, command: &mut ToolCommand, value: Datum) {
        command.span = value.span;
        let Some(words) = self.take_words(value) else { return };
        command.words = words.into_iter().filter_map(|word| self.template(word)).collect();
        if let Some(program) = command.words.first()
            && program.value.literal().is_none_or(str::is_empty)
        {
            self.findings.push(invalid_command::program(self.at(program.span)));
        }
    }

    /// Reads `:stdin`.
    pub(super) fn take_input(&mut self, value: Datum) -> Option<CommandInput> {
        let span = value.span;
        match value.kind {
            DatumKind::Symbol(word) if word == "json" => Some(CommandInput::Json),
            DatumKind::String(text) => self.template(Spanned::new(text, span)).map(CommandInput::Text),
            _ => {
                self.report_wrong_value("stdin", &value, "`json` or a string");
                None
            }
        }
    }

    /// Reads `:cwd`.
    pub(super) fn take_folder(&mut self, value: Datum) -> Option<String> {
        let span = value.span;
        let folder = Spanned::new(self.take_string("cwd", value)?, span);
        self.findings.extend(path_start::check(self.at(span), &folder));
        Some(folder.value)
    }

    /// Reads `:ok-codes`.
    pub(super) fn take_codes(&mut self, value: Datum) -> Vec<u8> {
        let expected = "a vector of exit codes from 0 to 255 such as [0 1]";
        let items = self.take_some_elements("ok-codes", value, expected).unwrap_or_default();
        let codes = items.iter().filter_map(|item| {
            let code = self.take_integer("ok-codes", item, "exit codes from 0 to 255", 0..=255)?;
            u8::try_from(code).ok()
        });
        codes.collect()
    }

    fn template(&mut self, text: Spanned<String>) -> Option<Spanned<Template>> {
        match Template::parse(&text.value) {
            Ok(template) => Some(Spanned::new(template, text.span)),
            Err(problem) => {
                self.findings.push(invalid_command::brace(self.at(text.span), problem));
                None
            }
        }
    }

    /// Completes the command of a tool from its other keys, and checks it.
    pub(super) fn finish_command(&mut self, tool: &mut Tool) {
        let Some(mut command) = tool.command.take().filter(|command| !command.words.is_empty()) else {
            return;
        };
        command.prints_json = tool.returns.as_ref().is_some_and(|returns| !is_string(returns));
        let program = command.program();
        if !program.is_empty() && tool.permissions.run.iter().all(|granted| granted != program) {
            tool.permissions.run.push(program.to_owned());
        }
        // Outside of the project, the folder needs trust.
        let folder = command.cwd.iter().filter(|folder| !tool.permissions.read.contains(folder)).cloned();
        tool.permissions.read.extend(folder.collect::<Vec<_>>());
        // Mistakes in `:args` and in the words have consequences.
        if !self.is_incomplete() {
            for check in CHECKS {
                check(tool, &command, &mut self.findings);
            }
        }
        tool.command = Some(command);
    }
}

/// Whether a schema of results allows only strings.
fn is_string(schema: &Json) -> bool {
    schema.get("type").and_then(|member| member.value.as_str()) == Some("string")
}
