//! One host of `:allow (:net […])`: what is written, and what it covers.
//!
//! In: the text of a grant. Out: a [`HostGrant`], or why it is none and what was probably meant. Specs are checked with
//! this and requests are judged by it, so that a finding and a refusal cannot disagree. Hosts are read as URLs have them
//! (case, IDNA, forms of addresses), by the same crate. No name is looked up here.

use core::fmt;
use core::net::IpAddr;

use url::Host;

/// The ports that a grant without a port covers.
const USUAL_PORTS: [u16; 2] = [80, 443];

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
    /// `*.example.org`: the names beneath it, without itself.
    Beneath(String),
    /// `192.168.1.5`, `[::1]`
    Address(IpAddr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// 80 and 443.
    Usual,
    /// `:*`
    All,
    One(u16),
}

/// A text that grants nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoHostGrant {
    /// What is wrong, as a clause that begins with the grant.
    pub reason: String,
    /// What to write in its place, where that is plain.
    pub instead: Option<String>,
}

/// As it is written, hosts in lower case and in ASCII.
impl fmt::Display for HostGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Hosts::All => f.write_str("*")?,
            Hosts::Name(name) => f.write_str(name)?,
            Hosts::Beneath(above) => write!(f, "*.{above}")?,
            Hosts::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            Hosts::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
        }
        match self.port {
            Ports::Usual => Ok(()),
            Ports::All => f.write_str(":*"),
            Ports::One(port) => write!(f, ":{port}"),
        }
    }
}

impl HostGrant {
    /// `text` in lower case and, where it has other characters, as DNS has it: two names that look alike are told apart.
    pub fn ascii(text: &str) -> String {
        match Self::parse(text) {
            Ok(grant) if !text.is_ascii() => grant.to_string(),
            Ok(_) | Err(_) => text.to_lowercase(),
        }
    }

    /// Reads a grant: `api.example.org`, `*.example.org`, `192.168.1.5`, `[::1]` or `*`, with `:8443` or `:*` behind it for
    /// another port than 80 and 443.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(text: &str) -> Result<Self, NoHostGrant> {
        let none = |reason: String| NoHostGrant { reason, instead: None };
        if text.contains(|character: char| character.is_whitespace() || character.is_control()) {
            return Err(or_else(
                format!("`:net` takes hosts, and \"{text}\" holds a blank"),
                text.trim(),
                text,
            ));
        }
        if let Some((_, rest)) = text.split_once("://") {
            return Err(or_else(format!("`:net` takes hosts, and \"{text}\" is a URL"), bare(rest), text));
        }
        if let Some((address, bits)) = text.split_once('/')
            && address.parse::<IpAddr>().is_ok()
            && bits.parse::<u8>().is_ok()
        {
            return Err(none(format!("`:net` takes single addresses, and \"{text}\" is a range of them")));
        }
        if text.contains(['/', '?', '#', '@', '\\']) {
            return Err(or_else(format!("`:net` takes hosts, and \"{text}\" is a URL"), bare(text), text));
        }
        let (host, port) = split_port(text);
        let port = match port {
            None => Ports::Usual,
            Some("*") => Ports::All,
            Some(port) => match port.parse() {
                Ok(0) | Err(_) => return Err(none(format!("\"{port}\" in \"{text}\" is no port"))),
                Ok(port) => Ports::One(port),
            },
        };
        Ok(Self { host: Hosts::parse(host, text)?, port })
    }

    /// Whether the name `name`, as a URL's host has it but without a dot at its end, is covered at `port`.
    pub fn covers_name(&self, name: &str, port: u16) -> bool {
        let covered = match &self.host {
            Hosts::All => true,
            Hosts::Name(granted) => granted == name,
            Hosts::Beneath(above) => {
                name.strip_suffix(above.as_str()).is_some_and(|left| left.len() > 1 && left.ends_with('.'))
            }
            Hosts::Address(_) => false,
        };
        covered && self.port.cover(port)
    }

    /// Whether the grant is this very address, at `port`.
    pub fn names_address(&self, address: IpAddr, port: u16) -> bool {
        self.host == Hosts::Address(address) && self.port.cover(port)
    }

    /// Whether the grant is every host, at `port`.
    pub fn is_every_host(&self, port: u16) -> bool {
        self.host == Hosts::All && self.port.cover(port)
    }

    /// The name above all that it covers, if it is one without a dot: `org` of `*.org`.
    pub(crate) fn top(&self) -> Option<&str> {
        match &self.host {
            Hosts::Beneath(above) if !above.contains('.') && above != "localhost" => Some(above),
            Hosts::All | Hosts::Name(_) | Hosts::Beneath(_) | Hosts::Address(_) => None,
        }
    }

    /// Whether it is every host, at whichever port.
    pub(crate) fn is_all(&self) -> bool {
        self.host == Hosts::All
    }
}

