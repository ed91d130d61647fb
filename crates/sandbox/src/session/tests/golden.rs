//! Golden plans: what each container engine is told on each kind of machine, from the request to the last
//! word. The machines exist on paper, so those with macOS are tested everywhere.

use crate::engine::{Place, engine};
use crate::facts::fake::Fake;
use crate::host::Host;
use crate::model::container::{ContainerRequest, FlagGuard};
use crate::model::diagnosis::Diagnose as _;
use crate::model::path::HostPath;
use crate::model::platform::Os;
use crate::model::secret::Secret;
use crate::model::setting::{Origin, Setting};
use crate::model::spec::{
    EngineChoice, EnvRequest, EnvValue, MountAccess, MountRequest, Network, Spec, WorkspaceMode,
};
use crate::resolve::resolve;
use crate::resolve::tests::spec as plain;

/// Somebody, somewhere.
struct Scene {
    os: Os,
    uid: u32,
    home: &'static str,
    /// What Docker says about its security.
    docker: &'static str,
}

const LINUX: Scene =
    Scene { os: Os::Linux, uid: 1000, home: "/home/ann", docker: "[name=seccomp,profile=default]" };
const ROOT: Scene = Scene { os: Os::Linux, uid: 0, home: "/root", docker: "[name=seccomp,profile=default]" };
const ROOTLESS: Scene = Scene { docker: "[name=seccomp,profile=default name=rootless]", ..LINUX };
const MAC: Scene =
    Scene { os: Os::MacOs, uid: 501, home: "/Users/ann", docker: "[name=seccomp,profile=unconfined]" };

impl Scene {
    fn machine(&self) -> Fake {
        let at = |path: &str| format!("{}/{path}", self.home);
        Fake::new(self.uid)
            .os(self.os)
            .file("/usr/bin/docker", "")
            .file("/usr/bin/podman", "")
            .said("/usr/bin/docker info --format {{.SecurityOptions}}", 0, [self.docker, ""])
            .file(&at(".gitconfig"), "[user]\n\tname = Ann\n")
            .file(&at("repo/.git/HEAD"), "ref: refs/heads/main\n")
            .dir(&at("data"))
            .file("/usr/bin/slirp4netns", "")
            .file("/dev/net/tun", "")
            .mode("/dev/net/tun", 0o666)
            .owner(self.home, self.uid, self.uid)
    }

    fn host(&self) -> Host {
        let home = HostPath::new(self.home).unwrap();
        let variables =
            [("PATH", "/usr/bin"), ("USER", "ann"), ("TERM", "xterm"), ("DOCKER_HOST", "unix:///d.sock")];
        Host {
            uid: self.uid,
            gid: self.uid,
            data: home.join(".local/share/sandtable"),
            home: Some(home),
            executable: Some(HostPath::new("/usr/bin/sandtable").unwrap()),
            environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            odd_variables: Vec::new(),
            foreign: Vec::new(),
            tools: Vec::new(),
        }
    }

    fn spec(&self, engine: EngineChoice) -> Spec {
        let image = "registry.example/tools:1".parse().unwrap();
        Spec {
            engine: Setting::new(engine, flag("--engine")),
            image: Some(Setting::new(image, Origin::Variable { name: "LLXPRT_SANDBOX_IMAGE".to_owned() })),
            ..plain(&format!("{}/repo", self.home))
        }
    }

    /// The plan, or why there is none.
    fn plan(&self, spec: &Spec) -> String {
        let host = self.host();
        let resolved = match resolve(spec, &host, &self.machine()) {
            Ok(resolved) => resolved,
            Err(error) => {
                return format!("{}: {error}\n  {}", error.code(), error.remedy().unwrap_or_default());
            }
        };
        let name: crate::model::id::SandboxName = "calm-heron".parse().unwrap();
        let directory = host.data.join("sandboxes/calm-heron");
        let place = Place { directory, name, id_base: None, pid: 4711, started: 1_700_000_000 };
        engine(resolved.engine).plan(&resolved, &place).to_string()
    }
}

