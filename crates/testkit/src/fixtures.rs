//! A request and what it means on some machine, for the tests of the surfaces.

use std::path::PathBuf;

use sandtable_sandbox::model::agent::Agent;
use sandtable_sandbox::model::container::ContainerRequest;
use sandtable_sandbox::model::layer::LayerName;
use sandtable_sandbox::model::limits::Limits;
use sandtable_sandbox::model::mount::{Content, Mount, MountTable, Pins};
use sandtable_sandbox::model::path::{BoxPath, HostPath};
use sandtable_sandbox::model::platform::Platform;
use sandtable_sandbox::model::profile::BuiltIn;
use sandtable_sandbox::model::resolved::{
    EngineName, HelperKind, Identity, Mode, NetworkHelper, RepositoryConfig, ResolvedSpec, Seed, Source,
    SourceKind, Variable, Warning,
};
use sandtable_sandbox::model::secret::Secret;
use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::{
    Base, EngineChoice, EnvRequest, EnvValue, GitConfig, Lifetime, Network, Secrets, SourceGuard, Spec,
    SshAgent, Strictness, WorkspaceMode,
};

/// A request with something from every layer.
pub fn spec() -> Spec {
    let user = Origin::UserFile { path: "/home/u/.config/sandtable/config.toml".into() };
    Spec {
        engine: Setting::default_value(EngineChoice::Auto),
        image: None,
        container: ContainerRequest::default(),
        seatbelt_profile: None,
        profile: Setting::new(
            BuiltIn::Safe.into(),
            Origin::Variable { name: "SANDTABLE_PROFILE".to_owned() },
        ),
        directory: Setting::default_value(PathBuf::from("/repo/sub")),
        name: Some(Setting::new("try".parse().expect("a name"), Origin::Flag { name: "--name".to_owned() })),
        mode: Setting::default_value(WorkspaceMode::Auto),
        base: Setting::default_value(Base::Source),
        mounts: vec![],
        expose: vec![],
        tools: vec![],
        hide: vec![],
        agent_homes: vec![],
        env: vec![Setting::new(
            EnvRequest { name: "PASSED".to_owned(), value: EnvValue::Given(Secret::new("hunter2")) },
            Origin::Flag { name: "--env".to_owned() },
        )],
        network: Setting::new(Network::Host, Origin::Flag { name: "--network".to_owned() }),
        limits: limits(),
        ssh_agent: Setting::default_value(SshAgent::Off),
        git_config: Setting::new(GitConfig::Sanitized, Origin::Profile { name: "safe".to_owned() }),
        secrets: Setting::new(
            Secrets::Mask,
            Origin::ProjectFile { path: "/re\u{1b}po/.sandtable.toml".into() },
        ),
        source_guard: Setting::default_value(SourceGuard::Refuse),
        strictness: Setting::default_value(Strictness::Strict),
        lifetime: Setting::new(Lifetime::Discard, user),
    }
}

fn limits() -> Limits {
    let flag = |name: &str| Origin::Flag { name: name.to_owned() };
    let profile = || Origin::Profile { name: "safe".to_owned() };
    Limits {
        cpus: Some(Setting::new("0.5".parse().expect("half a processor"), flag("--cpus"))),
        memory: Some(Setting::new("4g".parse().expect("an amount"), profile())),
        pids: None,
        disk: None,
        timeout: Some(Setting::new("90".parse().expect("seconds"), flag("--timeout"))),
    }
}

/// What that request means on some machine.
pub fn resolved(spec: &Spec) -> ResolvedSpec {
    let mount = |target: &str, content, reason: &str| Mount {
        target: BoxPath::new(target).expect("absolute"),
        content,
        reason: reason.to_owned(),
        origin: Origin::Default,
    };
    let root = HostPath::new("/repo").expect("absolute");
    let cow =
        Content::Cow { source: root.clone(), layer: LayerName::Mount(0), pins: Pins::None, identity: None };
    let variable = |value: &str| Variable::open(value, Origin::Default);
    let flag = |name: &str| Origin::Flag { name: name.to_owned() };
    ResolvedSpec {
        repository_config: RepositoryConfig::default(),
        engine: EngineName::Native,
        engine_reason: "the only one here".to_owned(),
        platform: Platform::default(),
        image: None,
        container: None,
        seatbelt: None,
        source: Source { root, kind: SourceKind::Git },
        mode: Mode { value: WorkspaceMode::Overlay, reason: "auto: it can be".to_owned() },
        base: spec.base.clone(),
        identity: Identity { uid: 1000, gid: 1000 },
        home: BoxPath::new("/home/u").expect("absolute"),
        directory: BoxPath::new("/repo/sub").expect("absolute"),
        mounts: MountTable::new(vec![
            mount("/repo", cow, "the workspace"),
            mount("/repo/.env", Content::Masked, "its name says secret"),
            mount("/tmp", Content::Scratch { size: 1 }, "private"),
        ])
        .expect("nothing contradicts itself"),
        tools: vec![],
        seeds: vec![Seed {
            source: HostPath::new("/home/u/.claude.json").expect("absolute"),
            place: ".claude.json".into(),
            identity: None,
            reason: "claude: its settings".to_owned(),
        }],
        hide: vec![Setting::new("*.key".parse().expect("a pattern"), flag("--hide"))],
        environment: [
            ("PASSED".to_owned(), Variable::concealed("hunter2", flag("--env"))),
            ("PATH".to_owned(), variable("/usr/bin:/bin")),
            ("GH_TOKEN".to_owned(), variable("ghp_123")),
            ("PS1".to_owned(), variable("\u{1b}[31m$ ")),
        ]
        .into(),
        network: spec.network.clone(),
        network_helper: Some(NetworkHelper {
            kind: HelperKind::Slirp4netns,
            program: HostPath::new("/usr/bin/slirp4netns").expect("absolute"),
        }),
        limits: spec.limits.clone(),
        systemd: None,
        ssh_agent: Agent::default(),
        secrets: spec.secrets.clone(),
        strictness: spec.strictness.clone(),
        lifetime: spec.lifetime.clone(),
        warnings: vec![Warning::new("nested", "this runs inside another sandbox")],
    }
}
