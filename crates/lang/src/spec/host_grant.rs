//! One host of `:allow (:net […])`: parsing and matching.
//!
//! Input is the text of a grant. Output is a [`HostGrant`], or the reason why the text is invalid with a suggestion.
//! Spec checks and request checks both use this module, so their results always agree. Hosts are parsed like the hosts
//! of URLs (case, IDNA, address notations), by the same crate. No name is resolved here.

use core::fmt;
use core::net::IpAddr;

use url::Host;

/// The ports of a grant without a port.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// A grant of `:net`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostGrant {
    host: Hosts,
    port: Ports,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    /// `*`
    All,
    /// `example.org`; lower case, in its ASCII form, without a dot at its end.
    Name(String),
    /// `*.example.org`: the names below it, without the name itself.
    Subdomains(String),
    /// `192.168.1.5`, `[::1]`
    Address(IpAddr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// 80 and 443.
    Default,
    /// `:*`
    All,
    One(u16),
}

/// The error for an invalid grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidHostGrant {
    /// What is wrong, as a clause that includes the grant.
    pub reason: String,
    /// The suggested replacement, if there is one.
    pub instead: Option<String>,
}

/// Writes the grant as in a spec, with the host in lower case and in ASCII.
impl fmt::Display for HostGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Hosts::All => f.write_str("*")?,
            Hosts::Name(name) => f.write_str(name)?,
            Hosts::Subdomains(above) => write!(f, "*.{above}")?,
            Hosts::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            Hosts::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
        }
        match self.port {
            Ports::Default => Ok(()),
            Ports::All => f.write_str(":*"),
            Ports::One(port) => write!(f, ":{port}"),
        }
    }
}

impl HostGrant {
    /// Returns `text` in lower case and, if it has non-ASCII characters, in its DNS form, which distinguishes names
    /// that look alike.
    pub fn ascii(text: &str) -> String {
        match Self::parse(text) {
            Ok(grant) if !text.is_ascii() => grant.to_string(),
            Ok(_) | Err(_) => text.to_lowercase(),
        }
    }

    /// Parses a grant: `api.example.org`, `*.example.org`, `192.168.1.5`, `[::1]` or `*`, optionally followed by
    /// `:8443` or `:*` for ports other than 80 and 443.
    ///
    /// # Errors
    /// Returns an error for any other text.
    pub fn parse(text: &str) -> Result<Self, InvalidHostGrant> {
        let none = |reason: String| InvalidHostGrant { reason, instead: None };
        if text.contains(|character: char| character.is_whitespace() || character.is_control()) {
            return Err(suggest(
                format!("`:net` takes hosts, but \"{text}\" contains whitespace"),
                text.trim(),
                text,
            ));
        }
        if let Some((_, rest)) = text.split_once("://") {
            return Err(suggest(format!("`:net` takes hosts, but \"{text}\" is a URL"), bare(rest), text));
        }
        if let Some((address, bits)) = text.split_once('/')
            && address.parse::<IpAddr>().is_ok()
            && bits.parse::<u8>().is_ok()
        {
            return Err(none(format!("`:net` takes single addresses, but \"{text}\" is an address range")));
        }
        if text.contains(['/', '?', '#', '@', '\\']) {
            return Err(suggest(format!("`:net` takes hosts, but \"{text}\" is a URL"), bare(text), text));
        }
        let (host, port) = split_port(text);
        let port = match port {
            None => Ports::Default,
            Some("*") => Ports::All,
            Some(port) => match port.parse() {
                Ok(0) | Err(_) => return Err(none(format!("\"{port}\" in \"{text}\" is not a port"))),
                Ok(port) => Ports::One(port),
            },
        };
        Ok(Self { host: Hosts::parse(host, text)?, port })
    }

    /// Whether the grant covers the host name `name` at `port`. The name is in the form of a URL host, without a
    /// trailing dot.
    pub fn covers_name(&self, name: &str, port: u16) -> bool {
        let covered = match &self.host {
            Hosts::All => true,
            Hosts::Name(granted) => granted == name,
            Hosts::Subdomains(above) => {
                name.strip_suffix(above.as_str()).is_some_and(|left| left.len() > 1 && left.ends_with('.'))
            }
            Hosts::Address(_) => false,
        };
        covered && self.port.cover(port)
    }

