//! Options of a managed server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use deftool_chat::{Dialect, Dialects};
use deftool_lang::spec::{ServerSpec, WorkerSpec};
use deftool_lang::text::one_line;
use deftool_record::Redactor;
use deftool_script::resolve_path;

use super::plan::Plan;
use super::port::{free_port, is_port_free, port_holder};

/// Placeholder of the port in the command and the environment.
const PORT: &str = "{port}";
/// Suffixes of the names of variables and options with secret values.
const SECRET_NAMES: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD"];

/// A server that a worker starts and supervises.
#[derive(Clone)]
pub struct ServerOptions {
    /// The program and its arguments; `{port}` is replaced by the port. The program must stay in the foreground.
    pub command: Vec<String>,
    /// Environment variables in addition to those of this process; `{port}` is replaced by the port.
    pub env: Vec<(String, String)>,
    /// Working directory.
    pub cwd: PathBuf,
    /// The port that the server listens on; `None`: a free port, chosen at each start.
    pub port: Option<u16>,
    /// API key for requests.
    pub key: Option<String>,
    /// The environment variable of the API key, for errors.
    pub key_variable: String,
    /// Model name; `None`: the first model in its list.
    pub model: Option<String>,
    /// Dialect of the server; `None`: detected.
    pub dialect: Option<Dialect>,
    /// The dialects that are detected.
    pub dialects: Dialects,
    /// Limits, which only tests change.
    #[doc(hidden)]
    pub limits: ServerLimits,
}

/// Limits of a managed server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Maximum time from the start of the process to the first successful probe.
    pub start: Duration,
    /// Interval between two probes of a ready server.
    pub probe_interval: Duration,
    /// Time limit of one probe.
    pub probe: Duration,
    /// The server is restarted after this number of consecutive failed probes.
    pub misses: u32,
    /// Maximum time for a slot to become idle after its stalled request was disconnected.
    pub drain: Duration,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Delay before the first restart. It doubles with each further restart within ten minutes.
    pub first_restart_delay: Duration,
    /// Maximum delay before a restart.
    pub max_restart_delay: Duration,
    /// Maximum restarts within ten minutes. After that, the server is not restarted automatically.
    pub max_restarts: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(600),
            probe_interval: Duration::from_secs(5),
            probe: Duration::from_secs(5),
            misses: 3,
            drain: Duration::from_secs(60),
            grace: Duration::from_secs(5),
            first_restart_delay: Duration::from_secs(1),
            max_restart_delay: Duration::from_secs(60),
            max_restarts: 5,
        }
    }
}

