//! Connections: names resolved here, every address checked, and connected to as it was checked.
//!
//! reqwest asks [`Resolver`] for the addresses of a name whenever it connects and connects to what it is given, so
//! that no second answer of a name server can slip in between. A client, and with it its idle connections, belongs to
//! one set of grants, scheme and port: a connection that one tool may use is never handed to another. Neither proxies
//! nor anything else of the environment is looked at.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, redirect, retry};
use tokio::sync::Semaphore;
use url::Url;

use super::grants::{Grants, is_localhost};
use crate::script::error::HostError;
use crate::tool::ToolErrorKind;

/// Longest time until a connection stands, its name's resolution included.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// A connection that was idle for longer is not used again: common servers close theirs after 5 s, and a request that
/// meets the close is lost.
const MAX_IDLE: Duration = Duration::from_secs(3);
/// Most idle connections to a host.
const MAX_IDLE_PER_HOST: usize = 4;
/// Most clients that are kept.
const MAX_CLIENTS: usize = 32;
/// Most addresses of a name that are looked at.
const MAX_ADDRESSES: usize = 16;

/// Most names that are looked up at a time: a lookup cannot be stopped, and its owner may be slow to answer.
static LOOKUPS: Semaphore = Semaphore::const_new(64);

/// Looks a name up.
pub(super) type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The clients of this process.
pub(super) static CLIENTS: LazyLock<Clients> =
    LazyLock::new(|| Clients::new(Arc::new(|name| system(name).boxed())));

/// Clients by what they may reach, the last used one last.
pub(super) struct Clients {
    lookup: Lookup,
    kept: Mutex<Vec<(Reach, Client)>>,
}

/// What a client is for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reach {
    grants: Grants,
    is_tls: bool,
    port: u16,
}

impl Clients {
    /// Clients that resolve names by `lookup`.
    pub(super) fn new(lookup: Lookup) -> Self {
        Self { lookup, kept: Mutex::default() }
    }

    /// A client for `url`, which `grants` cover.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(super) fn client(&self, grants: &Grants, url: &Url) -> Result<Client, HostError> {
        let reach = Reach {
            grants: grants.clone(),
            is_tls: url.scheme() == "https",
            port: url.port_or_known_default().unwrap_or_default(),
        };
        if let Some(client) = self.known(&reach) {
            return Ok(client);
        }
        // Reading the system's certificates takes a while: not under the lock. Of two that are built at once both are good.
        let client = self.build(&reach)?;
        let mut kept = self.lock();
        if kept.len() >= MAX_CLIENTS {
            kept.remove(0);
        }
        kept.push((reach, client.clone()));
        Ok(client)
    }

    fn known(&self, reach: &Reach) -> Option<Client> {
        let mut kept = self.lock();
        let at = kept.iter().rposition(|(known, _)| known == reach)?;
        let used = kept.remove(at);
        let client = used.1.clone();
        kept.push(used);
        Some(client)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Reach, Client)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn build(&self, reach: &Reach) -> Result<Client, HostError> {
        let resolver =
            Resolver { lookup: Arc::clone(&self.lookup), grants: reach.grants.clone(), port: reach.port };
        let mut builder = Client::builder()
            .dns_resolver(resolver)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .connect_timeout(CONNECT)
            .pool_idle_timeout(MAX_IDLE)
            .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
            .user_agent(concat!("deftool/", env!("CARGO_PKG_VERSION")));
        if !reach.is_tls {
            // Without TLS there is nothing to verify, and a machine without certificates must do.
            builder = builder.tls_certs_only(std::iter::empty());
        }
        builder.build().map_err(|error| HostError {
            kind: ToolErrorKind::Script,
            message: format!(
                "cannot set up TLS: {}; are the system's CA certificates installed?",
                super::failure::root_cause(&error)
            ),
        })
    }
}

/// Resolves the names that one client connects to.
struct Resolver {
    lookup: Lookup,
    grants: Grants,
    port: u16,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, grants, port) = (Arc::clone(&self.lookup), self.grants.clone(), self.port);
        Box::pin(async move {
            let name = name.as_str();
            let found = if is_localhost(name) {
                // By RFC 6761 no name server is asked.
                vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
            } else {
                lookup(name.to_owned()).await.map_err(|error| unresolved(name, &error.to_string()))?
            };
            let found: Vec<IpAddr> = found.into_iter().take(MAX_ADDRESSES).collect();
            if found.is_empty() {
                return Err(unresolved(name, "it has no address").into());
            }
            // One that may not be reached condemns all: which of them is taken would be a matter of luck.
            for address in &found {
                grants.check_address(name, port, *address)?;
            }
            let addresses: Addrs =
                Box::new(found.into_iter().map(move |address| SocketAddr::new(address, port)));
            Ok(addresses)
        })
    }
}

async fn system(name: String) -> io::Result<Vec<IpAddr>> {
    // Kept until the lookup has come back: one that nobody waits for any more holds its thread all the same.
    let turn = LOOKUPS.acquire().await.map_err(io::Error::other)?;
    let looked_up = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        (name.as_str(), 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect())
    });
    looked_up.await.map_err(io::Error::other)?
}

fn unresolved(name: &str, reason: &str) -> HostError {
    HostError {
        kind: ToolErrorKind::Script,
        message: format!(
            "the name {name} cannot be resolved: {reason}; is it spelled right, and is the network there?"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_clients_are_kept_and_those_in_use_are_among_them() {
        let clients = Clients::new(Arc::new(|name| system(name).boxed()));
        let grants = Grants::new(&[String::from("*:*")]);
        let ports = |clients: &Clients| -> Vec<u16> {
            clients.kept.lock().unwrap().iter().map(|(reach, _)| reach.port).collect()
        };
        let client = |port: u16| {
            let url = Url::parse(&format!("http://app.example:{port}/")).unwrap();
            clients.client(&grants, &url).unwrap();
        };
        for port in 1..100 {
            client(port);
            client(7);
        }
        let kept = ports(&clients);
        assert_eq!(kept.len(), MAX_CLIENTS);
        assert!(kept.contains(&7) && kept.contains(&99) && !kept.contains(&1), "{kept:?}");
    }
}