impl Hosts {
    /// `whole`: the grant that `host` is from, for messages.
    fn parse(host: &str, whole: &str) -> Result<Self, NoHostGrant> {
        let none = |reason: String| NoHostGrant { reason, instead: None };
        if host == "*" {
            return Ok(Self::All);
        }
        let (above, is_below) = host.strip_prefix("*.").map_or((host, false), |above| (above, true));
        if above.contains('*') {
            let reason =
                format!("`*` stands for what is before a dot, as in \"*.example.org\"; found \"{whole}\"");
            return Err(none(reason));
        }
        let parsed = match above.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => Some(Host::Ipv4(address)),
            Ok(IpAddr::V6(address)) => Some(Host::Ipv6(address)),
            // Percent signs would be decoded.
            Err(_) if above.contains('%') => None,
            Err(_) => Host::parse(above.strip_suffix('.').unwrap_or(above)).ok(),
        };
        match parsed {
            None => Err(none(format!("\"{whole}\" is no host name"))),
            Some(Host::Domain(name)) if is_below => Ok(Self::Beneath(name)),
            Some(Host::Domain(name)) => Ok(Self::Name(name)),
            Some(Host::Ipv4(_) | Host::Ipv6(_)) if is_below => {
                Err(none(format!("\"{whole}\": nothing is beneath an address")))
            }
            Some(Host::Ipv4(address)) if address.to_string() != above => {
                let reason = format!("\"{whole}\" is another way to write the address {address}");
                Err(or_else(reason, &whole.replacen(above, &address.to_string(), 1), whole))
            }
            Some(Host::Ipv4(address)) => Ok(Self::Address(address.into())),
            Some(Host::Ipv6(address)) => Ok(Self::Address(address.into())),
        }
    }
}

impl Ports {
    fn cover(self, port: u16) -> bool {
        match self {
            Self::Usual => USUAL_PORTS.contains(&port),
            Self::All => true,
            Self::One(granted) => granted == port,
        }
    }
}

/// How a grant of `host`, as a URL has it, at `port` is written.
pub fn host_grant(host: &str, port: u16) -> String {
    if USUAL_PORTS.contains(&port) { host.to_owned() } else { format!("{host}:{port}") }
}

/// A grant's host, and what is behind its colon.
fn split_port(text: &str) -> (&str, Option<&str>) {
    if text.parse::<IpAddr>().is_ok() {
        return (text, None);
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    }
}

/// Host and port of what may be the rest of a URL.
fn bare(rest: &str) -> &str {
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default()
}

/// `reason`, with `instead` where that would be a grant and is not `text` again.
fn or_else(reason: String, instead: &str, text: &str) -> NoHostGrant {
    let instead = (instead != text && HostGrant::parse(instead).is_ok()).then(|| instead.to_owned());
    NoHostGrant { reason, instead }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_cover_what_they_say() {
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
    fn what_is_no_grant_says_why_and_what_was_meant() {
        for (text, says, instead) in [
            ("https://example.org/x", "is a URL", Some("example.org")),
            ("https://example.org:8443", "is a URL", Some("example.org:8443")),
            ("https://user@example.org/x", "is a URL", Some("example.org")),
            ("user@example.org", "is a URL", Some("example.org")),
            ("example.org/x", "is a URL", Some("example.org")),
            ("https://", "is a URL", None),
            (" example.org", "holds a blank", Some("example.org")),
            ("a b", "holds a blank", None),
            ("10.0.0.0/8", "is a range", None),
            ("fc00::/7", "is a range", None),
            ("0.0.0.0/0", "is a range", None),
            ("example.org:0", "is no port", None),
            ("example.org:x", "is no port", None),
            ("example.org:99999", "is no port", None),
            ("example.org:", "is no port", None),
            ("api.*.org", "before a dot", None),
            ("*example.org", "before a dot", None),
            ("*.127.0.0.1", "beneath an address", None),
            ("0x7f.1", "the address 127.0.0.1", Some("127.0.0.1")),
            ("2130706433:80", "the address 127.0.0.1", Some("127.0.0.1:80")),
            ("a%2eb", "no host name", None),
            ("*.", "no host name", None),
            ("[::1", "no host name", None),
            ("exa<mple", "no host name", None),
        ] {
            let refused = HostGrant::parse(text).unwrap_err();
            assert!(refused.reason.contains(says), "{text}: {refused:?}");
            assert_eq!(refused.instead.as_deref(), instead, "{text}");
        }
    }
}