fn flag(name: &str) -> Origin {
    Origin::Flag { name: name.to_owned() }
}

/// A request with something for every part of the call.
fn everything(scene: &Scene, engine: EngineChoice) -> Spec {
    let mut spec = scene.spec(engine);
    let given = |text: &str| EnvValue::Given(Secret::new(text));
    spec.limits.cpus = Some(Setting::new("1.5".parse().unwrap(), flag("--cpus")));
    spec.limits.memory = Some(Setting::new("2g".parse().unwrap(), flag("--memory")));
    spec.limits.pids = Some(Setting::new("64".parse().unwrap(), flag("--pids")));
    spec.network = Setting::new(Network::Nat, flag("--network"));
    spec.env =
        vec![Setting::new(EnvRequest { name: "TOKEN".to_owned(), value: given("hunter2") }, flag("--env"))];
    spec.mounts = vec![Setting::new(
        MountRequest {
            source: format!("{}/data", scene.home).into(),
            target: Some("/in, here".into()),
            access: MountAccess::Read,
        },
        flag("--mount"),
    )];
    let words = ["--shm-size=1g", "--label", "a b"];
    spec.container = ContainerRequest {
        flags: words
            .map(|word| Setting::new(word.to_owned(), Origin::Variable { name: "SANDBOX_FLAGS".to_owned() }))
            .into(),
        ports: vec![Setting::new("8080:80".parse().unwrap(), flag("--publish"))],
        ..ContainerRequest::default()
    };
    spec
}

#[test]
fn docker_on_linux() {
    insta::assert_snapshot!(LINUX.plan(&LINUX.spec(EngineChoice::Docker)));
    insta::assert_snapshot!(LINUX.plan(&everything(&LINUX, EngineChoice::Docker)));
}

#[test]
fn docker_for_root_and_docker_without_root() {
    insta::assert_snapshot!(ROOT.plan(&ROOT.spec(EngineChoice::Docker)));
    insta::assert_snapshot!(ROOTLESS.plan(&ROOTLESS.spec(EngineChoice::Docker)));
}

#[test]
fn podman_on_linux() {
    insta::assert_snapshot!(LINUX.plan(&LINUX.spec(EngineChoice::Podman)));
    insta::assert_snapshot!(LINUX.plan(&everything(&LINUX, EngineChoice::Podman)));
    insta::assert_snapshot!(ROOT.plan(&ROOT.spec(EngineChoice::Podman)));
}

#[test]
fn both_on_macos() {
    insta::assert_snapshot!(MAC.plan(&everything(&MAC, EngineChoice::Docker)));
    insta::assert_snapshot!(MAC.plan(&everything(&MAC, EngineChoice::Podman)));
}

#[test]
fn the_directory_itself_and_the_hosts_network() {
    let mut spec = LINUX.spec(EngineChoice::Docker);
    spec.mode = Setting::new(WorkspaceMode::Live, flag("--mode"));
    spec.network = Setting::new(Network::Host, flag("--network"));
    insta::assert_snapshot!(LINUX.plan(&spec));
}

/// A request with a proxy command.
fn proxied(scene: &Scene, engine: EngineChoice) -> Spec {
    let mut spec = scene.spec(engine);
    let words = ["node", "proxy.js", "--rules=a b"].map(str::to_owned).into();
    let origin = Origin::Variable { name: "SANDBOX_PROXY_COMMAND".to_owned() };
    spec.container.proxy = Some(Setting::new(words, origin));
    spec
}

#[test]
fn a_proxy_command_is_a_container_of_its_own() {
    insta::assert_snapshot!(LINUX.plan(&proxied(&LINUX, EngineChoice::Docker)));
    insta::assert_snapshot!(LINUX.plan(&proxied(&LINUX, EngineChoice::Podman)));
    insta::assert_snapshot!(MAC.plan(&proxied(&MAC, EngineChoice::Podman)));
}

