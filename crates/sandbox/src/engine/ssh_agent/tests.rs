//! Golden tests: every way of the agent, in the words of each engine.

use serde_json::json;

use super::*;
use crate::model::agent::{Agent, Connection};
use crate::model::path::HostPath;
use crate::model::setting::{Origin, Setting};
use crate::model::spec::SshAgent;

fn path(text: &str) -> HostPath {
    HostPath::new(text).unwrap()
}

fn setting(value: &str) -> serde_json::Value {
    json!({ "value": value, "origin": { "from": "default" } })
}

/// A request for a container engine, with nothing in it but what matters here.
fn spec(forwarding: Option<Forwarding>) -> ResolvedSpec {
    let spec = json!({
        "engine": "docker", "engine_reason": "",
        "image": {
            "kind": "named", "name": "busybox:1", "origin": { "from": "default" }, "pull": "missing",
        },
        "container": {
            "program": "/usr/bin/docker", "variables": {}, "rights": "root", "init": "/opt/sandtable",
            "flags": [], "ports": [], "support": setting("nobody"),
        },
        "source": { "root": "/r", "kind": { "kind": "plain" } },
        "mode": { "value": "overlay", "reason": "" },
        "identity": { "uid": 1000, "gid": 1000 },
        "home": "/home/ann", "directory": "/r", "mounts": [], "seeds": [], "hide": [], "environment": {},
        "network": setting("none"), "network_helper": null, "secrets": setting("warn"),
        "strictness": setting("strict"), "lifetime": setting("keep"), "warnings": [],
    });
    let asked = Setting::new(SshAgent::On, Origin::Flag { name: "--ssh-agent".to_owned() });
    let mut spec: ResolvedSpec = serde_json::from_value(spec).unwrap();
    spec.ssh_agent = Agent { asked, forwarding };
    spec
}

fn place() -> Place {
    let name = "tidy-lark".parse().unwrap();
    Place {
        directory: path("/Users/ann/Library/My \"data\"/tidy-lark"),
        name,
        id_base: None,
        pid: 7,
        started: 0,
    }
}

fn tunnel() -> Forwarding {
    Forwarding::Tunnel {
        socket: path("/Users/ann/Library/Group Containers/agent.sock"),
        ssh: path("/usr/bin/ssh"),
        connection: Connection {
            name: "podman-machine-default".to_owned(),
            user: "core".to_owned(),
            host: "127.0.0.1".to_owned(),
            port: 51234,
            identity: Some(path("/Users/ann/100%/machine")),
        },
    }
}

fn lines(lowered: &Lowered) -> String {
    let mut lines: Vec<String> =
        lowered.args.iter().map(|arg| format!("{:?} {} ({})", arg.part, arg.value, arg.origin)).collect();
    match &lowered.setup {
        Setup::Nothing => lines.push("nothing before".to_owned()),
        Setup::Relay(relay) => {
            lines.push(format!("before: relay {} to {}", relay.at.display(), relay.to.display()));
        }
        Setup::Tunnel(tunnel) => {
            let login = tunnel.login.len() - 1;
            let rest = |words: Vec<String>| words[login..].join(" ");
            lines.push(format!("login: {} {}", tunnel.ssh.display(), tunnel.login[..login].join(" ")));
            lines.push(format!("before: {}", rest(tunnel.command(&tunnel.make_way()))));
            lines.push(format!("before: {}", rest(tunnel.forward())));
            lines.push(format!("after: {}", rest(tunnel.command(&tunnel.remove()))));
        }
    }
    lines.join("\n")
}

fn lowered(forwarding: Option<Forwarding>, dialect: Dialect) -> String {
    lines(&lower(&spec(forwarding), dialect, &place()))
}

#[test]
fn no_agent_leaves_no_word() {
    for dialect in [Dialect::Docker, Dialect::Podman] {
        assert_eq!(lowered(None, dialect), "nothing before");
    }
}

