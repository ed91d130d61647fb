use sandtable_sandbox::model::mount::{Content, Mount, MountTable, Pins};
use sandtable_sandbox::model::path::BoxPath;
use sandtable_sandbox::model::spec::Secrets;

use super::*;
use sandtable_testkit::fixtures::{resolved, spec};

fn inside(path: &str) -> BoxPath {
    BoxPath::new(path).expect("absolute")
}

fn subject(word: &str) -> Option<Subject> {
    Subject::of(word, Path::new("/nonexistent"), |name| name == "http_proxy")
}

#[test]
fn a_word_is_a_path_a_host_or_a_variable() {
    let path = |word: &str| Some(Subject::Path(word.into()));
    let host = |word: &str| Some(Subject::Host(word.into()));
    let variable = |word: &str| Some(Subject::Variable(word.into()));
    for word in ["/etc/passwd", "./x", "~/.ssh", "src/main.rs", ".env"] {
        assert_eq!(subject(word), path(word), "{word}");
    }
    for word in ["example.org", "localhost", "10.0.0.1", "10.0.0.1:80", "db:5432", "::1", "[::1]:80"] {
        assert_eq!(subject(word), host(word), "{word}");
    }
    assert_eq!(subject("https://user:pass@example.org:8080/x/y"), host("example.org:8080"));
    for word in ["LANG", "GH_TOKEN", "http_proxy"] {
        assert_eq!(subject(word), variable(word), "{word}");
    }
    assert_eq!(subject("unclear"), None);
    assert_eq!(subject(""), None);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(Subject::of("Cargo.toml", here, |_| false), path("Cargo.toml"));
}

#[test]
fn the_deepest_mount_decides_about_a_path() {
    let resolved = resolved(&spec());
    let why = path(&inside("/repo/src/x"), &resolved);
    assert_eq!((why.verdict, why.because.as_str()), ("write", "`/repo`: the workspace"));
    assert!(why.notes[0].contains("stays as it is") && why.origin == Some(Origin::Default));
    let why = path(&inside("/repo/.env"), &resolved);
    assert_eq!((why.verdict, why.change), ("nothing", None));
    let why = path(&inside("/home/u/.ssh"), &resolved);
    assert_eq!((why.verdict, why.origin), ("nothing", None));
    assert!(why.change.is_some_and(|text| text.contains("-v /home/u/.ssh")));
}

#[test]
fn links_of_the_sandbox_are_followed_and_masked_secrets_known() {
    let mut resolved = resolved(&spec());
    let mut mounts: Vec<Mount> = resolved.mounts.iter().cloned().collect();
    if let Content::Cow { pins, .. } = &mut mounts[0].content {
        *pins = Pins::Present;
    }
    resolved.secrets.value = Secrets::Mask;
    let link = Content::Link { to: "../repo/sub".to_owned() };
    mounts.push(Mount { target: inside("/a/b"), content: link, ..mounts[2].clone() });
    resolved.mounts = MountTable::new(mounts).expect("no contradiction");
    let why = path(&inside("/a/b/x"), &resolved);
    assert_eq!(
        why.notes,
        ["`/a/b` is a link to `../repo/sub`", path(&inside("/repo/sub/x"), &resolved).notes[0].as_str()]
    );
    let link = path(&inside("/repo/id_rsa"), &resolved);
    assert_eq!((link.verdict, link.change.as_deref()), ("nothing", Some("`--secrets warn`")));
    assert_eq!(path(&inside("/repo/notes.md"), &resolved).verdict, "write");
}

#[test]
fn a_host_is_decided_by_the_network() {
    let none = Setting::default_value(Network::None);
    assert_eq!(host("example.org", &none).verdict, "unreachable");
    let nat = Setting::default_value(Network::Nat);
    assert_eq!(
        (host("example.org", &nat).verdict, host("localhost:80", &nat).verdict),
        ("allowed", "unreachable")
    );
    let all = Setting::new(Network::Host, Origin::Flag { name: "--network".to_owned() });
    let why = host("127.0.0.1", &all);
    assert_eq!((why.verdict, why.notes.len(), why.origin), ("allowed", 1, Some(all.origin)));
}

#[test]
fn nat_promises_no_more_than_it_carries() {
    let nat = Setting::default_value(Network::Nat);
    let verdict = |name: &str| host(name, &nat).verdict;
    for name in [
        "::1",
        "[::1]:80",
        "127.0.0.1:22",
        "127.9.9.9",
        "localhost",
        "a.localhost",
        "[2001:db8::1]:443",
        "2001:db8::1",
    ] {
        assert_eq!(verdict(name), "unreachable", "{name}");
    }
    for name in ["localhost.example.org", "127.example.org:80", "192.0.2.1", "192.0.2.1:80"] {
        assert_eq!(verdict(name), "allowed", "{name}");
    }
    let why = host("192.0.2.1", &nat);
    assert!(why.because.contains("outward addresses"), "services of this machine are in reach: {why:?}");
    assert_eq!(why.notes, ["nothing was tried: whether it answers is not known"]);
}

#[test]
fn a_variable_is_passed_made_or_dropped_and_never_shown_if_secret() {
    let resolved = resolved(&spec());
    let ask = |name: &str| variable(name, &resolved, |name| name == "DEPLOY_KEY");
    assert_eq!(ask("PATH").verdict, "made");
    assert_eq!(ask("GH_TOKEN").notes, ["inside it is `[redacted]`"]);
    assert_eq!(ask("SANDBOX").verdict, "made");
    let listed = ask("LC_TIME");
    assert!(listed.verdict == "dropped" && listed.because.contains("`LC_*`"), "{listed:?}");
    let dropped = ask("DEPLOY_KEY");
    assert_eq!((dropped.verdict, dropped.notes[0].as_str()), ("dropped", "it is set here"));
}
