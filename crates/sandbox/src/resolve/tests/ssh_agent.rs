//! The caller's ssh-agent inside.

use super::machines::ann;
use super::{check, host, resolved, spec};
use crate::facts::fake::Fake;
use crate::host::Host;
use crate::model::agent::Forwarding;
use crate::model::setting::{Origin, Setting};
use crate::model::spec::{Spec, SshAgent};

fn asking(value: SshAgent) -> Spec {
    let asked = Setting::new(value, Origin::Flag { name: "--ssh-agent".to_owned() });
    Spec { ssh_agent: asked, ..spec("/home/ann/repo") }
}

fn ann_calls(socket: Option<&str>) -> Host {
    let mut host = host(1000, "/home/ann", "/usr/bin");
    host.environment.remove("SSH_AUTH_SOCK");
    host.environment.extend(socket.map(|path| ("SSH_AUTH_SOCK".to_owned(), path.to_owned())));
    host
}

fn machine() -> Fake {
    let machine = ann()
        .socket("/run/user/1000/agent")
        .dead_socket("/run/user/1000/dead")
        .socket("/run/user/0/agent")
        .link("/home/ann/agent", "/run/user/1000/agent")
        .file("/home/ann/.ssh/known_hosts", "h k\n")
        .file("/home/ann/.ssh/id_ed25519", "secret");
    machine
        .owner("/home/ann", 1000, 1000)
        .owner("/run/user/1000", 1000, 1000)
        .mode("/run/user/1000/agent", 0o600)
        .mode("/run/user/0/agent", 0o600)
}

/// The lines that have to do with the agent.
fn seen(asked: SshAgent, socket: Option<&str>) -> String {
    let text = check(&asking(asked), &ann_calls(socket), &machine());
    let mut lines =
        text.lines().filter(|line| ["agent", "SSH", "ssh"].iter().any(|word| line.contains(word)));
    let first = lines.next().unwrap_or("nothing").to_owned();
    lines.fold(first, |text, line| format!("{text}\n{line}"))
}

#[test]
fn an_agent_that_is_there_is_seen_at_its_one_place() {
    let all = "/home/ann/.ssh/known_hosts: read caller\n/ssh-agent: agent\nSSH_AUTH_SOCK=/ssh-agent";
    for asked in [SshAgent::Auto, SshAgent::On, SshAgent::Required] {
        assert_eq!(seen(asked, Some("/run/user/1000/agent")), all);
        assert_eq!(seen(asked, Some("/home/ann/agent")), all, "by way of a link");
    }
    let agent = resolved(&asking(SshAgent::On), &ann_calls(Some("/home/ann/agent")), &machine());
    let Some(Forwarding::Direct { socket, identity }) = agent.unwrap().ssh_agent.forwarding else {
        panic!("no forwarding")
    };
    assert_eq!(socket.to_string(), "/run/user/1000/agent");
    assert!(identity.is_some());
}

#[test]
fn off_means_no_socket_no_variable_no_word() {
    assert_eq!(seen(SshAgent::Off, Some("/run/user/1000/agent")), "nothing");
    assert_eq!(seen(SshAgent::Off, None), "nothing");
}

#[test]
fn no_agent_is_said_once_with_the_reason() {
    let cases = [
        (None, "`SSH_AUTH_SOCK` is not set"),
        (Some(""), "`SSH_AUTH_SOCK` is not set"),
        (Some("agent"), "`SSH_AUTH_SOCK` is no absolute path: `agent`"),
        (Some("/none"), "`SSH_AUTH_SOCK` names `/none`, and there is no such file or directory"),
        (
            Some("/run/user/1000/dead"),
            "`SSH_AUTH_SOCK` names `/run/user/1000/dead`, and nobody listens there",
        ),
        (Some("/home/ann/repo"), "`SSH_AUTH_SOCK` names `/home/ann/repo`, and it is no socket"),
        (Some("/run/user/0/agent"), "`SSH_AUTH_SOCK` names `/run/user/0/agent`, and permission denied"),
    ];
    for (socket, why) in cases {
        let off = "`--ssh-agent off` says that none is wanted";
        let warning = format!("! ssh-agent-unavailable: there is no ssh-agent inside: {why}; {off}");
        assert_eq!(seen(SshAgent::Auto, socket), warning);
        assert_eq!(seen(SshAgent::On, socket), warning);
        let refused = resolved(&asking(SshAgent::Required), &ann_calls(socket), &machine()).unwrap_err();
        assert_eq!(
            super::refusal(&refused).lines().next().unwrap_or_default(),
            format!(
                "machine ssh-agent-unavailable: the ssh-agent is required, and there is none to bring in: {why}"
            )
        );
    }
}