#[test]
fn the_heap_of_node_fits_the_memory_there_is() {
    let options = |given: Option<&str>, memory: Option<&str>| {
        let mut spec = LINUX.spec(EngineChoice::Docker);
        spec.limits.memory = memory.map(|size| Setting::new(size.parse().unwrap(), flag("--memory")));
        let request = |text: &str| EnvRequest {
            name: "NODE_OPTIONS".to_owned(),
            value: EnvValue::Given(Secret::new(text)),
        };
        spec.env = given.map(|text| Setting::new(request(text), flag("--env"))).into_iter().collect();
        let resolved = resolve(&spec, &LINUX.host(), &LINUX.machine()).unwrap();
        resolved.environment.get("NODE_OPTIONS").map(|found| found.value.clone())
    };
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(options(None, None), None);
    assert_eq!(options(None, Some("2g")), is("--max-old-space-size=1024"));
    assert_eq!(options(None, Some("64m")), is("--max-old-space-size=128"));
    assert_eq!(options(Some("--no-warnings"), Some("2g")), is("--no-warnings --max-old-space-size=1024"));
    assert_eq!(options(Some("--max-old-space-size=99"), Some("2g")), is("--max-old-space-size=99"));
    assert_eq!(options(Some("--no-warnings"), None), is("--no-warnings"));
}

#[test]
fn without_an_engine_named_the_image_decides() {
    let chosen = |scene: &Scene| {
        let spec = scene.spec(EngineChoice::Auto);
        resolve(&spec, &scene.host(), &scene.machine()).unwrap().engine.to_string()
    };
    assert_eq!((chosen(&LINUX), chosen(&MAC)), ("podman".to_owned(), "docker".to_owned()));
}

#[test]
fn an_engine_that_does_not_answer_says_why() {
    let refused = |code, said: &str| {
        let call = "/usr/bin/docker info --format {{.SecurityOptions}}";
        let machine = LINUX.machine().said(call, code, ["", said]);
        let error = resolve(&LINUX.spec(EngineChoice::Docker), &LINUX.host(), &machine).unwrap_err();
        format!("{}: {error}", error.code())
    };
    insta::assert_snapshot!(refused(1, "Cannot connect to the Docker daemon at unix:///d.sock."), @"engine-down: Docker does not answer: Cannot connect to the Docker daemon at unix:///d.sock.");
    insta::assert_snapshot!(refused(1, "permission denied while trying to connect to the docker API"), @"engine-denied: Docker does not let you in: permission denied while trying to connect to the docker API");
}

#[test]
fn options_that_undo_the_sandbox_need_a_word() {
    let with = |words: &[&str], guard| {
        let mut spec = LINUX.spec(EngineChoice::Docker);
        let flags = words.iter().map(|word| Setting::new((*word).to_owned(), flag("--engine-flags")));
        spec.container.flags = flags.collect();
        spec.container.flag_guard = Setting::new(guard, flag("--dangerously-engine-flags"));
        LINUX.plan(&spec)
    };
    let refused =
        |words: &[&str]| with(words, FlagGuard::Refuse).lines().next().unwrap_or_default().to_owned();
    insta::assert_snapshot!(refused(&["--privileged"]), @"flag-dangerous: option `--privileged` for the engine undoes the sandbox: it gives the command the whole machine");
    insta::assert_snapshot!(refused(&["--cap-add=SYS_ADMIN"]), @"flag-dangerous: option `--cap-add` for the engine undoes the sandbox: it gives the command powers of root");
    insta::assert_snapshot!(refused(&["-v", "/var/run/docker.sock:/s"]), @"flag-dangerous: option `-v` for the engine undoes the sandbox: it can show any file and any socket of the host");
    insta::assert_snapshot!(refused(&["--frobnicate"]), @"flag-unknown: option `--frobnicate` for the engine is not known");
    insta::assert_snapshot!(refused(&["oops"]), @"flag-unknown: option `oops` for the engine is not known");
    insta::assert_snapshot!(refused(&["--shm-size"]), @"flag-without-value: option `--shm-size` for the engine has no value");
    insta::assert_snapshot!(refused(&["--user=0"]), @"flag-ours: option `--user` for the engine is not taken: files made inside belong to you");
    assert!(
        with(&["--privileged"], FlagGuard::Allow).contains("\n  --privileged    # flag --engine-flags\n")
    );
    assert!(with(&["--user=0"], FlagGuard::Allow).starts_with("flag-ours"));
}

