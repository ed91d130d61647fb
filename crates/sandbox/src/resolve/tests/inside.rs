//! What is seen inside besides the workspace: variables, exposed paths, agents' homes; and how the workspace is
//! kept apart.

use super::machines::{ann, debian, worktree};
use super::{check, host, own_mounts, resolved, spec};
use crate::facts::FileSystem;
use crate::facts::fake::Fake;
use crate::host::Host;
use crate::model::resolved::{ResolvedSpec, Secrecy};
use crate::model::secret::Secret;
use crate::model::setting::{Origin, Setting};
use crate::model::spec::{EnvRequest, EnvValue, Network, Secrets, Spec, WorkspaceMode};

fn caller() -> Host {
    host(1000, "/home/ann", "/usr/bin")
}

fn flag<T>(name: &str, value: T) -> Setting<T> {
    Setting::new(value, Origin::Flag { name: name.to_owned() })
}

fn with(change: impl FnOnce(&mut Spec)) -> Spec {
    let mut spec = spec("/home/ann/repo");
    change(&mut spec);
    spec
}

fn env(name: &str, value: EnvValue) -> Spec {
    with(|spec| spec.env.push(flag("--env", EnvRequest { name: name.to_owned(), value })))
}

fn own(spec: &Spec, machine: &Fake) -> String {
    own_of(&resolved(spec, &caller(), machine).unwrap())
}

