//! Checks hosts and resolved addresses against a spec's `:allow (:net […])`.
//!
//! A host name needs a grant of that name. The addresses that it resolves to must be public or have their own grant. A
//! grant of `localhost` covers loopback addresses. An IP address in a URL needs a grant of that address; `*` covers it
//! only if it is public. Every error names the missing grant.

use std::net::IpAddr;
use std::sync::Arc;

use deftool_lang::spec::{HostGrant, host_grant};
use deftool_lang::syntax::quoted;
use deftool_lang::tool::ToolErrorKind;
use url::{Host, Url};

use super::address;
use crate::error::{HostError, clean};

/// Maximum number of grants that an error message lists.
const MAX_LISTED: usize = 10;

/// The network grants of a tool, parsed and as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NetGrants {
    granted: Arc<[HostGrant]>,
    written: Arc<[String]>,
}

impl NetGrants {
    /// Parses `written`. Invalid grants are ignored; `deftool check` reports them.
    pub(super) fn new(written: &[String]) -> Self {
        let granted = written.iter().filter_map(|grant| HostGrant::parse(grant).ok());
        Self { granted: granted.collect(), written: written.into() }
    }

    /// Checks whether a request to `url` is allowed. `url` must be an HTTP URL without a dot at the end of its host.
    ///
    /// # Errors
    /// [`ToolErrorKind::Permission`] with the missing grant.
    pub(super) fn check(&self, url: &Url) -> Result<(), HostError> {
        let port = url.port_or_known_default().unwrap_or_default();
        let address: IpAddr = match url.host() {
            None => return Err(self.denied("", port)),
            Some(Host::Domain(name)) => {
                let covered = self.granted.iter().any(|grant| grant.covers_name(name, port));
                return if covered { Ok(()) } else { Err(self.denied(name, port)) };
            }
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
        };
        if self.granted.iter().any(|grant| grant.names_address(address, port)) {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default();
        if !self.granted.iter().any(|grant| grant.is_every_host(port)) {
            return Err(self.denied(host, port));
        }
        match address::special_purpose(address) {
            None => Ok(()),
            Some(kind) => Err(permission(format!(
                "{host} is {kind}, which \"*\" does not cover; to allow it, add :allow (:net [{}]) to the spec",
                quoted(&host_grant(host, port))
            ))),
        }
    }

    /// Checks whether `name`, which [`NetGrants::check`] accepted, may resolve to `address`.
    ///
    /// # Errors
    /// [`ToolErrorKind::Permission`] with the missing grant.
    pub(super) fn check_address(&self, name: &str, port: u16, address: IpAddr) -> Result<(), HostError> {
        let Some(kind) = address::special_purpose(address) else { return Ok(()) };
        let is_local = address.is_loopback() && is_localhost(name);
        let granted = self.granted.iter().any(|grant| {
            grant.names_address(address, port)
                || (is_local && !grant.is_every_host(port) && grant.covers_name(name, port))
        });
        if granted {
            return Ok(());
        }
        let shown = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let name = clean(name, 200);
        // A grant of `localhost` also covers its addresses.
        let needed = if is_local {
            quoted(&host_grant(&name, port))
        } else {
            format!("{} {}", quoted(&host_grant(&name, port)), quoted(&host_grant(&shown, port)))
        };
        Err(permission(format!(
            "{name} resolves to {shown}, {kind}; to allow it, add :allow (:net [{needed}]) to the spec"
        )))
    }

    /// Creates the error for `host`, as written in the URL. `host` is empty if the URL has no host.
    fn denied(&self, host: &str, port: u16) -> HostError {
        let wanted = host_grant(&clean(host, 253), port);
        let allowed = if self.written.is_empty() {
            String::from("this tool may not access the network")
        } else {
            let listed: Vec<String> =
                self.written.iter().take(MAX_LISTED).map(|grant| quoted(&clean(grant, 100))).collect();
            let more = if self.written.len() > MAX_LISTED { " …" } else { "" };
            format!("this tool may only access {}{more}", listed.join(" "))
        };
        permission(format!(
            "{wanted} is not allowed: {allowed}; to allow it, add :allow (:net [{}]) to the spec",
            quoted(&wanted)
        ))
    }
}

/// Returns whether `name` refers to this machine (RFC 6761).
pub(super) fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

fn permission(message: String) -> HostError {
    HostError { kind: ToolErrorKind::Permission, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(written: &[&str]) -> NetGrants {
        NetGrants::new(&written.iter().map(|grant| String::from(*grant)).collect::<Vec<_>>())
    }

    #[test]
    fn hosts_are_checked_as_the_url_standard_parses_them() {
        for (granted, url, allowed) in [
            (&["api.example.org"][..], "https://api.example.org/x", true),
            (&["api.example.org"], "https://API.EXAMPLE.org/x", true),
            (&["api.example.org"], "https://api.example.org:8443/", false),
            (&["api.example.org"], "https://example.org/", false),
            (&["api.example.org"], "https://api.example.org.evil.net/", false),
            (&["bücher.example"], "https://BÜCHER.example/", true),
            (&["*"], "https://any.example/", true),
            (&["*"], "http://8.8.8.8/", true),
            (&["*"], "http://127.0.0.1/", false),
            (&["*"], "http://[::1]/", false),
            (&["*"], "http://[::ffff:127.0.0.1]/", false),
            (&["*"], "http://2130706433/", false),
            (&["*"], "http://0x7f.1/", false),
            (&["*"], "http://0177.0.0.1/", false),
            (&["*"], "http://0/", false),
            (&["*"], "http://127.1/", false),
            (&["*"], "http://127.0.0.1./", false),
            (&["*"], "http://①②⑦.⓪.⓪.①/", false),
            (&["*"], "http://[64:ff9b::169.254.169.254]/", false),
            (&["*"], "http://169.254.169.254/latest/meta-data", false),
            (&["127.0.0.1"], "http://2130706433/", true),
            (&["127.0.0.1"], "http://0x7f.1/", true),
            (&["127.0.0.1"], "http://127.0.0.2/", false),
            (&["127.0.0.1"], "http://localhost/", false),
            (&["127.0.0.1"], "http://[::ffff:127.0.0.1]/", false),
            (&["localhost"], "http://127.0.0.1/", false),
            (&["8.8.8.8"], "http://8.8.8.8/", true),
            (&["api.example.org"], "http://8.8.8.8/", false),
            (&["https://api.example.org"], "https://api.example.org/", false),
            (&[], "https://api.example.org/", false),
        ] {
            let checked = grants(granted).check(&Url::parse(url).unwrap());
            assert_eq!(checked.is_ok(), allowed, "{granted:?} {url}: {checked:?}");
            if let Err(error) = checked {
                assert_eq!(error.kind, ToolErrorKind::Permission);
                assert!(error.message.contains(":allow (:net [\""), "{}", error.message);
            }
        }
    }

    #[test]
    fn a_name_may_resolve_only_to_public_or_granted_addresses() {
        for (granted, name, port, address, allowed) in [
            (&["api.example.org"][..], "api.example.org", 443, "93.184.216.34", true),
            (&["api.example.org"], "api.example.org", 443, "10.0.0.5", false),
            (&["api.example.org"], "api.example.org", 443, "::ffff:93.184.216.34", false),
            (&["api.example.org", "10.0.0.5"], "api.example.org", 443, "10.0.0.5", true),
            (&["api.example.org", "10.0.0.5"], "api.example.org", 443, "10.0.0.6", false),
            (&["api.example.org:9", "10.0.0.5"], "api.example.org", 9, "10.0.0.5", false),
            (&["api.example.org:9", "10.0.0.5:9"], "api.example.org", 9, "10.0.0.5", true),
            (&["localhost"], "localhost", 80, "127.0.0.1", true),
            (&["localhost"], "localhost", 80, "::1", true),
            (&["localhost"], "localhost", 80, "10.0.0.1", false),
            (&["*.localhost"], "app.localhost", 80, "127.0.0.1", true),
            (&["localhost:9"], "localhost", 80, "127.0.0.1", false),
            (&["*"], "localhost", 80, "127.0.0.1", false),
            (&["*", "localhost"], "localhost", 80, "127.0.0.1", true),
            (&["evil.example"], "evil.example", 80, "127.0.0.1", false),
        ] {
            let checked = grants(granted).check_address(name, port, address.parse().unwrap());
            assert_eq!(checked.is_ok(), allowed, "{granted:?} {name} {address}: {checked:?}");
            // The suggested grant is sufficient.
            if let Err(error) = checked {
                let advice = error.message.split(":net [").nth(1).unwrap().split(']').collect::<Vec<_>>();
                let advice = advice[..advice.len() - 1].join("]");
                let advised: Vec<&str> = advice.split(' ').map(|grant| grant.trim_matches('"')).collect();
                assert!(
                    grants(&advised).check_address(name, port, address.parse().unwrap()).is_ok(),
                    "{error}"
                );
            }
        }
    }
}