#[test]
fn on_linux_the_socket_itself_is_mounted() {
    let direct = || Some(Forwarding::Direct { socket: path("/run/user/1000/agent"), identity: None });
    insta::assert_snapshot!(lowered(direct(), Dialect::Docker), @"
    SshAgent --volume (flag --ssh-agent)
    SshAgent /run/user/1000/agent:/ssh-agent (flag --ssh-agent)
    nothing before
    ");
    insta::assert_snapshot!(lowered(direct(), Dialect::Podman), @"
    SshAgent --volume (flag --ssh-agent)
    SshAgent /run/user/1000/agent:/ssh-agent:z (flag --ssh-agent)
    nothing before
    ");
}

#[test]
fn docker_desktops_socket_is_looked_at_with_the_sandboxs_own_image() {
    insta::assert_snapshot!(lowered(Some(Forwarding::Desktop), Dialect::Docker), @"
    SshAgent --volume (flag --ssh-agent)
    SshAgent /run/host-services/ssh-auth.sock:/ssh-agent (flag --ssh-agent)
    nothing before
    ");
    insta::assert_snapshot!(desktop::words(&spec(Some(Forwarding::Desktop))).unwrap().join(" "), @"run --rm --pull never --network none --cap-drop=ALL --user 1000:1000 --env GIT_DISCOVERY_ACROSS_FILESYSTEM=1 --mount type=bind,source=/run/host-services/ssh-auth.sock,target=/ssh-agent --mount type=bind,source=/opt/sandtable,target=/sandtable-reach,readonly --entrypoint /sandtable-reach busybox:1 __reach /ssh-agent");
}

#[test]
fn a_socket_of_somebody_else_is_relayed() {
    let relayed = Some(Forwarding::Relayed { socket: path("/run/user/1000/agent") });
    insta::assert_snapshot!(lowered(relayed, Dialect::Docker), @r#"
    SshAgent --volume (flag --ssh-agent)
    SshAgent /Users/ann/Library/My "data"/tidy-lark/agent:/ssh-agent (flag --ssh-agent)
    before: relay /Users/ann/Library/My "data"/tidy-lark/agent to /run/user/1000/agent
    "#);
}

#[test]
fn podmans_machine_gets_a_tunnel_of_this_session() {
    insta::assert_snapshot!(lowered(Some(tunnel()), Dialect::Podman), @r#"
    SshAgent --volume (flag --ssh-agent)
    SshAgent /tmp/sandtable-9a8f2da6b689a067/agent:/ssh-agent (flag --ssh-agent)
    login: /usr/bin/ssh -F none -T -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile="/Users/ann/Library/My \"data\"/tidy-lark/tunnel.hosts" -o GlobalKnownHostsFile=/dev/null -o ControlMaster=no -o ControlPath=none -o ForwardAgent=no -o LogLevel=ERROR -o ServerAliveInterval=15 -o IdentityFile="/Users/ann/100%%/machine" -o IdentitiesOnly=yes -o IdentityAgent=none -p 51234 -l core
    before: -- 127.0.0.1 umask 077; mkdir -p /tmp/sandtable-9a8f2da6b689a067 && test -O /tmp/sandtable-9a8f2da6b689a067 && rm -f /tmp/sandtable-9a8f2da6b689a067/agent
    before: -o ExitOnForwardFailure=yes -o StreamLocalBindMask=0177 -R /tmp/sandtable-9a8f2da6b689a067/agent:/Users/ann/Library/Group Containers/agent.sock -- 127.0.0.1 cat > /dev/null; rm -f /tmp/sandtable-9a8f2da6b689a067/agent; rmdir /tmp/sandtable-9a8f2da6b689a067
    after: -- 127.0.0.1 rm -f /tmp/sandtable-9a8f2da6b689a067/agent; rmdir /tmp/sandtable-9a8f2da6b689a067
    "#);
    let other = Place { directory: path("/elsewhere"), ..place() };
    let (one, two) = (
        lower(&spec(Some(tunnel())), Dialect::Podman, &place()),
        lower(&spec(Some(tunnel())), Dialect::Podman, &other),
    );
    assert_ne!(one.args[1].value, two.args[1].value, "two sessions share a socket");
}

/// What becomes of a request for Docker Desktop's socket, with a `docker` that is a script.
fn checked(asked: SshAgent, script: &str) -> Result<ResolvedSpec, SshAgentError> {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("docker");
    fs_err::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs_err::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut spec = spec(Some(Forwarding::Desktop));
    spec.ssh_agent.asked.value = asked;
    spec.container.as_mut().unwrap().program = HostPath::new(program).unwrap();
    let variable = crate::model::resolved::Variable::open(SOCKET, Origin::Default);
    spec.environment.insert("SSH_AUTH_SOCK".to_owned(), variable);
    check(&mut spec).map(|()| spec)
}

#[test]
fn what_docker_desktop_does_not_show_is_said_and_left_out() {
    let there = checked(SshAgent::Required, "test \"$1\" = run").unwrap();
    assert_eq!((there.ssh_agent.forwarding, there.warnings), (Some(Forwarding::Desktop), Vec::new()));
    // As Docker says it, with its advice at the end.
    let script = "echo one >&2; echo 'bind source path does not exist' >&2; echo >&2; \
                  echo \"See 'docker run --help'.\" >&2; exit 125";
    for asked in [SshAgent::Auto, SshAgent::On] {
        let without = checked(asked, script).unwrap();
        assert_eq!(without.ssh_agent.forwarding, None);
        assert!(!without.environment.contains_key("SSH_AUTH_SOCK"));
        let said: Vec<String> =
            without.warnings.iter().map(|it| format!("{}: {}", it.code, it.text)).collect();
        insta::allow_duplicates! {
            insta::assert_snapshot!(said.join("\n"), @"ssh-agent-unavailable: there is no ssh-agent inside: Docker Desktop's `/run/host-services/ssh-auth.sock` cannot be reached from a container: bind source path does not exist; `--ssh-agent off` says that none is wanted");
        }
    }
    let error = checked(SshAgent::Required, script).unwrap_err();
    assert!(matches!(error, SshAgentError::Unavailable { .. }), "{error}");
    assert!(error.remedy().contains("SANDTABLE_SSH_AGENT=off"));
}

#[test]
fn every_failure_of_the_tunnel_names_a_remedy_and_the_way_on() {
    let said = || "it said nothing".to_owned();
    let errors = [
        TunnelError::State { path: "/x".into(), source: std::io::Error::other("full") },
        TunnelError::Refused { said: said() },
        TunnelError::Ended { said: said() },
        TunnelError::Silent { far: "/tmp/x".to_owned(), patience_ms: 10_000, said: said() },
    ];
    for error in errors {
        let remedy = SshAgentError::from(error).remedy();
        let lines: Vec<&str> = remedy.lines().collect();
        assert!(lines.len() == 2 && lines[1].contains("SANDTABLE_SSH_AGENT=off"), "{remedy}");
    }
}
