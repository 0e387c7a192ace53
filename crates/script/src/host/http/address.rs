//! Classifies IP addresses as public or special-purpose.
//!
//! The owner of a domain can make it resolve to `127.0.0.1` or to the address where clouds serve credentials. A grant
//! of a name must not give access to the local network, so addresses are checked after resolution, never by their
//! spelling.
//!
//! Sources: the IANA special-purpose address registries for IPv4 and IPv6 (state of 2025-10-09), RFC 6890 and its
//! updates; for 168.63.129.16 Azure's documentation of its virtual network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns a description of `address` with an article, or `None` for a public address.
pub(super) fn special_purpose(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_purpose_v4(address),
        IpAddr::V6(address) => special_purpose_v6(address),
    }
}

fn special_purpose_v4(address: Ipv4Addr) -> Option<&'static str> {
    const PRIVATE: &str = "a private address";
    const DOCUMENTATION: &str = "an address for documentation";
    Some(match address.octets() {
        [255, 255, 255, 255] => "the broadcast address",
        [0, 0, 0, 0] => "the unspecified address",
        [0, ..] => "an address of this network",
        [127, ..] => "a loopback address",
        [10, ..] | [192, 168, ..] => PRIVATE,
        [172, second, ..] if second & 0xF0 == 16 => PRIVATE,
        [100, second, ..] if second & 0xC0 == 64 => "a shared address (carrier-grade NAT)",
        [169, 254, ..] => "a link-local address, where clouds serve credentials",
        [168, 63, 129, 16] => "the address of Azure's platform services",
        [192, 0, 0, _] => "an address for protocols",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => DOCUMENTATION,
        [192, 88, 99, _] => "an address of 6to4 relays",
        [198, 18 | 19, ..] => "an address for benchmarks",
        [224..=239, ..] => "a multicast address",
        [240..=255, ..] => "a reserved address",
        _ => return None,
    })
}

fn special_purpose_v6(address: Ipv6Addr) -> Option<&'static str> {
    const EMBEDS: &str = "an IPv6 address that embeds an IPv4 address";
    const DOCUMENTATION: &str = "an address for documentation";
    let segments = address.segments();
    Some(match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => "the unspecified address",
        [0, 0, 0, 0, 0, 0, 0, 1] => "a loopback address",
        // Mapped, translated and compatible addresses: legitimate name servers do not return them.
        [0, 0, 0, 0, 0, 0 | 0xFFFF, ..] | [0, 0, 0, 0, 0xFFFF, 0, ..] => EMBEDS,
        // DNS64 maps every IPv4 address to this prefix in networks without IPv4: classify the embedded address.
        [0x64, 0xFF9B, 0, 0, 0, 0, high, low] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            return special_purpose_v4(Ipv4Addr::new(a, b, c, d));
        }
        [0x64, 0xFF9B, ..] => "an address of a local NAT64",
        [0xFE80..=0xFEBF, ..] => "a link-local address",
        [0xFEC0..=0xFEFF, ..] => "a site-local address",
        [0xFC00..=0xFDFF, ..] => "a unique-local address",
        [0xFF00..=0xFFFF, ..] => "a multicast address",
        [0x2001, 0, ..] => "an address of a Teredo tunnel",
        [0x2001, 2, 0, ..] => "an address for benchmarks",
        [0x2001, 0xDB8, ..] | [0x3FFF, 0..=0x0FFF, ..] => DOCUMENTATION,
        [0x2001, 0..=0x1FF, ..] => "an address for protocols",
        [0x2002, ..] => "an address of a 6to4 tunnel",
        // ISATAP: any prefix, then the IPv4 address of a host behind it.
        [_, _, _, _, 0 | 0x0200, 0x5EFE, ..] => EMBEDS,
        // Public addresses are only assigned from this block.
        [0x2000..=0x3FFF, ..] => return None,
        _ => "a reserved address",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_purpose_address_is_recognised() {
        for (address, expected) in [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "this network"),
            ("10.0.0.0", "private"),
            ("10.255.255.255", "private"),
            ("100.63.255.255", ""),
            ("100.64.0.0", "carrier"),
            ("100.100.100.200", "carrier"),
            ("100.127.255.255", "carrier"),
            ("100.128.0.0", ""),
            ("126.255.255.255", ""),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("128.0.0.1", ""),
            ("168.63.129.15", ""),
            ("168.63.129.16", "Azure"),
            ("169.253.255.255", ""),
            ("169.254.0.1", "link-local"),
            ("169.254.169.254", "credentials"),
            ("169.254.170.2", "credentials"),
            ("169.255.0.0", ""),
            ("172.15.255.255", ""),
            ("172.16.0.0", "private"),
            ("172.31.255.255", "private"),
            ("172.32.0.0", ""),
            ("192.0.0.1", "protocols"),
            ("192.0.0.192", "protocols"),
            ("192.0.1.0", ""),
            ("192.0.2.1", "documentation"),
            ("192.88.99.1", "6to4"),
            ("192.167.255.255", ""),
            ("192.168.0.1", "private"),
            ("192.168.255.255", "private"),
            ("192.169.0.0", ""),
            ("198.17.255.255", ""),
            ("198.18.0.0", "benchmarks"),
            ("198.19.255.255", "benchmarks"),
            ("198.20.0.0", ""),
            ("198.51.100.7", "documentation"),
            ("203.0.113.7", "documentation"),
            ("223.255.255.255", ""),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.254", "reserved"),
            ("255.255.255.255", "broadcast"),
            ("1.1.1.1", ""),
            ("8.8.8.8", ""),
            ("93.184.216.34", ""),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::2", "IPv4"),
            ("::127.0.0.1", "IPv4"),
            ("::8.8.8.8", "IPv4"),
            ("::ffff:127.0.0.1", "IPv4"),
            ("::ffff:169.254.169.254", "IPv4"),
            ("::ffff:8.8.8.8", "IPv4"),
            ("::ffff:0:10.0.0.1", "IPv4"),
            ("64:ff9b::10.0.0.1", "private"),
            ("64:ff9b::169.254.169.254", "credentials"),
            ("64:ff9b::7f00:1", "loopback"),
            ("64:ff9b::8.8.8.8", ""),
            ("64:ff9b:1::10.0.0.1", "NAT64"),
            ("100::1", "reserved"),
            ("2001::1", "Teredo"),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"),
            ("2001:2::1", "benchmarks"),
            ("2001:10::1", "protocols"),
            ("2001:1ff:ffff::1", "protocols"),
            ("2001:200::1", ""),
            ("2001:db8::1", "documentation"),
            ("2001:4860:4860::8888", ""),
            ("2002:7f00:1::1", "6to4"),
            ("2002:808:808::1", "6to4"),
            ("2606:4700::5efe:10.0.0.1", "IPv4"),
            ("2606:4700::200:5efe:10.0.0.1", "IPv4"),
            ("2606:4700:4700::1111", ""),
            ("3fff::1", "documentation"),
            ("3fff:1000::1", ""),
            ("4000::1", "reserved"),
            ("5f00::1", "reserved"),
            ("fc00::1", "unique-local"),
            ("fd00:ec2::254", "unique-local"),
            ("fdff:ffff::1", "unique-local"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
        ] {
            let kind = special_purpose(address.parse().unwrap()).unwrap_or_default();
            assert!(
                if expected.is_empty() { kind.is_empty() } else { kind.contains(expected) },
                "{address}: {kind:?}"
            );
        }
    }
}
