//! Requests of web pages to a local server.

use core::net::IpAddr;

/// Returns why a server must refuse a request with these `headers`: web pages may not use it. A page of another site sends
/// an `Origin`. A page that reaches the server through DNS rebinding sends the name of its site as `Host`;
/// `is_loopback`: the server listens on a loopback address, so only loopback names are its own. Otherwise its names are
/// not known here.
pub fn web_page_refusal<'h>(
    headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    is_loopback: bool,
) -> Option<&'static str> {
    headers.into_iter().find_map(|(name, value)| {
        if name.eq_ignore_ascii_case("origin") {
            return Some("web pages may not use this server: the request has an `Origin` header");
        }
        (is_loopback && name.eq_ignore_ascii_case("host") && !is_loopback_host(value)).then_some(
            "the `Host` of the request is not a loopback name, such as `localhost`; listen on another --address to \
             allow other names",
        )
    })
}

/// `host`: a name or an address, which may have a port. Names below `localhost` are reserved (RFC 6761, 6.3). Clients reach
/// this machine at the unspecified address, too, and from a container of Docker Desktop at `host.docker.internal`.
fn is_loopback_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    let name = name.unwrap_or_default().to_ascii_lowercase();
    // An absolute name ends with a dot.
    let name = name.strip_suffix('.').unwrap_or(&name);
    let is_own = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    ["localhost", "host.docker.internal"].contains(&name)
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| is_own(address.to_canonical()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_hosts_without_an_origin_are_accepted() {
        let refused = |name, value, is_loopback| web_page_refusal([(name, value)], is_loopback).is_some();
        for host in [
            "localhost",
            "LocalHost:80",
            "app.localhost:80",
            "localhost.",
            "host.docker.internal:80",
            "[::ffff:127.0.0.1]",
            "127.0.0.1:1",
            "127.0.0.2",
            "0.0.0.0:80",
            "[::1]",
            "[::1]:80",
        ] {
            assert!(!refused("Host", host, true), "{host}");
        }
        for host in [
            "",
            "rebound.example",
            "localhost.example:80",
            "127.0.0.1.example",
            "notlocalhost",
            "192.0.2.1",
            "[::2]",
            "[",
            ":80",
            "a@localhost",
        ] {
            assert!(refused("host", host, true), "{host}");
            assert!(!refused("host", host, false), "{host}");
        }
        for origin in ["http://localhost", "null", ""] {
            assert!(refused("origin", origin, true) && refused("Origin", origin, false), "{origin}");
        }
        assert_eq!(web_page_refusal([("accept", "*/*")], true), None);
    }
}
