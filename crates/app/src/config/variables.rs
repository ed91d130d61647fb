//! The layer that comes from the environment.
//!
//! Every variable of the table is read, even one that a stronger one outvotes: a value that means nothing
//! is an error wherever it stands.

use std::ffi::OsStr;

use sandtable_sandbox::model::choice::UnknownWord;
use sandtable_sandbox::model::container::{Port, PortError};
use sandtable_sandbox::model::resolved::Warning;
use sandtable_sandbox::model::setting::{Origin, Setting};

use super::ConfigError;
use super::agent;
use super::key::{Key, closest};
use super::layer::Layer;
use super::names::{self, Dialect, SettingVariable};
use super::value::{Raw, ValueError};
use crate::env::{self, Environment};

/// What the variables say.
pub(super) fn layer(environment: &Environment) -> Result<Layer, ConfigError> {
    refuse_unknown(environment)?;
    check_identity(environment)?;
    debug_port(environment)?;
    let mut all = Layer::default();
    for variable in names::all() {
        let Some(value) = environment.get(variable.name) else { continue };
        let mut one =
            read(&variable, value).map_err(|source| ConfigError::Variable { name: variable.name, source })?;
        if !all.mounts.is_empty() {
            // The variables are names of one list, not lists that add up.
            one.mounts.clear();
        }
        all = agent::with_switch(all.or(one.clone()), one);
    }
    Ok(all)
}

/// What the user should know about variables that change nothing.
pub(super) fn warnings(environment: &Environment) -> Vec<Warning> {
    let nested = environment.get(env::SANDBOX).map(|name| {
        let name = name.to_string_lossy();
        Warning::new("nested", format!("`SANDBOX` is `{name}`: this runs inside another sandbox"))
    });
    nested.into_iter().collect()
}

fn refuse_unknown(environment: &Environment) -> Result<(), ConfigError> {
    let known = || names::all().map(|variable| variable.name);
    for name in environment.names().filter(|name| name.starts_with(env::OWN_PREFIX)) {
        if !known().chain(env::HARNESS.iter().copied()).any(|known| known == name) {
            let meant = closest(name, known());
            return Err(ConfigError::UnknownVariable { name: name.to_owned(), meant });
        }
    }
    Ok(())
}

/// The launcher asks whether files made inside shall be the caller's. Here they always are; to say so is fine,
/// to want it otherwise is not.
fn check_identity(environment: &Environment) -> Result<(), ConfigError> {
    let Some(value) = environment.get(env::SET_UID_GID) else { return Ok(()) };
    let refused = |source| Err(ConfigError::Variable { name: env::SET_UID_GID, source });
    match value.to_str().map(|text| text.trim().to_ascii_lowercase()).as_deref() {
        Some("1" | "true") => Ok(()),
        Some("0" | "false") => refused(ValueError::ForeignFiles),
        _ => refused(ValueError::Switch(value.to_string_lossy().into_owned())),
    }
}

/// The port for a debugger. `DEBUG` is a name that many programs use: only the launcher's own values count.
pub(super) fn debug_port(environment: &Environment) -> Result<Option<Setting<Port>>, ConfigError> {
    let on = environment.get(env::DEBUG).is_some_and(|value| value == "1" || value == "true");
    if !on {
        return Ok(None);
    }
    let refused = |source| ConfigError::Variable { name: env::DEBUG_PORT, source };
    let text = environment.get(env::DEBUG_PORT).unwrap_or(OsStr::new(env::DEFAULT_DEBUG_PORT));
    let text = text.to_str().ok_or_else(|| refused(ValueError::NotText))?;
    let port: Port = text.parse().map_err(|error: PortError| refused(error.into()))?;
    Ok(Some(Setting::new(port, Origin::Variable { name: env::DEBUG.to_owned() })))
}

fn read(variable: &SettingVariable, value: &OsStr) -> Result<Layer, ValueError> {
    let raw = match (variable.dialect, variable.key) {
        (Dialect::Launcher, Key::Engine) => Raw::Text(launcher_engine(value)?.into()),
        (Dialect::Launcher, Key::Network) => Raw::Text(launcher_network(value)?.into()),
        (_, Key::SshAgent) => Raw::Text(agent::word(value)?.into()),
        (_, key) => Raw::from_variable(key.kind(), value.to_owned())?,
    };
    Layer::of(variable.key, raw, &Origin::Variable { name: variable.name.to_owned() })
}

/// The engine a launcher means. It reads its words without regard to case and blanks, so we do.
fn launcher_engine(value: &OsStr) -> Result<&'static str, ValueError> {
    let text = value.to_str().ok_or(ValueError::NotText)?;
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "auto" => Ok("auto"),
        "docker" => Ok("docker"),
        "podman" => Ok("podman"),
        "sandbox-exec" | "seatbelt" => Ok("seatbelt"),
        "native" => Ok("native"),
        "0" | "false" => Err(ValueError::SwitchedOff(text.to_owned())),
        _ => Err(UnknownWord {
            given: text.to_owned(),
            known: "`1`, `true`, `docker`, `podman`, `sandbox-exec`, `auto`, `native`, `seatbelt`",
        }
        .into()),
    }
}

