//! Which of Podman's connections leads to the virtual machine that the containers run in, and what it is made of.
//!
//! Podman lists its connections as JSON. The one it calls the default is taken, or the only one; anything else
//! is an error, because a tunnel to another machine would give the agent to strangers.

use serde::Deserialize;

use super::Surroundings;
use crate::model::agent::Connection;
use crate::model::path::HostPath;
use crate::resolve::helper;

/// The call that lists the connections.
const LIST: &[&str] = &["system", "connection", "list", "--format", "json"];
/// The port where an address names none.
const PORT: u16 = 22;

/// Why no connection could be chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    #[error("podman does not list its connections: {why}")]
    NotListed { why: String },
    #[error("podman's list of connections is not understood: {why}")]
    Malformed { why: String },
    #[error("podman knows no connection to a machine")]
    None,
    #[error("podman knows several connections and calls none of them the default: {}", names.join(", "))]
    NoDefault { names: Vec<String> },
    #[error("podman calls several connections the default: {}", names.join(", "))]
    SeveralDefaults { names: Vec<String> },
    #[error("the connection `{name}` has an address that is of no use: `{uri}`: {why}")]
    Address { name: String, uri: String, why: &'static str },
    #[error("the agent's socket cannot be named to `ssh`: `{path}` has a colon, `%` or `$`")]
    Socket { path: HostPath },
    #[error("there is no `ssh` on PATH")]
    SshMissing,
}

impl ConnectionError {
    /// What to do about it; the last line is the way on without the agent.
    pub fn remedy(&self) -> String {
        let mend = match self {
            Self::NotListed { .. } | Self::None => {
                "start a machine: `podman machine init`, `podman machine start`"
            }
            Self::Malformed { .. } => "`podman system connection list --format json` shows what podman says",
            Self::NoDefault { .. } | Self::SeveralDefaults { .. } => {
                "name the one that is meant: `podman system connection default NAME`"
            }
            Self::Address { .. } => {
                "remove the connection or make it anew: `podman system connection --help`"
            }
            Self::Socket { .. } => "start the agent with another path: `ssh-agent -a PATH`",
            Self::SshMissing => "install OpenSSH's client",
        };
        format!("{mend}\n{}", super::WITHOUT)
    }
}

/// The connection to use, and the program to use it with.
pub(super) fn connection(around: &Surroundings<'_>) -> Result<(HostPath, Connection), ConnectionError> {
    let container = around.container.ok_or(ConnectionError::None)?;
    let variables: Vec<(String, String)> =
        container.variables.iter().map(|(name, variable)| (name.clone(), variable.value.clone())).collect();
    let said = around.facts.output(&container.program, LIST, &variables);
    let said = said.map_err(|why| ConnectionError::NotListed { why: why.to_string() })?;
    if said.code != Some(0) {
        let last = said.stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
        return Err(ConnectionError::NotListed { why: last.trim().to_owned() });
    }
    let connection = chosen(&said.stdout)?;
    let ssh = helper("ssh", around.host, around.facts);
    let ssh = ssh.and_then(|path| HostPath::new(path).ok()).ok_or(ConnectionError::SshMissing)?;
    Ok((ssh, connection))
}

/// One line of the list, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Line {
    name: String,
    #[serde(rename = "URI")]
    uri: String,
    #[serde(default)]
    identity: String,
    #[serde(default)]
    default: bool,
}

impl Line {
    /// Older versions mark the default with a star behind its name.
    fn is_default(&self) -> bool {
        self.default || self.name.ends_with('*')
    }
}

fn chosen(list: &str) -> Result<Connection, ConnectionError> {
    // Without any connection some versions print nothing, others `null` or an empty list.
    let lines: Option<Vec<Line>> = match list.trim() {
        "" => None,
        text => serde_json::from_str(text)
            .map_err(|error| ConnectionError::Malformed { why: error.to_string() })?,
    };
    let lines = lines.unwrap_or_default();
    let names = |lines: &[&Line]| lines.iter().map(|line| format!("`{}`", line.name)).collect();
    let defaults: Vec<&Line> = lines.iter().filter(|line| line.is_default()).collect();
    match (&defaults[..], &lines[..]) {
        ([default], _) => read(default),
        ([], [only]) => read(only),
        ([], []) => Err(ConnectionError::None),
        ([], all) => Err(ConnectionError::NoDefault { names: names(&all.iter().collect::<Vec<_>>()) }),
        (several, _) => Err(ConnectionError::SeveralDefaults { names: names(several) }),
    }
}

