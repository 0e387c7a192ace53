//! `:server (:command ["llama-server" …] :env (:NAME "value") :cwd "…" :port N)`: a server that the worker starts.

use super::lowerer::Lowerer;
use super::plist::Entry;
use crate::spec::ServerSpec;
use crate::spec::reference;
use crate::spec::rules::{server_without_command, server_without_port, unknown_tool_key, wrong_value};
use crate::syntax::{Datum, DatumKind, Number};

const SERVER_KEYS: [&str; 4] = reference::names(&reference::SERVER);

impl Lowerer {
    /// Lowers the server settings; `None` if there is no valid command, which is reported once.
    pub(super) fn lower_server(&mut self, value: Datum) -> Option<ServerSpec> {
        let expected = "a plist such as `(:command [\"llama-server\" \"--port\" \"{port}\"])`";
        let DatumKind::List(items) = value.kind else {
            self.report_wrong_value("server", &value, expected);
            return None;
        };
        let whole = value.span;
        let (mut command, mut env, mut cwd, mut port) = (None, Vec::new(), None, None);
        // Whether there is a command and a port, valid or not; invalid ones are reported elsewhere.
        let (mut command_at, mut misspelt, mut has_port) = (None, None, false);
        for Entry { key, key_span, value } in self.read_plist(items, &SERVER_KEYS) {
            match key.as_str() {
                "command" => {
                    command_at = Some(value.span);
                    if matches!(&value.kind, DatumKind::Vector(items) | DatumKind::List(items) if items.is_empty())
                    {
                        self.findings.push(server_without_command::finding(self.at(value.span)));
                    } else {
                        command = self.take_command(value);
                    }
                }
                "env" => env = self.take_texts("env", value),
                "cwd" => cwd = self.take_path("cwd", value).map(|path| path.value),
                "port" => {
                    has_port = true;
                    port = self.take_port(&value);
                }
                _ if key.ends_with(':') => {}
                // Reported as a missing command.
                _ if unknown_tool_key::meant(&key, &SERVER_KEYS) == Some("command") => {
                    misspelt = Some((key, key_span));
                }
                _ => {
                    let at = self.at(key_span);
                    self.findings.push(unknown_tool_key::finding(at, &key, "`:server`", &SERVER_KEYS));
                }
            }
        }
        let Some(command_at) = command_at else {
            let finding = match misspelt {
                Some((key, span)) => server_without_command::misspelt(self.at(span), &key),
                None => server_without_command::finding(self.at(whole)),
            };
            self.findings.push(finding);
            return None;
        };
        if let Some((key, span)) = misspelt {
            let at = self.at(span);
            self.findings.push(unknown_tool_key::finding(at, &key, "`:server`", &SERVER_KEYS));
        }
        let command = command?;
        let named = |text: &String| text.contains("{port}");
        if !has_port && !command.iter().any(named) && !env.iter().any(|(_, value)| named(value)) {
            self.findings.push(server_without_port::finding(self.at(command_at)));
        }
        Some(ServerSpec { command, env, cwd, port })
    }

    /// Reads `(:NAME "value" …)`.
    pub(super) fn take_texts(&mut self, key: &str, value: Datum) -> Vec<(String, String)> {
        let DatumKind::List(items) = value.kind else {
            self.report_wrong_value(key, &value, "a plist such as `(:NAME \"value\")`");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for Entry { key, value, .. } in self.read_plist(items, &[]) {
            if let Some(text) = self.take_string(&key, value) {
                texts.push((key, text));
            }
        }
        texts
    }

    fn take_port(&mut self, value: &Datum) -> Option<u16> {
        let expected = "an integer from 1 to 65535";
        let DatumKind::Number(Number::Integer(number)) = value.kind else {
            self.report_wrong_value("port", value, expected);
            return None;
        };
        let port = u16::try_from(number).ok().filter(|port| *port > 0);
        if port.is_none() {
            let at = self.at(value.span);
            self.findings.push(wrong_value::finding(at, "port", expected, &number.to_string()));
        }
        port
    }
}
