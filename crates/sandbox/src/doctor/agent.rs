//! The caller's ssh-agent: whether there is one to bring in, and whether it could sign anything.

use super::Patient;
use crate::model::agent::VARIABLE;
use crate::model::check::Check;
use crate::resolve;

/// How many keys the agent has. That there is none at all is nothing to mend.
pub(super) fn identities(patient: Patient<'_>) -> Check {
    let (id, what) = ("machine.ssh-agent", "ssh-agent");
    let Patient { host, facts } = patient;
    if host.environment.get(VARIABLE).is_none_or(String::is_empty) {
        return Check::ok(id, what, format!("none: `{VARIABLE}` is not set, and sandboxes run without"));
    }
    let socket = match resolve::agent_socket(host, facts) {
        Ok(socket) => socket,
        Err(why) => return Check::warn(id, what, why).mend("eval $(ssh-agent) && ssh-add"),
    };
    let Some(program) = resolve::helper("ssh-add", host, facts) else {
        return Check::ok(id, what, "it answers; without `ssh-add` its keys cannot be counted");
    };
    let variables = [(VARIABLE.to_owned(), socket.to_string())];
    match facts.output(program, &["-l"], &variables) {
        Ok(said) if said.code == Some(0) => {
            let keys = said.stdout.lines().count();
            let plural = if keys == 1 { "key" } else { "keys" };
            Check::ok(id, what, format!("it has {keys} {plural}"))
        }
        Ok(said) if said.code == Some(1) => {
            Check::warn(id, what, "it has no key to sign with").mend("ssh-add")
        }
        _ => Check::warn(id, what, "it does not list its keys").mend("eval $(ssh-agent) && ssh-add"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::facts::fake::Fake;
    use crate::host::Host;
    use crate::model::path::HostPath;

    fn found(socket: &str, machine: &Fake) -> String {
        let environment = [("PATH", "/usr/bin"), (VARIABLE, socket)];
        let host = Host {
            uid: 0,
            gid: 0,
            home: None,
            data: HostPath::new("/data").unwrap(),
            executable: None,
            environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            odd_variables: Vec::new(),
            foreign: Vec::new(),
            tools: Vec::new(),
        };
        let check = identities(Patient { host: &host, facts: machine });
        format!("{:?} {} ({})", check.status, check.why, check.mend.unwrap_or_default())
    }

    #[test]
    fn the_agent_and_its_keys() {
        let machine = || Fake::new(0).socket("/agent").dead_socket("/dead").file("/usr/bin/ssh-add", "");
        let list = |code, keys| machine().said("/usr/bin/ssh-add -l", code, [keys, ""]);
        let cases: BTreeMap<&str, String> = [
            ("1 two keys", found("/agent", &list(0, "256 a\n256 b\n"))),
            ("2 no key", found("/agent", &list(1, "The agent has no identities.\n"))),
            ("3 no answer", found("/agent", &list(2, ""))),
            ("4 nobody listens", found("/dead", &machine())),
            ("5 no agent", found("", &machine())),
            ("6 no ssh-add", found("/agent", &Fake::new(0).socket("/agent"))),
        ]
        .into();
        let lines: Vec<String> = cases.iter().map(|(case, found)| format!("{case}: {found}")).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        1 two keys: Ok it has 2 keys ()
        2 no key: Warn it has no key to sign with (ssh-add)
        3 no answer: Warn it does not list its keys (eval $(ssh-agent) && ssh-add)
        4 nobody listens: Warn `SSH_AUTH_SOCK` names `/dead`, and nobody listens there (eval $(ssh-agent) && ssh-add)
        5 no agent: Ok none: `SSH_AUTH_SOCK` is not set, and sandboxes run without ()
        6 no ssh-add: Ok it answers; without `ssh-add` its keys cannot be counted ()
        ");
    }
}