#[test]
fn the_variable_is_nobodys_to_give() {
    use crate::model::spec::{EnvRequest, EnvValue};
    for name in ["SSH_AUTH_SOCK", "GIT_DISCOVERY_ACROSS_FILESYSTEM"] {
        let mut spec = asking(SshAgent::Off);
        let request = EnvRequest { name: name.to_owned(), value: EnvValue::CallerIfSet };
        spec.env.push(Setting::default_value(request));
        let refused = check(&spec, &ann_calls(None), &machine());
        assert!(refused.starts_with(&format!("input env-reserved: variable `{name}`")), "{refused}");
    }
}

/// What is decided for each kind of machine and engine.
mod ways {
    use super::*;
    use crate::model::agent::VARIABLE;
    use crate::model::container::{Container, EngineRights};
    use crate::model::path::HostPath;
    use crate::model::platform::Os;
    use crate::model::resolved::EngineName;
    use crate::resolve::environment;
    use crate::resolve::ssh_agent::{Surroundings, decide};

    const LIST: &str = "/usr/bin/podman system connection list --format json";
    const INFO: &str = "/usr/bin/docker info --format {{.OperatingSystem}}";
    const MACHINE: &str =
        r#"[{"Name":"m","URI":"ssh://core@127.0.0.1:51234/run/podman.sock","Identity":"/k","Default":true}]"#;

    fn mac() -> Fake {
        machine().os(Os::MacOs).file("/usr/bin/ssh", "")
    }

    fn container(engine: EngineName) -> Container {
        let path = |text: &str| HostPath::new(text).unwrap();
        Container {
            program: path(&format!("/usr/bin/{engine}")),
            variables: std::collections::BTreeMap::new(),
            rights: EngineRights::Rootless,
            init: path("/opt/sandtable"),
            flags: Vec::new(),
            ports: Vec::new(),
            build: None,
            proxy: None,
            lowers: crate::model::container::Lowers::Many,
            support: Setting::default_value(String::new()),
        }
    }

