//! Seatbelt without a Mac: what is lowered for one is read back by an evaluator that knows nothing of the lowering,
//! and must say of every path what the table of mounts says.

use std::collections::BTreeMap;

use sandtable_sandbox::engine::Place;
use sandtable_sandbox::engine::seatbelt::{PROGRAM, SeatbeltPlan, lower};
use sandtable_sandbox::model::container::ContainerRequest;
use sandtable_sandbox::model::diagnosis::Diagnose as _;
use sandtable_sandbox::model::hide::HidePattern;
use sandtable_sandbox::model::limits::Limits;
use sandtable_sandbox::model::mount::{Access, Content, HostAccess, Mount, MountTable, Ownership};
use sandtable_sandbox::model::path::{BoxPath, HostPath};
use sandtable_sandbox::model::profile::BuiltIn;
use sandtable_sandbox::model::resolved::{EngineName, ResolvedSpec};
use sandtable_sandbox::model::seatbelt::SeatbeltProfile;
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::{
    Base, EngineChoice, GitConfig, Lifetime, MountAccess, MountRequest, Network, Secrets, SourceGuard, Spec,
    SshAgent, Strictness, WorkspaceMode,
};
use sandtable_sandbox::resolve::{ResolveError, resolve};
use sandtable_testkit::conformance::cases;
use sandtable_testkit::mac::{HOME, Mac};
use sandtable_testkit::sbpl::{Profile, Verdict};

mod tables;

const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ttys003"];
/// What programs do with files, and how the profile calls it.
const OPERATIONS: [&str; 3] = ["file-read-data", "file-write-data", "process-exec"];

fn spec() -> Spec {
    Spec {
        engine: Setting::default_value(EngineChoice::Auto),
        image: None,
        container: ContainerRequest::default(),
        seatbelt_profile: None,
        profile: Setting::default_value(BuiltIn::None.into()),
        directory: Setting::default_value("/Users/ann/repo/src".into()),
        name: None,
        mode: Setting::default_value(WorkspaceMode::Auto),
        base: Setting::default_value(Base::Source),
        mounts: Vec::new(),
        expose: Vec::new(),
        tools: Vec::new(),
        hide: Vec::<Setting<HidePattern>>::new(),
        agent_homes: Vec::new(),
        env: Vec::new(),
        network: Setting::default_value(Network::None),
        limits: Limits::default(),
        git_config: Setting::default_value(GitConfig::Literal),
        secrets: Setting::default_value(Secrets::Warn),
        source_guard: Setting::default_value(SourceGuard::Refuse),
        strictness: Setting::default_value(Strictness::Strict),
        ssh_agent: Setting::default_value(SshAgent::Off),
        lifetime: Setting::default_value(Lifetime::Keep),
    }
}

fn flag<T>(value: T) -> Setting<T> {
    Setting::new(value, Origin::Flag { name: "--test".to_owned() })
}

fn resolved(spec: &Spec) -> Result<ResolvedSpec, ResolveError> {
    let mac = Mac::default();
    resolve(spec, &mac.host(), &mac)
}

fn place() -> Place {
    let directory = HostPath::new("/Users/ann/.local/share/sandtable/sandboxes/try").unwrap();
    Place { directory, name: "try".parse().unwrap(), id_base: None, pid: 7, started: 0 }
}

fn planned(spec: &Spec) -> SeatbeltPlan {
    lower(&resolved(spec).unwrap(), &place()).unwrap()
}

/// The profile as the kernel would get it: from the words of the command line, and nothing else.
fn profile(plan: &SeatbeltPlan) -> Profile {
    let argv = plan.argv();
    assert_eq!((argv[0].as_str(), argv[1].as_str(), argv.last().unwrap().as_str()), (PROGRAM, "-p", "--"));
    let parameters = argv[3..argv.len() - 1].chunks(2).map(|pair| {
        assert_eq!(pair[0], "-D");
        let (name, value) = pair[1].split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    });
    let parameters: BTreeMap<String, String> = parameters.collect();
    Profile::new(&argv[2], &parameters).unwrap()
}

