use std::net::Ipv6Addr;

use super::*;
use crate::plan::{RequestRule, Settings, Surroundings, Written, compile};

fn plan(allow: &[&str], deny: &[&str]) -> GatePlan {
    let written = |texts: &[&str]| texts.iter().map(|text| Written::new(text, "test")).collect();
    let settings = Settings { allow: written(allow), deny: written(deny), ..Settings::default() };
    let own = vec!["93.184.216.99".parse().expect("an address"), "192.168.1.5".parse().expect("an address")];
    compile(&settings, &Surroundings { own, ..Surroundings::default() }).expect("a plan")
}

fn target(text: &str) -> Target {
    let (host, port) = text.rsplit_once(':').expect("a port");
    Target { host: host.parse().expect("a host"), port: port.parse().expect("a port") }
}

fn reason(plan: &GatePlan, text: &str) -> Option<Reason> {
    plan.connection(&target(text)).err().map(|denial| denial.reason)
}

#[test]
fn a_name_needs_a_rule_for_it_and_its_port() {
    let plan = plan(
        &["github.com", "*.example.org", ".both.org", "tcp://db.example.org:5432", "ssh://git@github.com"],
        &[],
    );
    for allowed in [
        "github.com:443",
        "github.com:80",
        "GITHUB.com.:443",
        "github.com:22",
        "a.example.org:443",
        "a.b.example.org:80",
        "both.org:443",
        "x.both.org:443",
        "db.example.org:5432",
    ] {
        assert_eq!(reason(&plan, allowed), None, "{allowed}");
    }
    for denied in [
        "github.com:8080",
        "notgithub.com:443",
        "github.com.evil:443",
        "a.github.com:443",
        "example.org:443",
        "notexample.org:443",
        "a.example.org:22",
        "db.example.org:5433",
        "evil:443",
        "93.184.216.34:443",
    ] {
        assert_eq!(reason(&plan, denied), Some(Reason::NotAllowed), "{denied}");
    }
}

#[test]
fn nothing_is_allowed_without_rules_and_what_is_denied_stays_denied() {
    assert_eq!(reason(&plan(&[], &[]), "github.com:443"), Some(Reason::NotAllowed));
    let plan =
        plan(&[".github.com", "gist.github.com", "10.0.0.0/8:80"], &["gist.github.com", "10.1.0.0/16"]);
    assert_eq!(reason(&plan, "github.com:443"), None);
    assert_eq!(reason(&plan, "gist.github.com:443"), Some(Reason::DeniedByRule));
    assert_eq!(reason(&plan, "10.1.2.3:80"), Some(Reason::DeniedByRule));
    assert_eq!(reason(&plan, "10.2.2.3:80"), None);
    let denial = plan.connection(&target("gist.github.com:443")).expect_err("denied");
    assert_eq!(
        (denial.to_string().as_str(), denial.suggestion),
        ("a rule denies it: `gist.github.com` (test)", None)
    );
}

#[test]
fn no_spelling_of_an_address_of_this_machine_is_allowed() {
    let plan = plan(
        &["github.com", "100.0.0.0/8:80", "168.0.0.0/8:80", "93.184.216.0/24:80", "192.168.1.0/24:80"],
        &[],
    );
    for text in [
        "127.0.0.1:80",
        "2130706433:80",
        "0x7f.1:80",
        "0177.0.0.1:80",
        "127.1:80",
        "::ffff:127.0.0.1:80",
        "[::127.0.0.1]:80",
        "[64:ff9b::7f00:1]:80",
        "[2002:7f00:1::]:80",
        "[fe80::1%lo]:80",
        "0.0.0.0:80",
        "[::]:80",
        "169.254.169.254:80",
        "10.0.0.1:80",
        "100.100.100.200:80",
        "100.64.0.1:80",
        "168.63.129.16:80",
        "93.184.216.99:80",
        "[::ffff:93.184.216.99]:80",
        "192.168.1.5:80",
    ] {
        assert_eq!(reason(&plan, text), Some(Reason::PrivateAddress), "{text}");
    }
    for text in ["100.1.1.1:80", "168.1.1.1:80", "93.184.216.34:80", "192.168.1.6:80"] {
        assert_eq!(reason(&plan, text), None, "{text}");
    }
}