fn own_of(found: &ResolvedSpec) -> String {
    let text = own_mounts(found);
    let lines = text.lines().filter(|line| !line.starts_with("/opt") && !line.starts_with("/etc"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A machine with settings of agents and credentials.
fn furnished() -> Fake {
    ann()
        .file("/home/ann/.claude/settings.json", "{}")
        .file("/home/ann/.claude/.credentials.json", "secret")
        .file("/home/ann/.claude.json", "{}")
        .dir("/home/ann/.config/gcloud")
        .file("/home/ann/.config/gcloud/application_default_credentials.json", "secret")
        .dir("/srv/data")
        .owner("/home/ann", 1000, 1000)
}

#[test]
fn variables_are_given_or_passed_on_and_never_shown() {
    let given = resolved(&env("A", EnvValue::Given(Secret::new("x y"))), &caller(), &ann()).unwrap();
    let variable = &given.environment["A"];
    assert_eq!((variable.value.as_str(), variable.secrecy), ("x y", Secrecy::Concealed));
    let passed = resolved(&env("GITHUB_TOKEN", EnvValue::Caller), &caller(), &ann()).unwrap();
    assert_eq!(passed.environment["GITHUB_TOKEN"].value, "secret");
    let unset = resolved(&env("NONE", EnvValue::CallerIfSet), &caller(), &ann()).unwrap();
    assert!(!unset.environment.contains_key("NONE"));
    let path = resolved(&env("PATH", EnvValue::Given(Secret::new("/opt"))), &caller(), &ann()).unwrap();
    assert_eq!(path.environment["PATH"].value, "/opt", "what is given wins over what is made");
}

#[test]
fn variables_that_are_refused() {
    insta::assert_snapshot!(check(&env("NONE", EnvValue::Caller), &caller(), &ann()), @"
    input env-unset: variable `NONE` is not set, and flag --env asks to pass it on
      set `NONE`, or give it a value: `NONE=…`
    ");
    for name in
        ["SANDBOX", "HOME", "SANDTABLE_NETWORK", "SANDBOX_FLAGS", "LLXPRT_SANDBOX", "LLXPRT_SANDBOX_IMAGE"]
    {
        let text = check(&env(name, EnvValue::Given(Secret::new("x"))), &caller(), &ann());
        assert!(
            text.starts_with(&format!("input env-reserved: variable `{name}` cannot be given")),
            "{text}"
        );
    }
    let odd = Host { odd_variables: vec!["ODD".to_owned()], ..caller() };
    let text = check(&env("ODD", EnvValue::Caller), &odd, &ann());
    assert!(text.starts_with("input env-not-text"), "{text}");
}

#[test]
fn exposed_paths_and_bundles_are_read_only_at_their_places() {
    let expose = |what: &str| with(|spec| spec.expose.push(flag("--expose", what.into())));
    insta::assert_snapshot!(own(&expose("/srv/data"), &furnished()), @"
    /home/ann: private home
    /home/ann/.gitconfig: read caller
    /home/ann/repo: cow workspace
    /srv/data: read caller
    ");
    insta::assert_snapshot!(own(&expose("gcloud"), &furnished()), @"
    /home/ann: private home
    /home/ann/.config/gcloud: read caller
    /home/ann/.gitconfig: read caller
    /home/ann/repo: cow workspace
    ! exposed-credentials: `gcloud` is shown to the sandbox: anyone who reads it can act as you in every Google Cloud project of yours until you revoke it
    ");
    insta::assert_snapshot!(check(&expose("gclod"), &caller(), &furnished()), @"
    input expose-unknown: there is nothing called `gclod` to expose
      one of gcloud, adc, aws, azure, kube, docker-config, gh, npmrc, or a path with a slash in it: `./gclod`
    ");
    insta::assert_snapshot!(check(&expose("aws"), &caller(), &furnished()), @"input expose-nothing: nothing of `aws` is here to expose: `/home/ann/.aws`");
    for path in ["/home/ann", "/run/docker.sock", "/home/ann/.local/share/sandtable"] {
        let machine = furnished().socket("/run/docker.sock").dir("/home/ann/.local/share/sandtable");
        assert!(check(&expose(path), &caller(), &machine).starts_with("input mount-source"), "{path}");
    }
}

#[test]
fn a_bundle_follows_the_variable_that_names_its_file() {
    let spec = with(|spec| spec.expose.push(flag("--expose", "adc".into())));
    let mut host = caller();
    host.environment.insert("GOOGLE_APPLICATION_CREDENTIALS".to_owned(), "/srv/key.json".to_owned());
    let machine = ann().file("/srv/key.json", "secret");
    let found = resolved(&spec, &host, &machine).unwrap();
    assert_eq!(found.environment["GOOGLE_APPLICATION_CREDENTIALS"].value, "/srv/key.json");
    assert!(own_mounts(&found).contains("/srv/key.json: read caller"));
}

#[test]
fn an_agents_home_is_a_private_view() {
    let agent = |what: &str| with(|spec| spec.agent_homes.push(flag("--agent-home", what.into())));
    insta::assert_snapshot!(own(&agent("claude"), &furnished()), @"
    /home/ann: private home
    /home/ann/.claude: cow agent-0
    /home/ann/.gitconfig: read caller
    /home/ann/repo: cow workspace
    ! agent-home: the settings of `claude` are shown to the sandbox on purpose: `~/.claude`, `~/.claude.json`; among them its credentials: `~/.claude/.credentials.json`, `~/.claude.json`
    ");
    let seeds = resolved(&agent("claude"), &caller(), &furnished()).unwrap().seeds;
    assert_eq!(seeds.len(), 1);
    assert_eq!(
        (seeds[0].source.to_string().as_str(), seeds[0].place.to_str()),
        ("/home/ann/.claude.json", Some(".claude.json"))
    );
    insta::assert_snapshot!(own(&agent("codex"), &furnished()), @"
    /home/ann: private home
    /home/ann/.gitconfig: read caller
    /home/ann/repo: cow workspace
    ! agent-home-empty: `codex` has no settings here; it starts with none
    ");
    insta::assert_snapshot!(check(&agent("clod"), &caller(), &furnished()), @"
    input agent-unknown: no agent called `clod` is known
      one of claude, codex, gemini, llxprt, qwen, opencode, aider, goose, amp, or a path with a slash in it: `./clod`
    ");
    let path = own(&agent("/srv/data"), &furnished());
    assert!(path.contains("/srv/data: cow agent-0"), "{path}");
    let outside = check(&agent("/srv/file"), &caller(), &furnished().file("/srv/file", ""));
    assert!(outside.starts_with("input agent-home: `/srv/file` cannot be an agent's home"), "{outside}");
    let linked = ann().dir("/srv/dots/claude").link("/home/ann/.claude", "/srv/dots/claude");
    assert!(own(&agent("claude"), &linked).contains("! agent-home-outside"));
}

#[test]
fn where_no_overlay_can_be_there_is_a_copy_and_the_reason() {
    let submounts = ann().mount("/home/ann/repo/mnt", "tmpfs");
    let found = resolved(&spec("/home/ann/repo"), &caller(), &submounts).unwrap();
    insta::assert_snapshot!(own_of(&found), @"
    /home/ann: private home
    /home/ann/.gitconfig: read caller
    /home/ann/repo: copy workspace
    ! workspace-copied: the sandbox works on a copy of `/home/ann/repo`, made at its start: an overlay cannot show what is mounted below `/home/ann/repo`: `/home/ann/repo/mnt`
    ");
    assert_eq!(found.mode.value, WorkspaceMode::Copy);
    assert_eq!(
        found.mode.reason,
        "auto: an overlay cannot show what is mounted below `/home/ann/repo`: `/home/ann/repo/mnt`"
    );
    let nfs = ann()
        .dir("/home/ann/.local/share")
        .system("/home/ann/.local/share", FileSystem { magic: 0x6969, read_only: false });
    let agent = with(|spec| spec.agent_homes.push(flag("--agent-home", "/home/ann/bin".into())));
    let text = own(&agent, &nfs);
    assert!(
        text.contains("/home/ann/repo: copy workspace") && text.contains("/home/ann/bin: copy agent-0"),
        "{text}"
    );
    let plain = resolved(&spec("/home/ann/repo"), &caller(), &ann()).unwrap();
    assert_eq!(plain.mode.value, WorkspaceMode::Overlay);
}

#[test]
fn modes_that_are_asked_for() {
    let mode = |mode| with(|spec| spec.mode = flag("--mode", mode));
    let copied = resolved(&mode(WorkspaceMode::Copy), &caller(), &ann()).unwrap();
    assert_eq!(copied.mode.reason, "asked for by flag --mode");
    assert!(own_mounts(&copied).contains("/home/ann/repo: copy workspace"));
    let live = own(&mode(WorkspaceMode::Live), &ann());
    assert!(live.contains("/home/ann/repo: write caller") && live.contains("! source-writable"), "{live}");
    let mut tree = mode(WorkspaceMode::Copy);
    tree.directory.value = "/home/ann/tree".into();
    let both = own_mounts(&resolved(&tree, &caller(), &worktree()).unwrap());
    assert!(
        both.contains("/home/ann/tree: copy workspace") && both.contains("/home/ann/repo/.git: copy git"),
        "{both}"
    );
    let mut masked = mode(WorkspaceMode::Live);
    masked.secrets = Setting::default_value(Secrets::Mask);
    insta::assert_snapshot!(check(&masked, &caller(), &ann()), @r#"
    input live-hides: with mode `live` nothing of the source can be hidden, and `secrets = "mask"` asks for it
      use `--mode overlay` or `--mode copy`
    "#);
}

#[test]
fn a_way_out_has_a_resolver_of_its_own() {
    let spec = with(|spec| spec.network = flag("--network", Network::Nat));
    let machine = ann().file("/usr/bin/slirp4netns", "").file("/dev/net/tun", "").mode("/dev/net/tun", 0o666);
    let found = resolved(&spec, &caller(), &machine).unwrap();
    assert_eq!(found.network_helper.unwrap().program.to_string(), "/usr/bin/slirp4netns");
    let text = check(&spec, &caller(), &machine);
    assert!(text.contains("/run/systemd/resolve/stub-resolv.conf: text\nnameserver 10.0.2.3"), "{text}");
    let plain = debian(1000)
        .file("/usr/bin/slirp4netns", "")
        .file("/dev/net/tun", "")
        .mode("/dev/net/tun", 0o666)
        .file("/etc/resolv.conf", "nameserver 192.0.2.1")
        .dir("/home/ann/repo");
    let text = check(&spec, &caller(), &plain);
    assert!(text.contains("/etc/resolv.conf: text\nnameserver 10.0.2.3"), "{text}");
}