fn inside(path: &str) -> BoxPath {
    BoxPath::new(path).unwrap()
}

/// What the table says of an operation; what no table can say is the profile's own.
fn expected(table: &MountTable, path: &BoxPath, outside: &HostPath, operation: &str) -> Verdict {
    let text = path.as_path().to_str().unwrap();
    let (read, write) = (operation == "file-read-data", operation == "file-write-data");
    let allowed = match table.at(path).map(|mount| &mount.content) {
        _ if text == "/" => read,
        _ if write && is_git_configuration(outside) => false,
        Some(Content::Devices) => DEVICES.contains(&text) && operation != "process-exec",
        _ => match table.access(path) {
            Access::Nothing => false,
            Access::Read => !write,
            Access::Write => true,
        },
    };
    if allowed { Verdict::Allow } else { Verdict::Deny }
}

fn is_git_configuration(path: &HostPath) -> bool {
    [".gitconfig", ".config/git"].iter().any(|name| path.as_path().starts_with(format!("{HOME}/{name}")))
}

/// The first path and operation of which table and profile say different things.
fn disagreement(table: &MountTable, plan: &SeatbeltPlan, paths: &[String]) -> Option<String> {
    let profile = profile(plan);
    for path in paths {
        for operation in OPERATIONS {
            let outside = plan.outside(&inside(path));
            let (wanted, got) = (
                expected(table, &inside(path), &outside, operation),
                profile.verdict(operation, outside.as_path().to_str().unwrap()),
            );
            if wanted != got {
                return Some(format!(
                    "{operation} {path} (at {outside}): {got:?}, the table says {wanted:?}"
                ));
            }
        }
    }
    None
}

/// Every path that a case of the conformance suite speaks of, on the Mac.
fn conformance_paths() -> Vec<String> {
    let filled = |arg: &&str| {
        arg.replace("{home}", HOME).replace("{source}", "/Users/ann/repo").replace("{root}", "/Users")
    };
    let words = cases::ALL.iter().flat_map(|case| case.args).map(filled);
    let mut paths: Vec<String> = words.filter(|word| word.starts_with('/') && !word.contains('{')).collect();
    let more = [
        "/",
        "/Users",
        HOME,
        "/Users/ann/.gitconfig",
        "/Users/ann/.config/git/config",
        "/Users/ann/.ssh/id_ed25519",
        "/Users/ann/.git-credentials",
        "/Users/ann/.cargo/bin/cargo",
        "/Users/ann/.cargo/credentials.toml",
        "/Users/ann/.local/share/sandtable/sandboxes",
        "/Users/ann/repo",
        "/Users/ann/repo/README",
        "/Users/ann/repository",
        "/Users/bob/secret",
        "/private/tmp",
        "/private/tmp/x",
        "/private/etc/hosts",
        "/private/etc/ssh/ssh_host_rsa_key",
        "/private/etc/master.passwd",
        "/Library/Keychains/System.keychain",
        "/System/Library/x",
        "/System/Volumes/Data/Users/ann/.ssh",
        "/usr/bin/env",
        "/bin/zsh",
        "/opt/homebrew/bin/git",
        "/dev/null",
        "/dev/disk0",
        "/dev/ttys003",
        "/private/var/run/docker.sock",
        "/Volumes/Backup",
        "/private/var/folders/x/y/T/z",
    ];
    paths.extend(more.map(str::to_owned));
    // The kernel compares paths without links.
    for path in &mut paths {
        if ["/etc", "/tmp", "/var"].iter().any(|link| std::path::Path::new(path).starts_with(link)) {
            path.insert_str(0, "/private");
        }
        while path.len() > 1 && path.ends_with('/') {
            path.pop();
        }
    }
    paths.retain(|path| BoxPath::new(path).is_ok());
    assert!(paths.len() > 60, "{}", paths.len());
    paths
}

