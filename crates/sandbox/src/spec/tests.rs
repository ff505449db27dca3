//! The grammar of destinations.

use super::*;

#[test]
fn a_destination_is_a_host_and_a_port() {
    for (text, host, port) in [
        ("Example.COM:443", "example.com", 443),
        ("example.com.:80", "example.com", 80),
        ("[2606:4700::1]:443", "2606:4700::1", 443),
        ("1.1.1.1:53", "1.1.1.1", 53),
    ] {
        let parsed: Destination = text.parse().unwrap();
        assert_eq!((parsed.host.as_str(), parsed.port), (host, port), "{text}");
        assert_eq!(parsed.to_string().parse::<Destination>().unwrap(), parsed);
    }
}

#[test]
fn anything_else_is_refused() {
    for text in
        ["", "x", ":80", "x:", "x:0", "x:+80", "x:70000", "a b:80", "::1:80", "[::1:80", "x/y:80", "u@x:80", ".:80"]
    {
        assert!(text.parse::<Destination>().is_err(), "{text}");
    }
}
