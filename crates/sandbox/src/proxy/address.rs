//! Which addresses are the public Internet. Everything that IANA's special-purpose registries (RFC 6890, RFC 8190) set
//! apart is not, and neither is any IPv6 form that carries an IPv4 address to somewhere else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Says whether `address` is a public unicast address: not private, loopback, link-local (where clouds keep their metadata),
/// shared by carriers, multicast, unspecified, documentation, benchmarking, reserved, unique-local, or a way around these.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    match (a, b, c) {
        // This network, private, loopback.
        (0 | 10 | 127, ..) => false,
        // Shared by carriers (RFC 6598); one cloud keeps its metadata at 100.100.100.200.
        (100, 64..=127, _) => false,
        // Link-local, metadata.
        (169, 254, _) => false,
        (172, 16..=31, _) | (192, 168, _) => false,
        // Protocol assignments, documentation, 6to4 relays, benchmarking.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => false,
        // A public address at which one cloud answers its guests' metadata and DNS requests.
        (168, 63, 129) if d == 16 => false,
        // Multicast, reserved, broadcast.
        (224..=255, ..) => false,
        _ => true,
    }
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let s = address.segments();
    // Global unicast is 2000::/3. What lies outside is loopback, unspecified, IPv4-mapped, NAT64 (64:ff9b::/96),
    // unique-local, link-local, multicast or unassigned.
    if s[0] & 0xe000 != 0x2000 {
        return false;
    }
    match (s[0], s[1]) {
        // Protocol assignments, Teredo and benchmarking among them, and documentation.
        (0x2001, 0..=0x01ff) | (0x2001, 0x0db8) => false,
        // 6to4 carries an IPv4 address in the next 32 bits; the newer documentation block is 3fff::/20.
        (0x2002, _) | (0x3fff, 0..=0x0fff) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    //! The ranges, at both ends.

    use super::*;

    #[test]
    fn what_is_not_the_internet_is_refused() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "169.254.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:1.1.1.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::1.1.1.1",
            "64:ff9b::1.1.1.1",
            "64:ff9b::a9fe:a9fe",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn the_internet_is_reachable() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "128.0.0.1",
            "169.253.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.0.1",
            "192.169.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2a00:1450::1",
            "2001:200::1",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }
}