#[test]
fn a_profile_says_what_the_table_says() {
    let paths = conformance_paths();
    for name in SeatbeltProfile::ALL {
        for mode in [WorkspaceMode::Auto, WorkspaceMode::Live] {
            let mut resolved = resolved(&Spec { mode: flag(mode), ..spec() }).unwrap();
            // A proxy is not known yet, but its profiles are.
            resolved.seatbelt = Some(*name);
            let plan = lower(&resolved, &place()).unwrap();
            assert_eq!(disagreement(&resolved.mounts, &plan, &paths), None, "{name} {mode}");
        }
    }
}

#[test]
fn what_is_the_sandboxs_own_is_closed_at_its_old_place() {
    let plan = planned(&spec());
    let profile = profile(&plan);
    for path in [
        HOME,
        "/Users/ann/notes.txt",
        "/Users/ann/repo/README",
        "/private/tmp/x",
        "/Users/ann/.ssh/id_ed25519",
    ] {
        for operation in OPERATIONS {
            assert_eq!(profile.verdict(operation, path), Verdict::Deny, "{operation} {path}");
        }
    }
    // Ancestors can be passed and looked at, not listed.
    assert_eq!(profile.verdict("file-read-metadata", "/Users"), Verdict::Allow);
    assert_eq!(profile.verdict("file-read-data", "/Users"), Verdict::Deny);
    let state = "/Users/ann/.local/share/sandtable/sandboxes";
    assert_eq!(plan.directory.to_string(), format!("{state}/try/copies/workspace/src"));
    assert_eq!(plan.environment["HOME"].value, format!("{state}/try/home"));
    assert!(plan.environment["TMPDIR"].value.starts_with(&format!("{state}/try/scratch-")));
    assert!(plan.environment["PATH"].value.starts_with("/opt/homebrew/bin:/Users/ann/.cargo/bin:"));
    assert!(plan.links.iter().any(|link| link.at.to_string() == format!("{state}/try/home/.gitconfig")));
    assert_eq!(profile.verdict("file-read-data", &format!("{state}/other/home/x")), Verdict::Deny);
}

#[test]
fn sockets_of_engines_are_closed_and_gits_configuration_cannot_be_written() {
    let sockets = [
        "/private/var/run/docker.sock",
        "/Users/ann/.docker/run/docker.sock",
        "/Users/ann/.colima/default/docker.sock",
        "/Users/ann/.local/share/containers/podman/machine/podman.sock",
        "/Users/ann/.orbstack/run/docker.sock",
        "/Users/ann/.lima/x/sock/docker.sock",
        "/Users/ann/.rd/docker.sock",
        "/private/var/folders/ab/cd/T/podman/podman-machine-default-api.sock",
        "/Users/ann/Library/Containers/com.docker.docker/Data/x.sock",
    ];
    for name in SeatbeltProfile::ALL {
        // Even with the whole home directory as the workspace.
        let live = Spec {
            mode: flag(WorkspaceMode::Live),
            directory: flag(HOME.into()),
            source_guard: flag(SourceGuard::Allow),
            ..spec()
        };
        let mac = Mac::default();
        let host = sandtable_sandbox::host::Host {
            data: HostPath::new("/Users/Shared/sandtable").unwrap(),
            ..mac.host()
        };
        let mut resolved = resolve(&live, &host, &mac).unwrap();
        resolved.seatbelt = Some(*name);
        let plan = lower(&resolved, &place()).unwrap();
        let profile = profile(&plan);
        for socket in sockets {
            assert_eq!(profile.verdict("network-outbound", socket), Verdict::Deny, "{name} {socket}");
        }
        assert_eq!(profile.verdict("file-write-data", "/Users/ann/notes.txt"), Verdict::Allow);
        for path in ["/Users/ann/.gitconfig", "/Users/ann/.config/git/config"] {
            assert_eq!(profile.verdict("file-write-create", path), Verdict::Deny, "{name} {path}");
        }
        let open = matches!(name, SeatbeltProfile::PermissiveOpen | SeatbeltProfile::RestrictiveOpen);
        let outside = profile.verdict("network-outbound", "/private/var/run/mDNSResponder");
        assert_eq!(outside == Verdict::Allow, open, "{name}");
    }
}

