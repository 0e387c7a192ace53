//! HTTP clients that resolve names, check every address and connect only to checked addresses.
//!
//! reqwest calls [`Resolver`] for each connection and connects to the returned addresses, so there is no second DNS
//! lookup that could return another address. A client and its idle connections belong to one set of grants, scheme and
//! port: a connection of one tool is never reused for a tool with other grants. Proxies and other settings of the
//! environment are ignored.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deftool_lang::tool::ToolErrorKind;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder, redirect, retry};
use tokio::sync::Semaphore;
use url::Url;

use super::grants::{NetGrants, is_localhost};
use super::request::CONNECT;
use crate::error::HostError;

/// Connections that are idle for longer are not reused: common servers close them after 5 s, and a request at that
/// moment would be lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of idle connections to a host. With fewer than a busy worker has calls, most requests connect again.
/// There are never more than were in use at the same time within [`IDLE_TIMEOUT`].
const MAX_IDLE_PER_HOST: usize = 64;
/// Maximum number of cached clients.
const MAX_CLIENTS: usize = 32;
/// Maximum number of addresses of a name to use.
const MAX_ADDRESSES: usize = 16;

/// Limits concurrent lookups: a lookup cannot be stopped, and a name server may be slow.
static LOOKUPS: Semaphore = Semaphore::const_new(64);

/// A function that resolves a name.
pub(super) type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The shared clients of this process.
pub(super) static CLIENTS: LazyLock<Clients> =
    LazyLock::new(|| Clients::new(Arc::new(|name| system_lookup(name).boxed())));

/// Cached clients, the most recently used one last.
pub(super) struct Clients {
    lookup: Lookup,
    cached: Mutex<Vec<(ClientKey, Client)>>,
}

/// The cache key of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClientKey {
    grants: NetGrants,
    is_tls: bool,
    port: u16,
}

impl Clients {
    /// Creates clients that resolve names with `lookup`.
    pub(super) fn new(lookup: Lookup) -> Self {
        Self { lookup, cached: Mutex::default() }
    }

    /// Returns a client for `url`, which `grants` must cover.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(super) fn client(&self, grants: &NetGrants, url: &Url) -> Result<Client, HostError> {
        let key = ClientKey {
            grants: grants.clone(),
            is_tls: url.scheme() == "https",
            port: url.port_or_known_default().unwrap_or_default(),
        };
        if let Some(client) = self.cached_client(&key) {
            return Ok(client);
        }
        // Built without holding the lock, because reading the system's certificates is slow. Concurrent duplicates are
        // fine.
        let client = self.build(&key)?;
        let mut cached = self.lock();
        if cached.len() >= MAX_CLIENTS {
            cached.remove(0);
        }
        cached.push((key, client.clone()));
        Ok(client)
    }

    fn cached_client(&self, key: &ClientKey) -> Option<Client> {
        let mut cached = self.lock();
        let at = cached.iter().rposition(|(cached_client, _)| cached_client == key)?;
        let used = cached.remove(at);
        let client = used.1.clone();
        cached.push(used);
        Some(client)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(ClientKey, Client)>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn build(&self, key: &ClientKey) -> Result<Client, HostError> {
        let resolver =
            Resolver { lookup: Arc::clone(&self.lookup), grants: key.grants.clone(), port: key.port };
        let mut builder = client_builder()
            .dns_resolver(resolver)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE_PER_HOST);
        if !key.is_tls {
            // Without TLS, no certificates are loaded, so that plain HTTP works on a machine without certificates.
            builder = builder.tls_certs_only(std::iter::empty());
        }
        builder.build().map_err(|error| HostError {
            kind: ToolErrorKind::Script,
            message: format!(
                "cannot set up TLS: {}; check that the system's CA certificates are installed",
                super::failure::root_cause(&error)
            ),
        })
    }
}

/// Returns an HTTP client builder with TLS and deftool's user agent.
pub fn client_builder() -> ClientBuilder {
    // If the program has already installed a crypto provider, that provider is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().user_agent(concat!("deftool/", env!("CARGO_PKG_VERSION")))
}

/// A resolver for one client that checks the addresses of each name.
struct Resolver {
    lookup: Lookup,
    grants: NetGrants,
    port: u16,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, grants, port) = (Arc::clone(&self.lookup), self.grants.clone(), self.port);
        Box::pin(async move {
            let name = name.as_str();
            let found = if is_localhost(name) {
                // RFC 6761: `localhost` is not looked up.
                vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
            } else {
                lookup(name.to_owned()).await.map_err(|error| unresolved(name, &error.to_string()))?
            };
            let found: Vec<IpAddr> = found.into_iter().take(MAX_ADDRESSES).collect();
            if found.is_empty() {
                return Err(unresolved(name, "no addresses found").into());
            }
            // Reject the name if any address is not allowed, because any of them might be used.
            for address in &found {
                grants.check_address(name, port, *address)?;
            }
            let addresses: Addrs =
                Box::new(found.into_iter().map(move |address| SocketAddr::new(address, port)));
            Ok(addresses)
        })
    }
}

async fn system_lookup(name: String) -> io::Result<Vec<IpAddr>> {
    // Held until the lookup returns: an abandoned lookup still occupies its thread.
    let permit = LOOKUPS.acquire().await.map_err(io::Error::other)?;
    let looked_up = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        (name.as_str(), 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect())
    });
    looked_up.await.map_err(io::Error::other)?
}

fn unresolved(name: &str, reason: &str) -> HostError {
    HostError {
        kind: ToolErrorKind::Script,
        message: format!("cannot resolve {name}: {reason}; check the name and the network"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_client_is_evicted() {
        let clients = Clients::new(Arc::new(|name| system_lookup(name).boxed()));
        let grants = NetGrants::new(&[String::from("*:*")]);
        let ports = |clients: &Clients| -> Vec<u16> {
            clients.cached.lock().unwrap().iter().map(|(key, _)| key.port).collect()
        };
        let client = |port: u16| {
            let url = Url::parse(&format!("http://app.example:{port}/")).unwrap();
            clients.client(&grants, &url).unwrap();
        };
        for port in 1..100 {
            client(port);
            client(7);
        }
        let cached = ports(&clients);
        assert_eq!(cached.len(), MAX_CLIENTS);
        assert!(cached.contains(&7) && cached.contains(&99) && !cached.contains(&1), "{cached:?}");
    }
}
