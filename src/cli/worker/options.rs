//! The options of the commands that use a worker.

use clap::Args;
use deftool_engine::Connection;
use deftool_lang::spec::is_reserved_param;
use serde_json::Value;

use crate::cli::options::ProjectOptions;

// Worker and server options.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct WorkerOptions {
    /// Worker to use [default: the only worker of the project]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) worker: Option<String>,
    /// Base URL of the server, with /v1 [env: OPENAI_BASE_URL]
    ///
    /// Overrides the worker's.
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) endpoint: Option<String>,
    /// Model name; overrides the worker's
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) model: Option<String>,
    /// Offer your tools for all projects to a worker of the project, too
    #[arg(long, hide_short_help = true)]
    pub(in crate::cli) user_tools: bool,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

impl WorkerOptions {
    /// Returns what the options set for the model server.
    pub(in crate::cli) fn connection(&self) -> Connection {
        Connection { endpoint: self.endpoint.clone(), model: self.model.clone(), api_key: None }
    }
}

// Options of a request.
#[derive(Debug, Args)]
pub(in crate::cli) struct RequestOptions {
    /// System message, in addition to the worker's
    #[arg(long, hide_short_help = true, value_name = "TEXT")]
    pub(in crate::cli) system: Option<String>,
    /// Member of the request body such as `temperature=0`
    ///
    /// Overrides the worker's :params. Can be repeated.
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = parse_param)]
    pub(in crate::cli) params: Vec<(String, Value)>,
    /// Run all calls without confirmation prompts, including tools with :confirm
    #[arg(long)]
    pub(in crate::cli) yes: bool,
}

/// Parses `KEY=VALUE`. A value that is not JSON is a string.
pub(in crate::cli) fn parse_param(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, as in temperature=0")?;
    let key = key.trim().replace('-', "_");
    if key.is_empty() || is_reserved_param(&key) {
        return Err(format!("`{key}` is set by deftool and cannot be a parameter"));
    }
    Ok((key, serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))))
}
