//! The key of a worker: a variable of the user's that a spec sends to a server.
//!
//! Whoever wrote the spec chose the variable, the server, or both, so that is a wish like those of tools. What the user
//! said is none: an endpoint from the command line or from `OPENAI_BASE_URL`, with the variable that no spec names.

use std::collections::BTreeSet;

use reqwest::Url;

use crate::project::{Grants, Load, Wish};
use crate::spec::WorkerSpec;
use crate::text::Location;
use crate::worker::http::has_user;

/// What `worker` wants; `named` is the endpoint that the user named in place of the spec's. Whether the variable is set is
/// the caller's to ask.
pub fn key_wish(load: &Load, worker: &WorkerSpec, named: Option<&str>) -> Option<Wish> {
    // A server that the worker starts is trusted as a whole.
    let server = if named.is_some() || worker.server.is_some() { None } else { worker.endpoint.as_deref() };
    if server.is_none() && !names_key(worker) {
        return None;
    }
    // It is sent these, and no key.
    if named.or(server).and_then(|base| Url::parse(base.trim()).ok()).is_some_and(|url| has_user(&url)) {
        return None;
    }
    let grants = Grants {
        net: server.and_then(host_of).into_iter().collect(),
        env: BTreeSet::from([worker.api_key_env.clone()]),
        ..Grants::default()
    };
    let at = worker.source.map(|source| Location { source, span: worker.name.span });
    let place = at.map(|at| load.sources.describe(at)).unwrap_or_default();
    Some(Wish { tool: format!("worker `{}`", worker.name.value), place, grants })
}

/// Whether the spec names a variable of its own, in place of the one that every program reads.
pub fn names_key(worker: &WorkerSpec) -> bool {
    worker.api_key_env != WorkerSpec::named("").api_key_env
}

/// What the workers of a project want, as far as `is_set` says that a variable is set.
pub fn key_wishes(load: &Load, is_set: impl Fn(&str) -> bool) -> Vec<Wish> {
    let workers = load.workers.iter().filter(|worker| worker.valid && is_set(&worker.api_key_env));
    workers.filter_map(|worker| key_wish(load, worker, None)).collect()
}

/// Host and port. A URL that is none reaches nobody.
fn host_of(endpoint: &str) -> Option<String> {
    let url = Url::parse(endpoint.trim()).ok()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}
