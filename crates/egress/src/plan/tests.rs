use super::*;

fn written(texts: &[&str]) -> Vec<Written> {
    texts.iter().enumerate().map(|(index, text)| Written::new(text, &format!("line {}", index + 1))).collect()
}

fn sample() -> Settings {
    let requests = vec![RequestRule {
        host: Written {
            why: Some("read issues".to_owned()),
            ..Written::new("http://issues.example.org", "file")
        },
        methods: vec!["GET".to_owned(), "HEAD".to_owned()],
        paths: vec!["/repos/me/**".to_owned()],
    }];
    Settings {
        allow: written(&[
            "github.com",
            "*.example.org:8443",
            "ssh://git@github.com",
            "tcp://10.1.2.3:5432",
            "@anthropic",
        ]),
        deny: written(&["gist.github.com", "*.zip"]),
        requests,
        private: written(&["10.20.0.0/16"]),
        ..Settings::default()
    }
}

#[test]
fn a_plan_is_printed() {
    let plan = compile(&sample(), &Surroundings::default()).expect("a plan");
    insta::assert_snapshot!(plan.to_string());
    let nothing = compile(&Settings::default(), &Surroundings::default()).expect("a plan");
    assert_eq!(nothing.to_string(), "network: filtered (all ports)\n  nothing is allowed\n");
}

#[test]
fn a_plan_as_json_is_the_plan() {
    let plan = compile(&sample(), &Surroundings::default()).expect("a plan");
    insta::assert_snapshot!(serde_json::to_string_pretty(&plan).expect("a plan is JSON"));
    assert_eq!(GatePlan::from_json(&plan.to_json()).expect("its own form"), plan);
}

#[test]
fn another_form_of_a_plan_is_refused() {
    let plan = compile(&sample(), &Surroundings::default()).expect("a plan");
    let other = |from: &str, to: &str| {
        let text = plan.to_json();
        assert!(text.contains(from), "{from}");
        GatePlan::from_json(&text.replacen(from, to, 1)).expect_err(to).to_string()
    };
    assert_eq!(
        other("\"version\":1", "\"version\":2"),
        "the plan has version 2, this gate executes version 1"
    );
    assert!(other("28.64.0.0/12", "28.64.0.0/30").contains("too small"));
    assert!(other("\"capture\"", "\"more\":1,\"capture\"").contains("not valid"));
    // What is read is checked like what is written by hand.
    assert!(other("*.example.org", "*.*.org").contains("not valid"));
    assert!(other("/repos/me/**", "/repos/../**").contains("not valid"));
}

#[test]
fn every_wrong_rule_is_reported() {
    let settings = Settings {
        allow: written(&["*.com", "github.com", "@nobody", "@npm"]),
        deny: written(&["*"]),
        private: written(&["127.0.0.0/8", "8.8.8.0/24", "10.0.0.1/8", "fe80::/10"]),
        ..Settings::default()
    };
    let faults = compile(&settings, &Surroundings::default()).expect_err("faults");
    let shown: Vec<String> = faults.iter().map(|it| format!("{it}: {}", it.fault)).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_rule_for_many_ports_needs_every_port() {
    let settings = |text| Settings { allow: written(&[text]), ..Settings::default() };
    for capture in [Capture::ListedPorts, Capture::Names] {
        let machine = Surroundings { capture, ..Surroundings::default() };
        let faults = compile(&settings("github.com:*"), &machine).expect_err("too many ports");
        assert_eq!(faults[0].fault, crate::rule::RuleFault::NeedsAllPorts);
        compile(&settings("github.com:8000-8010"), &machine).expect("a few ports");
    }
}

#[test]
fn a_wildcard_on_shared_hosting_is_a_warning() {
    let settings = Settings { allow: written(&["*.github.io", ".example.org"]), ..Settings::default() };
    let plan = compile(&settings, &Surroundings::default()).expect("a plan");
    assert_eq!(plan.warnings.iter().map(|it| it.code.as_str()).collect::<Vec<_>>(), ["broad-rule"]);
    assert!(plan.to_string().contains("`*.github.io` (line 1)"));
}
