//! The one setting with an order of its own: `off` for the ssh-agent in any variable holds, whatever stronger
//! layers say, because whoever switched it off for a whole login must be able to rely on it. A flag that
//! insists on the agent then contradicts it, and nobody but the user can say which of the two is meant.

use std::ffi::OsStr;

use sandtable_sandbox::model::setting::{Origin, Setting};
use sandtable_sandbox::model::spec::SshAgent;

use super::layer::Layer;
use super::value::ValueError;

/// A flag that insists on what a variable switched off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{flag} asks for the ssh-agent with `{asked}`, and {variable} says `off`")]
pub struct Contradiction {
    pub flag: Origin,
    pub asked: SshAgent,
    pub variable: Origin,
}

/// The flags on top of the variables.
pub(super) fn joined(flags: Layer, variables: Layer) -> Result<Layer, Contradiction> {
    let switched_off = variables.ssh_agent.clone().filter(is_off);
    match (&flags.ssh_agent, switched_off) {
        (Some(Setting { value: asked @ (SshAgent::On | SshAgent::Required), origin }), Some(off)) => {
            Err(Contradiction { flag: origin.clone(), asked: *asked, variable: off.origin })
        }
        (_, Some(off)) => Ok(Layer { ssh_agent: Some(off), ..flags.or(variables) }),
        (_, None) => Ok(flags.or(variables)),
    }
}

/// The variables read until now, and one more, which holds if it switches the agent off.
pub(super) fn with_switch(all: Layer, one: Layer) -> Layer {
    let already = all.ssh_agent.as_ref().is_some_and(is_off);
    match one.ssh_agent.filter(is_off) {
        Some(off) if !already => Layer { ssh_agent: Some(off), ..all },
        _ => all,
    }
}

/// The word a variable means. Launchers read theirs without regard to case and blanks, so we do.
pub(super) fn word(value: &OsStr) -> Result<String, ValueError> {
    let text = value.to_str().ok_or(ValueError::NotText)?;
    Ok(text.trim().to_ascii_lowercase())
}

fn is_off(setting: &Setting<SshAgent>) -> bool {
    setting.value == SshAgent::Off
}

#[cfg(test)]
mod tests {
    use super::super::variables;
    use super::*;
    use crate::env::Environment;

    fn agent(flag: Option<SshAgent>, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let flag = flag.map(|value| Setting::new(value, Origin::Flag { name: "--ssh-agent".to_owned() }));
        let flags = Layer { ssh_agent: flag, ..Layer::default() };
        let variables = variables::layer(&Environment::of(variables)).map_err(|error| error.to_string())?;
        let joined = joined(flags, variables).map_err(|error| error.to_string())?;
        Ok(joined.ssh_agent.map(|setting| format!("{} by {}", setting.value, setting.origin)))
    }

    const OURS: &str = "SANDTABLE_SSH_AGENT";
    const THEIRS: &str = "LLXPRT_SANDBOX_SSH_AGENT";
    const OLD: &str = "SANDBOX_SSH_AGENT";

    #[test]
    fn off_in_any_variable_holds() {
        for (name, others) in [(OLD, [OURS, THEIRS]), (THEIRS, [OURS, OLD]), (OURS, [THEIRS, OLD])] {
            let said = Ok(Some(format!("off by variable {name}")));
            assert_eq!(agent(None, &[(name, "off"), (others[0], "on"), (others[1], "required")]), said);
            assert_eq!(agent(Some(SshAgent::Auto), &[(name, " OFF ")]), said);
        }
    }

    #[test]
    fn otherwise_the_first_that_says_something_counts() {
        assert_eq!(
            agent(None, &[(THEIRS, "On"), (OLD, "auto")]),
            Ok(Some(format!("on by variable {THEIRS}")))
        );
        assert_eq!(
            agent(None, &[(OURS, ""), (THEIRS, ""), (OLD, "required")]),
            Ok(Some(format!("required by variable {OLD}")))
        );
        assert_eq!(
            agent(Some(SshAgent::Off), &[(OURS, "on")]),
            Ok(Some("off by flag --ssh-agent".to_owned()))
        );
        assert_eq!(agent(None, &[]), Ok(None));
    }

    #[test]
    fn a_flag_that_insists_on_what_is_switched_off_is_refused_with_both_names() {
        insta::assert_snapshot!(agent(Some(SshAgent::On), &[(OLD, "off")]).unwrap_err(), @"flag --ssh-agent asks for the ssh-agent with `on`, and variable SANDBOX_SSH_AGENT says `off`");
        assert!(agent(Some(SshAgent::Required), &[(THEIRS, "off"), (OLD, "on")]).is_err());
    }

    #[test]
    fn an_unknown_word_is_refused() {
        for word in ["false", "0", "yes"] {
            assert!(agent(None, &[(OLD, word)]).unwrap_err().contains(OLD), "{word}");
        }
    }
}
