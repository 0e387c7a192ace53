//! `:server (:command ["llama-server" …] :env (:NAME "value") :cwd "…" :port N)`: a server that the worker starts.

use super::Lowerer;
use super::plist::Entry;
use crate::spec::ServerSpec;
use crate::spec::rules::{unknown_tool_key, wrong_value};
use crate::syntax::{Datum, DatumKind, Number};

const SERVER_KEYS: [&str; 4] = ["command", "env", "cwd", "port"];

impl Lowerer {
    /// The server; `None` when it has no command. Told.
    pub(super) fn lower_server(&mut self, value: Datum) -> Option<ServerSpec> {
        let expected = "a plist such as `(:command [\"llama-server\" \"--port\" \"{port}\"])`";
        let DatumKind::List(items) = value.kind else {
            self.tell_wrong("server", &value, expected);
            return None;
        };
        let whole = Datum { span: value.span, kind: DatumKind::List(Vec::new()) };
        let (mut command, mut env, mut cwd, mut port) = (None, Vec::new(), None, None);
        let mut is_written = false;
        for Entry { key, key_span, value } in self.read_plist(items, &SERVER_KEYS) {
            match key.as_str() {
                "command" => {
                    is_written = true;
                    command = self.take_command(value);
                }
                "env" => env = self.take_variables(value),
                "cwd" => cwd = self.take_string("cwd", value),
                "port" => port = self.take_port(&value),
                _ if key.ends_with(':') => {}
                _ => {
                    let at = self.at(key_span);
                    self.findings.push(unknown_tool_key::finding(at, &key, "`:server`", &SERVER_KEYS));
                }
            }
        }
        if !is_written {
            self.tell_wrong("server", &whole, expected);
        }
        command.map(|command| ServerSpec { command, env, cwd, port })
    }

    /// `(:NAME "value" …)`.
    fn take_variables(&mut self, value: Datum) -> Vec<(String, String)> {
        let DatumKind::List(items) = value.kind else {
            self.tell_wrong("env", &value, "a plist such as `(:NAME \"value\")`");
            return Vec::new();
        };
        let mut variables = Vec::new();
        for Entry { key, value, .. } in self.read_plist(items, &[]) {
            if let Some(text) = self.take_string(&key, value) {
                variables.push((key, text));
            }
        }
        variables
    }

    fn take_port(&mut self, value: &Datum) -> Option<u16> {
        let expected = "an integer from 1 to 65535";
        let DatumKind::Number(Number::Integer(number)) = value.kind else {
            self.tell_wrong("port", value, expected);
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