#[test]
fn what_must_be_changed_by_the_caller() {
    let mut unnamed = LINUX.spec(EngineChoice::Docker);
    unnamed.image = None;
    insta::assert_snapshot!(LINUX.plan(&unnamed), @"
    image-unnamed: engine `docker` needs an image, and none was named
      name one: `--image NAME`, the variable `LLXPRT_SANDBOX_IMAGE`, or `image = \"NAME\"` in the configuration
    ");
    let mut host = LINUX.host();
    host.environment.insert("DOCKER_HOST".to_owned(), "ssh://far".to_owned());
    let error = resolve(&LINUX.spec(EngineChoice::Docker), &host, &LINUX.machine()).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"variable `DOCKER_HOST` names an engine on another machine: `ssh://far`");
}

#[test]
fn a_virtual_environment_of_the_host_is_covered() {
    let mut host = LINUX.host();
    host.environment.insert("VIRTUAL_ENV".to_owned(), "/home/ann/repo/.venv".to_owned());
    let machine = LINUX.machine().dir("/home/ann/repo/.venv").owner("/home/ann", 1000, 1000);
    let resolved = resolve(&LINUX.spec(EngineChoice::Podman), &host, &machine).unwrap();
    let place = crate::model::path::BoxPath::new("/home/ann/repo/.venv/bin/python").unwrap();
    assert!(matches!(
        &resolved.mounts.at(&place).unwrap().content,
        crate::model::mount::Content::Private { area } if area == "venv"
    ));
    assert_eq!(resolved.environment["VIRTUAL_ENV"].value, "/home/ann/repo/.venv");
    host.environment.insert("VIRTUAL_ENV".to_owned(), "/home/ann/data".to_owned());
    let elsewhere = resolve(&LINUX.spec(EngineChoice::Podman), &host, &machine).unwrap();
    assert!(!elsewhere.environment.contains_key("VIRTUAL_ENV"));
}

#[test]
fn an_image_is_built_from_the_projects_own_recipe() {
    let mut spec = LINUX.spec(EngineChoice::Docker);
    spec.container.build = Setting::new(crate::model::container::Build::Project, flag("--build"));
    insta::assert_snapshot!(LINUX.plan(&spec), @"
    no-recipe: there is no recipe to build the image from: `/home/ann/repo/.sandtable/Dockerfile`, `/home/ann/repo/.llxprt/sandbox.Dockerfile`
      write one, or leave out `--build` and `BUILD_SANDBOX`
    ");
    let file = |name: &str| format!("/home/ann/repo/{name}");
    let theirs = LINUX.machine().file(&file(".llxprt/sandbox.Dockerfile"), "");
    let both = theirs.clone().file(&file(".sandtable/Dockerfile"), "");
    let recipe = |machine: &Fake| {
        let container = resolve(&spec, &LINUX.host(), machine).unwrap().container.unwrap();
        container.build.unwrap().file.to_string()
    };
    assert_eq!(recipe(&theirs), file(".llxprt/sandbox.Dockerfile"));
    assert_eq!(recipe(&both), file(".sandtable/Dockerfile"));
}

#[test]
fn what_only_containers_know_is_refused_elsewhere() {
    let mut spec = LINUX.spec(EngineChoice::Native);
    spec.image = None;
    spec.container.ports = vec![Setting::new("80".parse().unwrap(), flag("--publish"))];
    insta::assert_snapshot!(LINUX.plan(&spec).lines().next().unwrap(), @"containers-only: `--publish` is for docker and podman, and this sandbox runs on `native`");
    spec.container.ports[0].origin = Origin::Variable { name: "SANDBOX_PORTS".to_owned() };
    assert!(resolve(&spec, &LINUX.host(), &LINUX.machine()).is_ok());
}