/// The network a launcher means.
fn launcher_network(value: &OsStr) -> Result<&'static str, ValueError> {
    let text = value.to_str().ok_or(ValueError::NotText)?;
    match text.trim().to_ascii_lowercase().as_str() {
        "off" | "none" => Ok("none"),
        "on" | "nat" => Ok("nat"),
        "host" => Ok("host"),
        "proxied" => Ok("proxied"),
        _ => Err(UnknownWord {
            given: text.to_owned(),
            known: "`off`, `on`, `proxied`, `none`, `nat`, `host`",
        }
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use sandtable_sandbox::model::spec::{EngineChoice, Network};

    use super::*;

    fn engine(value: &str) -> Option<EngineChoice> {
        let layer = layer(&Environment::of(&[("LLXPRT_SANDBOX", value)])).ok()?;
        layer.engine.map(|engine| engine.value)
    }

    #[test]
    fn the_launchers_engine_words_are_understood() {
        assert_eq!(engine("1"), Some(EngineChoice::Auto));
        assert_eq!(engine(" TRUE "), Some(EngineChoice::Auto));
        assert_eq!(engine("docker"), Some(EngineChoice::Docker));
        assert_eq!(engine("podman"), Some(EngineChoice::Podman));
        assert_eq!(engine("sandbox-exec"), Some(EngineChoice::Seatbelt));
        assert_eq!(engine("firejail"), None);
        assert_eq!(engine(""), None);
    }

    #[test]
    fn a_launcher_cannot_switch_the_sandbox_off() {
        for off in ["0", "false", "False"] {
            let refused = layer(&Environment::of(&[("LLXPRT_SANDBOX", off)]));
            let switched_off = |error: &ConfigError| {
                matches!(error, ConfigError::Variable { source: ValueError::SwitchedOff(_), .. })
            };
            assert!(refused.is_err_and(|error| switched_off(&error)), "{off}");
        }
    }

    #[test]
    fn of_several_variables_for_one_setting_the_first_of_the_table_wins() {
        let network = |variables: &[(&str, &str)]| {
            layer(&Environment::of(variables)).expect("known words").network.map(|network| network.value)
        };
        let (ours, theirs, old) =
            (("SANDTABLE_NETWORK", "host"), ("LLXPRT_SANDBOX_NETWORK", "on"), ("SANDBOX_NETWORK", "off"));
        assert_eq!(network(&[ours, theirs, old]), Some(Network::Host));
        assert_eq!(network(&[theirs, old]), Some(Network::Nat));
        assert_eq!(network(&[old]), Some(Network::None));
        assert_eq!(
            network(&[("SANDTABLE_NETWORK", ""), ("LLXPRT_SANDBOX_NETWORK", ""), old]),
            Some(Network::None)
        );
        let mounts =
            layer(&Environment::of(&[("LLXPRT_SANDBOX_MOUNTS", "/a,/b:/c:rw"), ("SANDBOX_MOUNTS", "/d")]));
        assert_eq!(mounts.expect("two mounts").mounts.len(), 2);
    }

    #[test]
    fn no_variable_of_the_table_takes_an_unknown_value() {
        for variable in names::all() {
            let bad = match variable.key {
                // Any path will do for these.
                Key::Directory | Key::Report | Key::Expose | Key::AgentHome | Key::EnvFile => continue,
                Key::Mounts => "/a:/b:rx",
                Key::Hide => "/absolute",
                Key::EngineFlags | Key::ProxyCommand => "$HOME",
                _ => "No such word",
            };
            let refused = layer(&Environment::of(&[(variable.name, bad)]));
            let named = |error: &ConfigError| matches!(error, ConfigError::Variable { name, .. } if *name == variable.name);
            assert!(refused.as_ref().is_err_and(named), "{}: {refused:?}", variable.name);
        }
    }

    #[test]
    fn a_bad_value_is_an_error_even_when_it_would_not_count() {
        let masked = Environment::of(&[("SANDTABLE_NETWORK", "none"), ("SANDBOX_NETWORK", "opne")]);
        assert!(layer(&masked).is_err());
    }

    #[test]
    fn files_made_inside_are_the_callers_and_nobody_else_can_be_asked_for() {
        let set = |value: &str| layer(&Environment::of(&[("SANDBOX_SET_UID_GID", value)]));
        assert!(set("1").is_ok() && set("True").is_ok() && set("").is_ok());
        for refused in ["0", "false", "auto"] {
            assert!(matches!(set(refused), Err(ConfigError::Variable { name: "SANDBOX_SET_UID_GID", .. })));
        }
    }

    #[test]
    fn a_misspelt_variable_is_an_error() {
        let refused = layer(&Environment::of(&[("SANDTABLE_NETWROK", "none")]));
        assert!(matches!(
            refused,
            Err(ConfigError::UnknownVariable { meant: Some("SANDTABLE_NETWORK"), .. })
        ));
        assert!(layer(&Environment::of(&[("SANDTABLE_NETWROK", "")])).is_ok());
    }

    #[test]
    fn variables_without_effect_are_reported() {
        let set = Environment::of(&[("SANDBOX", "tidy-lark"), ("SANDBOX_FLAGS", "")]);
        let codes: Vec<String> = warnings(&set).into_iter().map(|warning| warning.code).collect();
        assert_eq!(codes, ["nested"]);
    }
}