    /// Whether the grant is exactly this address, at `port`.
    pub fn names_address(&self, address: IpAddr, port: u16) -> bool {
        self.host == Hosts::Address(address) && self.port.cover(port)
    }

    /// Whether the grant covers every host at `port`.
    pub fn is_every_host(&self, port: u16) -> bool {
        self.host == Hosts::All && self.port.cover(port)
    }

    /// Returns the parent of the covered names if it is a top-level domain: `org` for `*.org`.
    pub(crate) fn top(&self) -> Option<&str> {
        match &self.host {
            Hosts::Subdomains(above) if !above.contains('.') && above != "localhost" => Some(above),
            Hosts::All | Hosts::Name(_) | Hosts::Subdomains(_) | Hosts::Address(_) => None,
        }
    }

    /// Whether the grant covers every host, at any port.
    pub(crate) fn is_all(&self) -> bool {
        self.host == Hosts::All
    }
}

impl Hosts {
    /// `whole` is the complete grant, for messages.
    fn parse(host: &str, whole: &str) -> Result<Self, InvalidHostGrant> {
        let none = |reason: String| InvalidHostGrant { reason, instead: None };
        if host == "*" {
            return Ok(Self::All);
        }
        let (above, is_below) = host.strip_prefix("*.").map_or((host, false), |above| (above, true));
        if above.contains('*') {
            let reason = format!(
                "`*` is only allowed before the first dot, as in \"*.example.org\"; found \"{whole}\""
            );
            return Err(none(reason));
        }
        let parsed = match above.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => Some(Host::Ipv4(address)),
            Ok(IpAddr::V6(address)) => Some(Host::Ipv6(address)),
            // The URL parser would decode percent signs.
            Err(_) if above.contains('%') => None,
            Err(_) => Host::parse(above.strip_suffix('.').unwrap_or(above)).ok(),
        };
        match parsed {
            None => Err(none(format!("\"{whole}\" is not a host name"))),
            Some(Host::Domain(name)) if is_below => Ok(Self::Subdomains(name)),
            Some(Host::Domain(name)) => Ok(Self::Name(name)),
            Some(Host::Ipv4(_) | Host::Ipv6(_)) if is_below => {
                Err(none(format!("\"{whole}\": an address has no subdomains")))
            }
            Some(Host::Ipv4(address)) if address.to_string() != above => {
                let reason = format!("\"{whole}\" is a different notation for the address {address}");
                Err(suggest(reason, &whole.replacen(above, &address.to_string(), 1), whole))
            }
            Some(Host::Ipv4(address)) => Ok(Self::Address(address.into())),
            Some(Host::Ipv6(address)) => Ok(Self::Address(address.into())),
        }
    }
}

impl Ports {
    fn cover(self, port: u16) -> bool {
        match self {
            Self::Default => DEFAULT_PORTS.contains(&port),
            Self::All => true,
            Self::One(granted) => granted == port,
        }
    }
}

/// Returns the text of a grant for `host`, in the form of a URL host, at `port`.
pub fn host_grant(host: &str, port: u16) -> String {
    if DEFAULT_PORTS.contains(&port) { host.to_owned() } else { format!("{host}:{port}") }
}

/// Splits a grant into the host and the text after its colon.
fn split_port(text: &str) -> (&str, Option<&str>) {
    if text.parse::<IpAddr>().is_ok() {
        return (text, None);
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    }
}

/// Returns the host and port of `rest`, a URL without its scheme.
fn bare(rest: &str) -> &str {
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default()
}

