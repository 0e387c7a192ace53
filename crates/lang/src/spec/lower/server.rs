//! `:server (:command ["llama-server" …] :env (:NAME "value") :cwd "…" :port N)`: a server that the worker starts.

use super::lowerer::Lowerer;
use super::plist::Entry;
use crate::spec::ServerSpec;
use crate::spec::reference::Plist;
use crate::spec::rules::{missing_key, unknown_key::meant};
use crate::syntax::Datum;

impl Lowerer {
    /// Lowers the server settings; `None` if there is no valid command, which is reported once.
    pub(super) fn lower_server(&mut self, value: Datum) -> Option<ServerSpec> {
        let whole = value.span;
        let example = "(:command [\"llama-server\" \"--port\" \"{port}\"])";
        let items = self.take_plist("server", value, example)?;
        let (mut command, mut env, mut cwd, mut port) = (None, Vec::new(), None, None);
        // Whether there is a command and a port, valid or not; invalid ones are reported elsewhere.
        let (mut command_at, mut misspelt, mut has_port) = (None, None, false);
        for Entry { key, key_span, value } in self.read_plist(items, Plist::Server) {
            match key.as_str() {
                "command" => {
                    command_at = Some(value.span);
                    command = self.take_command(value);
                }
                "env" => env = self.take_texts("env", value),
                "cwd" => cwd = self.take_path("cwd", value).map(|path| path.value),
                "port" => {
                    has_port = true;
                    port = self.take_port(&value);
                }
                // Reported as a missing command.
                _ if !key.ends_with(':') && meant(Plist::Server, &key) == Some("command") => {
                    misspelt = Some((key, key_span));
                }
                _ => self.report_unknown_key(Plist::Server, &key, key_span),
            }
        }
        let Some(command_at) = command_at else {
            let finding = match misspelt {
                Some((key, span)) => missing_key::misspelt(self.at(span), Plist::Server, "command", &key),
                None => missing_key::finding(self.at(whole), Plist::Server, "command"),
            };
            self.findings.push(finding);
            return None;
        };
        if let Some((key, span)) = misspelt {
            self.report_unknown_key(Plist::Server, &key, span);
        }
        let command = command?;
        let named = |text: &String| text.contains("{port}");
        if !has_port && !command.iter().any(named) && !env.iter().any(|(_, value)| named(value)) {
            self.findings.push(missing_key::port(self.at(command_at)));
        }
        Some(ServerSpec { command, env, cwd, port })
    }

    /// Reads `(:NAME "value" …)`.
    pub(super) fn take_texts(&mut self, key: &str, value: Datum) -> Vec<(String, String)> {
        let items = self.take_plist(key, value, "(:NAME \"value\")").unwrap_or_default();
        let mut texts = Vec::new();
        for Entry { key, value, .. } in self.read_members(items) {
            if let Some(text) = self.take_string(&key, value) {
                texts.push((key, text));
            }
        }
        texts
    }

    fn take_port(&mut self, value: &Datum) -> Option<u16> {
        u16::try_from(self.take_integer("port", value, "an integer from 1 to 65535", 1..=65535)?).ok()
    }
}
