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
