use super::*;
use crate::name::Host;

fn allow(text: &str) -> Result<Rule, RuleError> {
    Rule::parse(text, Action::Allow, "test")
}

fn shown(text: &str) -> String {
    let rule = allow(text).unwrap_or_else(|error| panic!("{error}: {}", error.fault));
    let protocol = rule.protocol.map_or("-".to_owned(), |it| it.to_string());
    format!("{} {} {protocol} {}", rule.hosts, rule.ports, rule.user.unwrap_or_else(|| "-".to_owned()))
}

#[test]
fn every_form_of_a_rule_is_read() {
    for (text, expected) in [
        ("github.com", "github.com 80,443 - -"),
        ("GitHub.com.", "github.com 80,443 - -"),
        ("*.example.org", "*.example.org 80,443 - -"),
        (".example.org", ".example.org 80,443 - -"),
        ("example.org:8443", "example.org 8443 - -"),
        ("example.org:8000-8010", "example.org 8000-8010 - -"),
        ("example.org:80,8080", "example.org 80,8080 - -"),
        ("example.org:*", "example.org * - -"),
        ("https://example.org", "example.org 443 https -"),
        ("http://example.org:8080", "example.org 8080 http -"),
        ("ssh://git@github.com", "github.com 22 ssh git"),
        ("ssh://github.com:2222", "github.com 2222 ssh -"),
        ("tcp://db.example.org:5432", "db.example.org 5432 tcp -"),
        ("93.184.216.34:443", "93.184.216.34 443 - -"),
        ("tcp://10.0.0.0/8:5432", "10.0.0.0/8 5432 tcp -"),
        ("[2a00:1450::1]:443", "[2a00:1450::1] 443 - -"),
        ("[2a00:1450::/32]:443", "[2a00:1450::/32] 443 - -"),
        ("tcp://[fd00::/8]:22", "[fd00::/8] 22 tcp -"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

/// The fault, and what to write instead.
fn refusal(text: &str) -> String {
    let fault = allow(text).expect_err(text).fault;
    format!("{text} | {fault} | {}", fault.instead().unwrap_or_default())
}

#[test]
fn rules_that_are_too_wide_or_unclear_say_what_to_write() {
    let texts = [
        "",
        "*",
        "*:443",
        "*.com",
        ".com",
        "*.co.uk",
        ".com.au",
        "a*.x.com",
        "*a.x.com",
        "a.*.com",
        "**.x.com",
        "**",
        "localhost",
        "intranet",
        "ftp://x.org",
        "https://x.org/path",
        "x.org/path",
        "x.org:443/path",
        "u@x.org",
        "https://u@x.org",
        "https://allowed.org@evil.org",
        "ssh://a:b@x.org",
        "93.184.216.34",
        "tcp://x.org",
        "fd00::1",
        "127.0.0.1:80",
        "0.0.0.0:80",
        "169.254.169.254:80",
        "[::1]:80",
        "[::ffff:127.0.0.1]:80",
        "2130706433:80",
        "0177.0.0.1:80",
        "10.0.0.1/8:80",
        "0.0.0.0/0:80",
        "1.0.0.0/7:80",
        "[2000::/3]:443",
        "x.org:0",
        "x.org:",
        "x.org:80-70",
        "x.org:080",
        "x.org:+80",
        "x.org:65536",
        ":443",
        "bücher.example",
        "a b.org",
        "-x.org",
        "http://",
        "[::1",
        "x..org",
    ];
    insta::assert_snapshot!(texts.map(refusal).join("\n"));
}

#[test]
fn a_rule_that_denies_may_be_wide_and_is_about_every_port() {
    let deny = |text: &str| Rule::parse(text, Action::Deny, "test").expect(text);
    assert_eq!(deny("gist.github.com").ports, Ports::any());
    assert_eq!(deny("10.0.0.0/8").ports, Ports::any());
    assert_eq!(deny("tcp://x.org").ports, Ports::any());
    assert_eq!(deny("x.org:443").ports, Ports::one(443));
    assert!(deny("*.zip").hosts.matches(&"a.b.zip".parse().expect("a name")));
}

#[test]
fn methods_and_paths_are_checked_and_need_requests_that_can_be_read() {
    let strings = |texts: &[&str]| texts.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
    let rule = |text: &str, methods: &[&str], paths: &[&str]| {
        allow(text).expect(text).for_requests(&strings(methods), &strings(paths)).map_err(|it| it.fault)
    };
    let made = rule("http://x.org", &["GET"], &["/a/**"]).expect("a rule");
    assert!(made.judges_requests() && made.permits_method("GET") && made.permits_path("/a/b"));
    assert!(!made.permits_method("POST") && !made.permits_method("get") && !made.permits_path("/b"));
    assert_eq!(rule("http://x.org", &["get"], &[]), Err(RuleFault::Method("get".to_owned())));
    assert_eq!(rule("http://x.org", &[], &["a"]), Err(RuleFault::Path(PathGlobError::Relative)));
    for text in ["x.org", "https://x.org", "tcp://x.org:1"] {
        assert!(matches!(rule(text, &["GET"], &[]), Err(RuleFault::NeedsInterception { .. })), "{text}");
    }
    assert!(!rule("x.org", &[], &[]).expect("a rule").judges_requests());
}

#[test]
fn wildcards_on_shared_hosting_are_known() {
    let name = |text: &str| text.parse::<crate::name::HostName>().expect("a name");
    for text in ["github.io", "amazonaws.com", "s3.amazonaws.com", "core.windows.net"] {
        assert!(is_shared_hosting(&name(text)), "{text}");
    }
    for text in ["example.org", "githubs.io", "bucket.s3.amazonaws.com"] {
        assert!(!is_shared_hosting(&name(text)), "{text}");
    }
}

/// A second matcher, written on labels from the right.
fn naive(pattern: &str, name: &str) -> bool {
    let labels = |text: &str| text.split('.').rev().map(str::to_owned).collect::<Vec<_>>();
    let (wild, base) = match (pattern.strip_prefix("*."), pattern.strip_prefix('.')) {
        (Some(base), _) => ("below", labels(base)),
        (_, Some(base)) => ("within", labels(base)),
        _ => ("exact", labels(pattern)),
    };
    let name = labels(name);
    let starts = name.len() >= base.len() && name[..base.len()] == base[..];
    match wild {
        "below" => starts && name.len() > base.len(),
        "within" => starts,
        _ => name == base,
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2000))]

    #[test]
    fn hosts_match_as_the_naive_matcher_says(
        pattern in "(\\*\\.|\\.)?[ab]{1,2}(\\.[ab]{1,2}){1,2}", name in "[ab]{1,2}(\\.[ab]{1,2}){0,4}"
    ) {
        let parsed: HostPattern = pattern.parse().expect("a pattern");
        let host: Host = name.parse().expect("a name");
        proptest::prop_assert_eq!(parsed.matches(&host), naive(&pattern, &name));
    }

    #[test]
    fn no_text_breaks_the_parser_and_what_it_prints_is_read_again(text in "\\PC{0,30}") {
        if let Ok(rule) = allow(&text) {
            let printed = format!("{}:{}", rule.hosts, rule.ports);
            let again = allow(&printed).expect("its own form");
            proptest::prop_assert_eq!((again.hosts, again.ports), (rule.hosts, rule.ports));
        }
    }
}