#[test]
fn a_name_may_lead_to_public_addresses_and_to_networks_that_are_opened() {
    let mut plan = plan(&["github.com"], &["93.184.217.0/24"]);
    plan.private =
        vec!["10.20.0.0/16".parse().expect("a network"), "192.168.0.0/16".parse().expect("a network")];
    let check = |text: &str| plan.resolved(text.parse().expect("an address"), 443).map_err(|it| it.reason);
    for text in ["93.184.216.34", "2a00:1450::1", "10.20.1.1", "192.168.1.6", "64:ff9b::5db8:d822"] {
        assert_eq!(check(text), Ok(()), "{text}");
    }
    for text in [
        "10.21.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "::1",
        "::ffff:10.21.0.1",
        "fd00::1",
        "fe80::1",
        "0.0.0.0",
        "192.168.1.5",
        "93.184.216.99",
        "64:ff9b::5db8:d863",
        "64:ff9b::c0a8:105",
        "2002:5db8:d822::",
    ] {
        assert_eq!(check(text), Err(Reason::PrivateAddress), "{text}");
    }
    for text in ["93.184.217.1", "::ffff:93.184.217.1", "64:ff9b::5db8:d901"] {
        assert_eq!(check(text), Err(Reason::DeniedByRule), "{text}");
    }
}

#[test]
fn the_rule_of_a_suggestion_allows_what_was_denied() {
    let nothing = plan(&[], &[]);
    for (text, expected) in [
        ("evil.example:443", Some("evil.example")),
        ("evil.example:80", Some("evil.example")),
        ("evil.example:22", Some("ssh://evil.example")),
        ("evil.example:8443", Some("evil.example:8443")),
        ("93.184.216.34:443", Some("93.184.216.34:443")),
        ("[2a00:1450::1]:443", Some("[2a00:1450::1]:443")),
        ("10.0.0.7:5432", Some("10.0.0.7:5432")),
        ("127.0.0.1:80", None),
        ("evil:443", None),
    ] {
        let target = target(text);
        let suggested = nothing.connection(&target).expect_err("denied").suggestion;
        assert_eq!(suggested.as_deref(), expected, "{text}");
        if let Some(rule) = suggested {
            plan(&[&rule], &[]).connection(&target).unwrap_or_else(|denial| panic!("{rule}: {denial}"));
        }
    }
    assert_eq!(suggestion(&target("a.org:5432"), Some(Protocol::Tcp)).as_deref(), Some("tcp://a.org:5432"));
    let targets = ["b.org:443", "a.org:80", "b.org:80", "a.org:22"].map(target);
    assert_eq!(suggest(targets.iter().map(|it| (it, None))), ["a.org", "b.org", "ssh://a.org"]);
}

#[test]
fn a_connection_is_as_open_as_its_most_open_rule() {
    let plan =
        plan(&["a.org", "tcp://a.org:443", "a.org:22", "b.org:8443", "https://b.org:22", "ssh://b.org"], &[]);
    let permit = |text: &str| plan.connection(&target(text)).expect("allowed");
    assert_eq!(permit("a.org:443").opaque(), Some(Protocol::Tcp));
    assert_eq!(permit("a.org:22").opaque(), Some(Protocol::Ssh));
    assert_eq!(permit("a.org:80").opaque(), None);
    assert_eq!(permit("b.org:22").opaque(), None, "two protocols at one port");
    assert!(permit("b.org:8443").allows(Protocol::Https) && permit("b.org:8443").allows(Protocol::Http));
    assert!(!permit("a.org:80").allows(Protocol::Https));
}