#[test]
fn what_seatbelt_cannot_do_is_refused() {
    let mount = |source: &str, target: &str, access| {
        flag(MountRequest { source: source.into(), target: Some(target.into()), access })
    };
    let limits = |limits: Limits| Spec { limits, ..spec() };
    let cases: Vec<(&str, Spec)> = vec![
        ("memory", limits(Limits { memory: Some(flag("1g".parse().unwrap())), ..Limits::default() })),
        ("processes", limits(Limits { pids: Some(flag("64".parse().unwrap())), ..Limits::default() })),
        ("processors", limits(Limits { cpus: Some(flag("2".parse().unwrap())), ..Limits::default() })),
        ("`nat`", Spec { network: flag(Network::Nat), ..spec() }),
        ("not an image", Spec { image: Some(flag("/Users/ann/data".parse().unwrap())), ..spec() }),
        ("copy-on-write", Spec { mode: flag(WorkspaceMode::Overlay), ..spec() }),
        (
            "cannot be at `/mnt/data`",
            Spec { mounts: vec![mount("/Users/ann/data", "/mnt/data", MountAccess::Read)], ..spec() },
        ),
        (
            "proxy command",
            Spec { seatbelt_profile: Some(flag(SeatbeltProfile::PermissiveProxied)), ..spec() },
        ),
        (
            "contradict",
            Spec {
                seatbelt_profile: Some(flag(SeatbeltProfile::PermissiveOpen)),
                network: flag(Network::None),
                ..spec()
            },
        ),
    ];
    for (words, spec) in cases {
        let error = resolved(&spec).unwrap_err();
        assert!(matches!(error, ResolveError::Unsupported(_)), "{words}: {error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert!(error.remedy().is_some(), "{words}");
    }
    let wide = Spec { mounts: vec![mount("/Users/ann/data", "/Users/ann/data", MountAccess::Cow)], ..spec() };
    let copied = resolved(&wide).unwrap();
    assert!(matches!(copied.mounts.at(&inside("/Users/ann/data")).unwrap().content, Content::Copy { .. }));
    assert_eq!(copied.engine, EngineName::Seatbelt);
    let open =
        resolved(&Spec { seatbelt_profile: Some(flag(SeatbeltProfile::RestrictiveOpen)), ..spec() }).unwrap();
    assert_eq!((open.network.value, open.seatbelt), (Network::Host, Some(SeatbeltProfile::RestrictiveOpen)));
}

#[test]
fn no_path_becomes_part_of_the_rules() {
    let odd = "/Users/ann/a\"b\\c\nd)(allow default);#=é";
    let mount = |target: &str, content| Mount {
        target: inside(target),
        content,
        reason: "odd \") (allow default)".to_owned(),
        origin: Origin::Default,
    };
    let mut resolved = resolved(&spec()).unwrap();
    let usual = lower(
        &with(&resolved, vec![mount("/Users/ann/plain", host("/Users/ann/plain", HostAccess::Write))]),
        &place(),
    )
    .unwrap();
    resolved = with(&resolved, vec![mount(odd, host(odd, HostAccess::Write))]);
    let plan = lower(&resolved, &place()).unwrap();
    assert_eq!(plan.profile, usual.profile, "the rules depend on what a path is called");
    assert_eq!(
        disagreement(
            &resolved.mounts,
            &plan,
            &[odd.to_owned(), format!("{odd}/x"), "/Users/ann/a".to_owned()]
        ),
        None
    );
}

#[test]
fn links_of_the_root_are_resolved() {
    let resolved = resolved(&spec()).unwrap();
    for (written, real) in [
        ("/tmp/a", "/private/tmp/a"),
        ("/var/b", "/private/var/b"),
        ("/etc/c", "/private/etc/c"),
        ("/tmpfs", "/tmpfs"),
    ] {
        let mount = Mount {
            target: inside(written),
            content: host(written, HostAccess::Read),
            reason: "a test".to_owned(),
            origin: Origin::Default,
        };
        let plan = lower(&with(&resolved, vec![mount]), &place()).unwrap();
        assert_eq!(profile(&plan).verdict("file-read-data", real), Verdict::Allow, "{written}");
        assert_eq!(plan.outside(&inside(written)).to_string(), real);
    }
}

/// macOS keeps the agent's socket among temporary files, which are the sandbox's own otherwise.
#[test]
fn the_agents_socket_can_be_reached_and_no_other() {
    let socket = "/private/tmp/com.apple.launchd.x/Listeners";
    let mount = |target: &str, content| Mount {
        target: inside(target),
        content,
        reason: "a test".to_owned(),
        origin: Origin::Default,
    };
    for name in SeatbeltProfile::ALL {
        let mounts = vec![mount("/private/tmp", Content::Scratch { size: 0 }), mount(socket, Content::Agent)];
        let mut resolved = with(&resolved(&spec()).unwrap(), mounts);
        resolved.seatbelt = Some(*name);
        let plan = lower(&resolved, &place()).unwrap();
        assert_eq!(
            disagreement(&resolved.mounts, &plan, &[socket.to_owned(), "/private/tmp/x".to_owned()]),
            None
        );
        let profile = profile(&plan);
        assert_eq!(profile.verdict("network-outbound", socket), Verdict::Allow, "{name}");
        let open = matches!(name, SeatbeltProfile::PermissiveOpen | SeatbeltProfile::RestrictiveOpen);
        let other = profile.verdict("network-outbound", "/private/tmp/com.apple.launchd.y/Listeners");
        assert_eq!(other == Verdict::Allow, open, "{name}");
    }
}

/// Seatbelt is macOS's; on any other machine the engine is refused, as something that the machine lacks.
#[test]
fn elsewhere_it_is_refused_with_125() {
    let Some(env) = sandtable_testkit::env::TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let run =
        |options: &[&str]| env.sandtable().directory(&source).arg("run").args(options).args(["--", "true"]);
    let ended = run(&["--engine", "seatbelt"]).ended();
    assert_eq!(ended.code, 125, "{}", ended.stderr);
    assert!(ended.stderr.contains("macOS only") && ended.stderr.contains("try:"), "{}", ended.stderr);
    let ended = run(&[]).variable("SEATBELT_PROFILE", "none").ended();
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("SEATBELT_PROFILE") && ended.stderr.contains("restrictive-closed"),
        "{}",
        ended.stderr
    );
    let _ran = run(&["--rm"]).variable("SEATBELT_PROFILE", "restrictive-closed").ended().expect_code(0);
}

/// The whole plan for two requests, as it would be printed.
#[test]
fn plans_are_as_they_were() {
    let open = Spec {
        seatbelt_profile: Some(flag(SeatbeltProfile::RestrictiveOpen)),
        mode: flag(WorkspaceMode::Live),
        mounts: vec![flag(MountRequest {
            source: "/Users/ann/data".into(),
            target: None,
            access: MountAccess::Read,
        })],
        ..spec()
    };
    for (name, spec) in [("permissive-closed", spec()), ("restrictive-open", open)] {
        let text = sandtable_sandbox::engine::Plan::Seatbelt(planned(&spec)).to_string();
        let path = sandtable_testkit::require::workspace()
            .join(format!("crates/testkit/golden/seatbelt-{name}.txt"));
        let golden = fs_err::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, golden, "{} is not what is planned now", path.display());
    }
}

fn host(path: &str, access: HostAccess) -> Content {
    Content::Host {
        source: HostPath::new(path).unwrap(),
        access,
        ownership: Ownership::Caller,
        identity: None,
    }
}

fn with(resolved: &ResolvedSpec, mounts: Vec<Mount>) -> ResolvedSpec {
    ResolvedSpec { mounts: MountTable::new(mounts).unwrap(), ..resolved.clone() }
}
