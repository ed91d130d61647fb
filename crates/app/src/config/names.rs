//! The names of the variables that set a setting, in one table; what their values mean is the business of
//! [`variables`](super::variables).

use super::key::Key;

/// A variable that sets a setting.
#[derive(Clone, Copy, Debug)]
pub(super) struct SettingVariable {
    pub(super) name: &'static str,
    pub(super) key: Key,
    pub(super) dialect: Dialect,
}

/// Whose words a variable uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The words of the flags and files.
    Own,
    /// The launcher's words, and ours.
    Launcher,
}

/// Every variable that sets a setting, ours first. Of two for the same setting, the earlier wins.
pub(super) fn all() -> impl Iterator<Item = SettingVariable> {
    let own = |key: &Key| SettingVariable { name: key.variable(), key: *key, dialect: Dialect::Own };
    Key::ALL.iter().map(own).chain(LAUNCHER.iter().copied())
}

/// The launcher's.
const LAUNCHER: &[SettingVariable] = &[
    launcher("LLXPRT_SANDBOX", Key::Engine),
    launcher("LLXPRT_SANDBOX_IMAGE", Key::Image),
    launcher("LLXPRT_SANDBOX_NETWORK", Key::Network),
    launcher("LLXPRT_SANDBOX_PROXY_COMMAND", Key::ProxyCommand),
    launcher("LLXPRT_SANDBOX_MOUNTS", Key::Mounts),
    launcher("LLXPRT_SANDBOX_CPUS", Key::Cpus),
    launcher("LLXPRT_SANDBOX_MEMORY", Key::Memory),
    launcher("LLXPRT_SANDBOX_PIDS", Key::Pids),
    launcher("LLXPRT_SANDBOX_SSH_AGENT", Key::SshAgent),
    launcher("SANDBOX_IMAGE", Key::Image),
    launcher("BUILD_SANDBOX", Key::Build),
    launcher("SANDBOX_FLAGS", Key::EngineFlags),
    launcher("SANDBOX_PORTS", Key::Publish),
    launcher("SEATBELT_PROFILE", Key::SeatbeltProfile),
    launcher("SANDBOX_NETWORK", Key::Network),
    launcher("SANDBOX_PROXY_COMMAND", Key::ProxyCommand),
    launcher("SANDBOX_MOUNTS", Key::Mounts),
    launcher("SANDBOX_ENV", Key::Env),
    launcher("SANDBOX_CPUS", Key::Cpus),
    launcher("SANDBOX_MEMORY", Key::Memory),
    launcher("SANDBOX_PIDS", Key::Pids),
    launcher("SANDBOX_SSH_AGENT", Key::SshAgent),
];

const fn launcher(name: &'static str, key: Key) -> SettingVariable {
    SettingVariable { name, key, dialect: Dialect::Launcher }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::OWN_PREFIX;

    #[test]
    fn every_setting_has_a_variable_of_its_own_name() {
        for key in Key::ALL {
            assert_eq!(key.variable(), format!("{OWN_PREFIX}{}", key.word().to_ascii_uppercase()));
            assert!(all().any(|variable| variable.name == key.variable() && variable.key == *key));
        }
    }
}