#[test]
fn requests_are_judged_by_all_rules_together() {
    let rule = |methods: &[&str], paths: &[&str]| RequestRule {
        host: Written::new("http://a.org", "test"),
        methods: methods.iter().map(|&it| it.to_owned()).collect(),
        paths: paths.iter().map(|&it| it.to_owned()).collect(),
    };
    let requests = vec![rule(&["GET"], &["/repos/**"]), rule(&["POST"], &["/repos/me/**"])];
    let settings = Settings { requests, ..Settings::default() };
    let plan = compile(&settings, &Surroundings::default()).expect("a plan");
    let permit = plan.connection(&target("a.org:80")).expect("allowed");
    let reason = |method, path| permit.request(method, path).err();
    assert_eq!(reason("GET", Some("/repos/you")), None);
    assert_eq!(reason("POST", Some("/repos/me/x")), None);
    assert_eq!(reason("POST", Some("/repos/you")), Some(Reason::Method));
    assert_eq!(reason("GET", Some("/gists")), Some(Reason::Path));
    assert_eq!(reason("GET", None), Some(Reason::Malformed));
}

#[test]
fn why_names_the_rule_and_its_origin() {
    let plan = plan(&["github.com"], &["gist.github.com"]);
    let shown = ["github.com:443", "gist.github.com:443", "evil.example:443", "127.0.0.1:80"]
        .map(|text| plan.explain(&target(text)));
    insta::assert_snapshot!(shown.join("\n"), @r"
    github.com:443 is allowed by `github.com` (test)
    gist.github.com:443 is denied: a rule denies it: `gist.github.com` (test)
    evil.example:443 is denied: no rule allows it; the rule `evil.example` would allow it
    127.0.0.1:80 is denied: it is not a public address
    ");
}

/// The verdict on a name as three sentences of the manual would have it.
fn naive(allow: &[String], deny: &[String], name: &str, port: u16) -> bool {
    let covers = |rule: &String, any_port: bool| {
        let (pattern, ports) = rule.split_once(':').map_or((rule.as_str(), None), |(a, b)| (a, Some(b)));
        let port_fits = match ports {
            Some("*") => true,
            Some(text) => text == port.to_string(),
            None => any_port || port == 80 || port == 443,
        };
        let host_fits = match (pattern.strip_prefix("*."), pattern.strip_prefix('.')) {
            (Some(base), _) => name.ends_with(&format!(".{base}")),
            (_, Some(base)) => name == base || name.ends_with(&format!(".{base}")),
            _ => name == pattern,
        };
        port_fits && host_fits
    };
    allow.iter().any(|it| covers(it, false)) && !deny.iter().any(|it| covers(it, true))
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(1000))]

    #[test]
    fn verdicts_are_those_of_the_naive_reading(
        allow in proptest::collection::vec("(\\*\\.|\\.)?[ab](\\.[ab]){1,2}(:(\\*|22|443))?", 0..4),
        deny in proptest::collection::vec("(\\*\\.|\\.)?[ab](\\.[ab]){1,2}(:(\\*|22|443))?", 0..3),
        name in "[ab](\\.[ab]){1,3}",
        port in proptest::sample::select(vec![22_u16, 80, 443, 8080]),
    ) {
        let texts = |it: &[String]| it.iter().map(|text| Written::new(text, "test")).collect::<Vec<_>>();
        let settings = Settings { allow: texts(&allow), deny: texts(&deny), ..Settings::default() };
        let plan = compile(&settings, &Surroundings::default()).expect("a plan");
        let verdict = plan.connection(&Target { host: name.parse().expect("a name"), port }).is_ok();
        proptest::prop_assert_eq!(verdict, naive(&allow, &deny, &name, port));
    }

    #[test]
    fn no_address_outside_the_public_ones_passes_without_being_named(bits in proptest::prelude::any::<u32>()) {
        let plan = plan(&["github.com"], &[]);
        let v4 = std::net::Ipv4Addr::from_bits(bits);
        let is_public = AddressClass::of(v4.into()) == AddressClass::Public;
        let mapped: Ipv6Addr = v4.to_ipv6_mapped();
        let own = v4.octets() == [93, 184, 216, 99];
        proptest::prop_assert_eq!(plan.resolved(v4.into(), 443).is_ok(), is_public && !own);
        proptest::prop_assert_eq!(plan.resolved(mapped.into(), 443).is_ok(), is_public && !own);
    }
}