/// Builds an error that suggests `instead` if that is a valid grant and differs from `text`.
fn suggest(reason: String, instead: &str, text: &str) -> InvalidHostGrant {
    let instead = (instead != text && HostGrant::parse(instead).is_ok()).then(|| instead.to_owned());
    InvalidHostGrant { reason, instead }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_cover_their_hosts_and_ports() {
        for (grant, name, port, covered) in [
            ("api.example.org", "api.example.org", 443, true),
            ("api.example.org", "api.example.org", 80, true),
            ("api.example.org", "api.example.org", 8443, false),
            ("API.Example.ORG.", "api.example.org", 443, true),
            ("api.example.org:8443", "api.example.org", 8443, true),
            ("api.example.org:8443", "api.example.org", 443, false),
            ("api.example.org:*", "api.example.org", 1, true),
            ("example.org", "api.example.org", 443, false),
            ("*.example.org", "api.example.org", 443, true),
            ("*.example.org", "a.b.example.org", 443, true),
            ("*.example.org", "example.org", 443, false),
            ("*.example.org", ".example.org", 443, false),
            ("*.example.org", "evilexample.org", 443, false),
            ("*.example.org:*", "api.example.org", 9, true),
            ("example.org", "example.org.evil.net", 443, false),
            ("bücher.example", "xn--bcher-kva.example", 443, true),
            ("*", "any.example", 443, true),
            ("*", "any.example", 8443, false),
            ("*:*", "any.example", 8443, true),
            ("127.0.0.1", "127.0.0.1", 80, false),
            ("my_host", "my_host", 80, true),
        ] {
            let grant = HostGrant::parse(grant).unwrap();
            assert_eq!(grant.covers_name(name, port), covered, "{grant:?} {name}:{port}");
        }
        for (grant, address, port, covered) in [
            ("127.0.0.1", "127.0.0.1", 80, true),
            ("127.0.0.1:8080", "127.0.0.1", 8080, true),
            ("127.0.0.1:8080", "127.0.0.1", 80, false),
            ("127.0.0.1", "127.0.0.2", 80, false),
            ("::1", "::1", 80, true),
            ("[::1]", "::1", 443, true),
            ("[::1]:9", "::1", 9, true),
            ("[0:0::1]:*", "::1", 9, true),
            ("*", "127.0.0.1", 80, false),
            ("127.0.0.1", "::ffff:127.0.0.1", 80, false),
        ] {
            let grant = HostGrant::parse(grant).unwrap();
            assert_eq!(
                grant.names_address(address.parse().unwrap(), port),
                covered,
                "{grant:?} {address}:{port}"
            );
        }
    }

    #[test]
    fn an_invalid_grant_has_a_reason_and_a_suggestion() {
        for (text, reason, instead) in [
            ("https://example.org/x", "is a URL", Some("example.org")),
            ("https://example.org:8443", "is a URL", Some("example.org:8443")),
            ("https://user@example.org/x", "is a URL", Some("example.org")),
            ("user@example.org", "is a URL", Some("example.org")),
            ("example.org/x", "is a URL", Some("example.org")),
            ("https://", "is a URL", None),
            (" example.org", "contains whitespace", Some("example.org")),
            ("a b", "contains whitespace", None),
            ("10.0.0.0/8", "is an address range", None),
            ("fc00::/7", "is an address range", None),
            ("0.0.0.0/0", "is an address range", None),
            ("example.org:0", "is not a port", None),
            ("example.org:x", "is not a port", None),
            ("example.org:99999", "is not a port", None),
            ("example.org:", "is not a port", None),
            ("api.*.org", "before the first dot", None),
            ("*example.org", "before the first dot", None),
            ("*.127.0.0.1", "an address has no subdomains", None),
            ("0x7f.1", "the address 127.0.0.1", Some("127.0.0.1")),
            ("2130706433:80", "the address 127.0.0.1", Some("127.0.0.1:80")),
            ("a%2eb", "not a host name", None),
            ("*.", "not a host name", None),
            ("[::1", "not a host name", None),
            ("exa<mple", "not a host name", None),
        ] {
            let refused = HostGrant::parse(text).unwrap_err();
            assert!(refused.reason.contains(reason), "{text}: {refused:?}");
            assert_eq!(refused.instead.as_deref(), instead, "{text}");
        }
    }
}
