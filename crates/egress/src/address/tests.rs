use super::*;

fn class(text: &str) -> AddressClass {
    AddressClass::of(text.parse().expect("an address"))
}

#[test]
fn every_network_that_is_not_public_is_known() {
    use AddressClass::*;
    // Of each network its first and last address; written from the IANA registries, not from the table.
    for (first, last, expected) in [
        ("0.0.0.0", "0.255.255.255", Unspecified),
        ("10.0.0.0", "10.255.255.255", Private),
        ("100.64.0.0", "100.100.100.199", Shared),
        ("100.100.100.201", "100.127.255.255", Shared),
        ("127.0.0.0", "127.255.255.255", Loopback),
        ("169.254.0.0", "169.254.169.253", LinkLocal),
        ("169.254.170.24", "169.254.255.255", LinkLocal),
        ("172.16.0.0", "172.31.255.255", Private),
        ("192.0.0.0", "192.0.0.191", Reserved),
        ("192.0.2.0", "192.0.2.255", Reserved),
        ("192.168.0.0", "192.168.255.255", Private),
        ("198.18.0.0", "198.19.255.255", Reserved),
        ("198.51.100.0", "198.51.100.255", Reserved),
        ("203.0.113.0", "203.0.113.255", Reserved),
        ("224.0.0.0", "239.255.255.255", Multicast),
        ("240.0.0.0", "255.255.255.255", Reserved),
        ("169.254.169.254", "169.254.169.254", Metadata),
        ("100.100.100.200", "100.100.100.200", Metadata),
        ("168.63.129.16", "168.63.129.16", Metadata),
        ("fd00:ec2::254", "fd00:ec2::254", Metadata),
        ("::", "::", Unspecified),
        ("::1", "::1", Loopback),
        ("fc00::", "fcff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Private),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", LinkLocal),
        ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Private),
        ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Multicast),
        ("100::", "100::ffff:ffff:ffff:ffff", Reserved),
        ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", Transition),
        ("2001:2::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", Reserved),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", Reserved),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", Reserved),
        ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Reserved),
        ("4000::", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Reserved),
    ] {
        assert_eq!((class(first), class(last)), (expected, expected), "{first} to {last}");
    }
}

#[test]
fn the_neighbours_of_those_networks_are_public() {
    for text in [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "28.64.0.1",
        "2001:200::",
        "2001:db7:ffff::",
        "2001:db9::",
        "2003::",
        "2a00:1450::1",
        "3ffe:ffff::",
        "::ffff:93.184.216.34",
        "64:ff9b::5db8:d822",
    ] {
        assert_eq!(class(text), AddressClass::Public, "{text}");
    }
}

#[test]
fn an_address_inside_another_decides() {
    for text in ["::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::ffff:0:127.0.0.1"]
    {
        assert_eq!(class(text), AddressClass::Loopback, "{text}");
    }
    assert_eq!(class("64:ff9b::a9fe:a9fe"), AddressClass::Metadata);
    assert_eq!(class("::ffff:10.0.0.1"), AddressClass::Private);
    for text in ["::93.184.216.34", "2002:5db8:d822::1", "64:ff9b:1::5db8:d822", "::ffff:0:93.184.216.34"] {
        assert_eq!(class(text), AddressClass::Transition, "{text}");
    }
}

#[test]
fn a_network_contains_what_shares_its_prefix() {
    let cidr = |text: &str| text.parse::<Cidr>().expect("a network");
    let contains =
        |network: &str, address: &str| cidr(network).contains(address.parse().expect("an address"));
    assert!(contains("10.20.0.0/16", "10.20.255.1") && !contains("10.20.0.0/16", "10.21.0.0"));
    assert!(contains("10.20.0.0/15", "10.21.0.0") && contains("0.0.0.0/0", "1.2.3.4"));
    assert!(contains("10.0.0.1", "10.0.0.1") && !contains("10.0.0.1", "10.0.0.2"));
    assert!(contains("10.0.0.0/8", "::ffff:10.0.0.1"), "a mapped address is the address");
    assert!(contains("fc00::/7", "fd00::1"));
    assert!(!contains("::/0", "10.0.0.1"));
}

#[test]
fn a_network_is_written_exactly() {
    let error = |text: &str| text.parse::<Cidr>().expect_err("no network").to_string();
    assert_eq!(
        error("10.20.0.1/16"),
        "`10.20.0.1/16` has bits set after its prefix; the network is `10.20.0.0/16`"
    );
    for text in
        ["", "10", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.0/", "010.0.0.0/8", "::ffff:10.0.0.0/104", "x/8"]
    {
        assert!(error(text).contains("is not an address"), "{text}");
    }
    for text in ["10.20.0.0/16", "10.0.0.1", "fd00::/8", "2a00::1"] {
        assert_eq!(text.parse::<Cidr>().map(String::from), Ok(text.to_owned()));
    }
}