/// Does not print secrets.
impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions")
            .field("command", &self.shown())
            .field("cwd", &self.cwd)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl ServerOptions {
    /// Creates the options from the spec of a project at `root`.
    ///
    /// # Errors
    /// If the working directory is a folder of the user that is not known.
    pub fn of_spec(spec: &ServerSpec, root: &Path) -> Result<Self, String> {
        let cwd = spec.cwd.as_deref().map_or_else(|| Ok(root.to_owned()), |cwd| resolve_path(root, cwd));
        Ok(Self {
            command: spec.command.clone(),
            env: spec.env.clone(),
            cwd: cwd.map_err(|why| format!("working directory of the server: {why}"))?,
            port: spec.port,
            key: None,
            key_variable: WorkerSpec::named("").api_key_env,
            model: None,
            dialect: None,
            dialects: Dialects::default(),
            limits: ServerLimits::default(),
        })
    }

    /// Returns the command as one line for messages, without secrets.
    pub(super) fn shown(&self) -> String {
        self.without_secrets(&one_line(self.command.join(" ")))
    }

    /// Whether the program name contains whitespace and is not a file: probably a whole command line.
    pub(super) fn is_one_string(&self) -> bool {
        let program = self.command.first().map(String::as_str).unwrap_or_default();
        program.trim().contains(char::is_whitespace) && !self.cwd.join(program).exists()
    }

    pub(super) fn without_secrets(&self, text: &str) -> String {
        Redactor::new(self.secrets()).text(text)
    }

    /// Returns the secrets: the key, and the values of names like `HF_TOKEN` and `--api-key`.
    pub(super) fn secrets(&self) -> Vec<&str> {
        let values = self.env.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.as_str());
        let named = self.command.windows(2).filter_map(|pair| match pair {
            [name, value] if name.starts_with('-') && is_secret(name) => Some(value.as_str()),
            _ => None,
        });
        let joined = self.command.iter().filter_map(|word| word.split_once('='));
        let joined = joined.filter(|(name, _)| is_secret(name)).map(|(_, value)| value);
        self.key.as_deref().into_iter().chain(values).chain(named).chain(joined).collect()
    }

    /// Returns the launch plan of the next start, and its port.
    ///
    /// # Errors
    /// When the port is in use or no port is free, as a clause.
    pub(super) fn plan(&self) -> Result<(Plan, u16), String> {
        let port = match self.port {
            Some(port) if is_port_free(port) => port,
            Some(port) => {
                let holder = port_holder(port).map(|holder| format!(" by {holder}")).unwrap_or_default();
                return Err(format!(
                    "port {port} is already in use{holder}; stop that process or set another `:port`"
                ));
            }
            None => free_port().map_err(|error| format!("no free port: {error}"))?,
        };
        let filled = |text: &String| text.replace(PORT, &port.to_string());
        let plan = Plan {
            command: self.command.iter().map(filled).collect(),
            env: self.env.iter().map(|(name, value)| (name.clone(), filled(value))).collect(),
            cwd: self.cwd.clone(),
            grace: self.limits.grace,
        };
        Ok((plan, port))
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAMES.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(spec: &ServerSpec) -> ServerOptions {
        ServerOptions::of_spec(spec, Path::new("/project")).unwrap()
    }

    fn spec() -> ServerSpec {
        ServerSpec {
            command: ["serve", "--port={port}", "{port}{port}"].map(String::from).to_vec(),
            env: vec![
                (String::from("HOST"), String::from("127.0.0.1:{port}")),
                (String::from("HF_TOKEN"), String::from("hf_secret")),
            ],
            cwd: None,
            port: None,
        }
    }

    #[test]
    fn every_port_placeholder_is_replaced() {
        let (plan, port) = options(&spec()).plan().unwrap();
        assert_eq!(plan.command, ["serve".to_owned(), format!("--port={port}"), format!("{port}{port}")]);
        assert_eq!(plan.env[0].1, format!("127.0.0.1:{port}"));
        assert_eq!(plan.cwd, Path::new("/project"));
        assert_eq!(
            options(&ServerSpec { cwd: Some(String::from("a")), ..spec() }).cwd,
            Path::new("/project/a")
        );
    }

    #[test]
    fn a_port_in_use_is_an_error() {
        let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = held.local_addr().unwrap().port();
        let error = options(&ServerSpec { port: Some(port), ..spec() }).plan().unwrap_err();
        assert!(
            error.starts_with(&format!("port {port} is already in use")) && error.contains(":port"),
            "{error}"
        );
        drop(held);
        assert_eq!(options(&ServerSpec { port: Some(port), ..spec() }).plan().unwrap().1, port);
    }

    #[test]
    fn secrets_are_the_key_and_values_with_secret_names() {
        let mut options = ServerOptions { key: Some(String::from("sk-main")), ..options(&spec()) };
        options.command = ["serve", "--api-key", "sk-other", "--hf-token=hf_more", "-x", "plain"]
            .map(String::from)
            .to_vec();
        assert_eq!(options.secrets(), ["sk-main", "hf_secret", "sk-other", "hf_more"]);
        assert_eq!(options.shown(), "serve --api-key [redacted] --hf-token=[redacted] -x plain");
    }
}