fn read(line: &Line) -> Result<Connection, ConnectionError> {
    let refused = |why| ConnectionError::Address { name: line.name.clone(), uri: line.uri.clone(), why };
    let rest = line.uri.strip_prefix("ssh://").ok_or_else(|| refused("it does not start with `ssh://`"))?;
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, place) = authority.rsplit_once('@').ok_or_else(|| refused("it names no user"))?;
    let (host, port) = match place.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']').ok_or_else(|| refused("its bracket does not end"))?,
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => Some(PORT),
        None => None,
        Some(number) => number.parse().ok().filter(|number| *number > 0),
    };
    let port = port.ok_or_else(|| refused("its port is no number of a port"))?;
    let plain = |text: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-:%".contains(c);
        !text.is_empty() && !text.starts_with('-') && text.chars().all(fits)
    };
    if !plain(user) || user.contains([':', '%']) || !plain(host) {
        return Err(refused("its user or host has other characters than those have"));
    }
    let identity = match line.identity.as_str() {
        "" => None,
        path => Some(HostPath::new(path).map_err(|_| refused("its key file is no absolute path"))?),
    };
    let name = line.name.trim_end_matches('*').to_owned();
    Ok(Connection { name, user: user.to_owned(), host: host.to_owned(), port, identity })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, uri: &str, default: &str) -> String {
        format!(r#"{{"Name":"{name}","URI":"{uri}","Identity":"/Users/ann/.ssh/{name}"{default}}}"#)
    }

    fn machine(name: &str, default: &str) -> String {
        line(name, "ssh://core@127.0.0.1:51234/run/user/501/podman/podman.sock", default)
    }

    fn list(lines: &[String]) -> String {
        match chosen(&format!("[{}]", lines.join(","))) {
            Ok(connection) => connection.name,
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_default_or_the_only_one_is_taken() {
        let (yes, no) = (r#","Default":true"#, r#","Default":false,"IsMachine":true"#);
        assert_eq!(list(&[machine("a", no), machine("b", yes)]), "b");
        assert_eq!(list(&[machine("a", no)]), "a");
        assert_eq!(list(&[machine("a", "")]), "a");
        assert_eq!(list(&[machine("a", ""), machine("b*", "")]), "b");
    }

    #[test]
    fn anything_else_is_refused() {
        let (yes, no) = (r#","Default":true"#, r#","Default":false"#);
        assert_eq!(list(&[]), "podman knows no connection to a machine");
        insta::assert_snapshot!(list(&[machine("a", no), machine("b", no)]), @"podman knows several connections and calls none of them the default: `a`, `b`");
        insta::assert_snapshot!(list(&[machine("a", yes), machine("b", yes)]), @"podman calls several connections the default: `a`, `b`");
        for nothing in ["", "null", "[]", " \n"] {
            assert_eq!(chosen(nothing), Err(ConnectionError::None), "{nothing:?}");
        }
        for broken in
            ["{", "Name URI\na ssh://x", r#"[{"Name":"a"}]"#, r#"{"Name":"a"}"#, r#"[{"Name":1,"URI":""}]"#]
        {
            assert!(matches!(chosen(broken), Err(ConnectionError::Malformed { .. })), "{broken}");
        }
    }

    #[test]
    fn an_address_is_taken_apart() {
        let read = |uri: &str| {
            let read = chosen(&format!("[{}]", line("m", uri, "")));
            read.map(|connection| format!("{} {} {}", connection.user, connection.host, connection.port))
        };
        assert_eq!(read("ssh://core@localhost:5/x"), Ok("core localhost 5".to_owned()));
        assert_eq!(read("ssh://root@[::1]:2222/run/podman.sock"), Ok("root ::1 2222".to_owned()));
        assert_eq!(read("ssh://root@[fe80::1%en0]"), Ok("root fe80::1%en0 22".to_owned()));
        assert_eq!(read("ssh://core@vm.local"), Ok("core vm.local 22".to_owned()));
        for bad in [
            "unix:///run/podman.sock",
            "tcp://localhost:8080",
            "ssh://localhost:22/x",
            "ssh://core@localhost:0/x",
            "ssh://core@localhost:70000/x",
            "ssh://core@localhost:x/x",
            "ssh://core@[::1/x",
            "ssh://core@/x",
            "ssh://@localhost/x",
            "ssh://-oProxyCommand=evil@localhost/x",
            "ssh://core@-oProxyCommand=evil/x",
            "ssh://co re@localhost/x",
            "ssh://core@local`id`host/x",
        ] {
            assert!(matches!(read(bad), Err(ConnectionError::Address { .. })), "{bad}: {:?}", read(bad));
        }
    }
}