    fn way(asked: SshAgent, os: Os, engine: EngineName, machine: &Fake) -> String {
        let container = container(engine);
        let boxed = matches!(engine, EngineName::Docker | EngineName::Podman);
        let around = Surroundings {
            host: &ann_calls(Some("/run/user/1000/agent")),
            facts: machine,
            os,
            engine,
            container: boxed.then_some(&container),
        };
        let mut warnings = Vec::new();
        let decided = decide(&Setting::default_value(asked), &around, &mut warnings);
        match (decided, &warnings[..]) {
            (Err(error), _) => super::super::refusal(&error),
            (Ok(agent), [warning]) if agent.forwarding.is_none() => {
                format!("{}: {}", warning.code, warning.text)
            }
            (Ok(agent), []) => match (&agent.forwarding, agent.place(engine)) {
                (None, None) => "nothing".to_owned(),
                (Some(forwarding), Some(place)) => {
                    let variables = environment::last(&agent, engine);
                    assert_eq!(variables[VARIABLE].value, place.to_string(), "{os} {engine}");
                    format!(
                        "{} at {place}",
                        serde_json::to_value(forwarding).unwrap()["way"].as_str().unwrap()
                    )
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_platform_and_engine_has_its_way() {
        let ready = mac().said(INFO, 0, ["Docker Desktop\n", ""]).said(LIST, 0, [MACHINE, ""]);
        let mut table = Vec::new();
        for os in [Os::Linux, Os::MacOs] {
            for engine in EngineName::ALL {
                let say = |asked| way(asked, os, *engine, &ready);
                assert_eq!(say(SshAgent::Auto), say(SshAgent::Required));
                assert_eq!(say(SshAgent::Off), "nothing", "{os} {engine}");
                table.push(format!("{os} {engine}: {}", say(SshAgent::Auto)));
            }
        }
        insta::assert_snapshot!(table.join("\n"), @"
        linux native: direct at /ssh-agent
        linux docker: direct at /ssh-agent
        linux podman: direct at /ssh-agent
        linux seatbelt: direct at /run/user/1000/agent
        macos native: direct at /ssh-agent
        macos docker: desktop at /ssh-agent
        macos podman: tunnel at /ssh-agent
        macos seatbelt: direct at /run/user/1000/agent
        ");
    }

    #[test]
    fn docker_that_is_not_docker_desktop_is_a_warning() {
        let docker = |machine: Fake| way(SshAgent::Auto, Os::MacOs, EngineName::Docker, &machine);
        insta::assert_snapshot!(docker(mac().said(INFO, 0, ["Ubuntu 24.04 LTS\n", ""])), @"ssh-agent-unavailable: there is no ssh-agent inside: only Docker Desktop can bring it in, and this is `Ubuntu 24.04 LTS`; `--ssh-agent off` says that none is wanted");
        insta::assert_snapshot!(docker(mac().said(INFO, 1, ["", "Cannot connect to the Docker daemon"])), @"ssh-agent-unavailable: there is no ssh-agent inside: `docker info` does not answer: Cannot connect to the Docker daemon; `--ssh-agent off` says that none is wanted");
        let required =
            way(SshAgent::Required, Os::MacOs, EngineName::Docker, &mac().said(INFO, 0, ["Colima", ""]));
        assert!(required.starts_with("machine ssh-agent-unavailable: "), "{required}");
    }

    #[test]
    fn podman_without_a_usable_connection_stops_the_launch_even_in_auto() {
        let podman = |machine: Fake| way(SshAgent::Auto, Os::MacOs, EngineName::Podman, &machine);
        let two = r#"[{"Name":"a","URI":"ssh://c@h/x"},{"Name":"b","URI":"ssh://c@h/x"}]"#;
        let without_ssh = machine().os(Os::MacOs);
        let cases = [
            podman(mac().said(LIST, 0, ["no JSON", ""])),
            podman(mac().said(LIST, 0, ["[]", ""])),
            podman(mac().said(LIST, 0, [two, ""])),
            podman(mac().said(LIST, 125, ["", "Error: the machine is broken\n"])),
            podman(mac()),
            podman(without_ssh.said(LIST, 0, [MACHINE, ""])),
        ];
        for text in &cases {
            assert!(text.starts_with("machine ssh-agent-connection: "), "{text}");
            assert!(text.ends_with("`SANDTABLE_SSH_AGENT=off` goes on without the agent"), "{text}");
        }
        insta::assert_snapshot!(cases.join("\n"), @"
        machine ssh-agent-connection: the ssh-agent cannot be brought into Podman's machine: podman's list of connections is not understood: expected ident at line 1 column 2
          `podman system connection list --format json` shows what podman says
        `SANDTABLE_SSH_AGENT=off` goes on without the agent
        machine ssh-agent-connection: the ssh-agent cannot be brought into Podman's machine: podman knows no connection to a machine
          start a machine: `podman machine init`, `podman machine start`
        `SANDTABLE_SSH_AGENT=off` goes on without the agent
        machine ssh-agent-connection: the ssh-agent cannot be brought into Podman's machine: podman knows several connections and calls none of them the default: `a`, `b`
          name the one that is meant: `podman system connection default NAME`
        `SANDTABLE_SSH_AGENT=off` goes on without the agent
        machine ssh-agent-connection: the ssh-agent cannot be brought into Podman's machine: podman does not list its connections: Error: the machine is broken
          start a machine: `podman machine init`, `podman machine start`
        `SANDTABLE_SSH_AGENT=off` goes on without the agent
        machine ssh-agent-connection: the ssh-agent cannot be brought into Podman's machine: podman does not list its connections: nobody runs `/usr/bin/podman system connection list --format json`
          start a machine: `podman machine init`, `podman machine start`
        `SANDTABLE_SSH_AGENT=off` goes on without the agent
        machine ssh-agent-connection: the ssh-agent cannot be brought into Podman's machine: there is no `ssh` on PATH
          install OpenSSH's client
        `SANDTABLE_SSH_AGENT=off` goes on without the agent
        ");
    }
}
