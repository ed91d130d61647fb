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

/// Every variable that sets a setting. Of two for the same setting, the earlier wins.
pub(super) const SETTINGS: &[SettingVariable] = &[
    own("SANDTABLE_ENGINE", Key::Engine),
    own("SANDTABLE_IMAGE", Key::Image),
    own("SANDTABLE_PULL", Key::Pull),
    own("SANDTABLE_BUILD", Key::Build),
    own("SANDTABLE_PUBLISH", Key::Publish),
    own("SANDTABLE_ENGINE_FLAGS", Key::EngineFlags),
    own("SANDTABLE_PROXY_COMMAND", Key::ProxyCommand),
    own("SANDTABLE_DANGEROUSLY_ENGINE_FLAGS", Key::AllowFlags),
    own("SANDTABLE_SUPPORT_URL", Key::SupportUrl),
    own("SANDTABLE_SEATBELT_PROFILE", Key::SeatbeltProfile),
    own("SANDTABLE_PROFILE", Key::Profile),
    own("SANDTABLE_NAME", Key::Name),
    own("SANDTABLE_DIRECTORY", Key::Directory),
    own("SANDTABLE_MODE", Key::Mode),
    own("SANDTABLE_BASE", Key::Base),
    own("SANDTABLE_MOUNTS", Key::Mounts),
    own("SANDTABLE_EXPOSE", Key::Expose),
    own("SANDTABLE_TOOLS", Key::Tools),
    own("SANDTABLE_HIDE", Key::Hide),
    own("SANDTABLE_AGENT_HOME", Key::AgentHome),
    own("SANDTABLE_ENV", Key::Env),
    own("SANDTABLE_ENV_FILE", Key::EnvFile),
    own("SANDTABLE_PASS_ENV", Key::PassEnv),
    own("SANDTABLE_NETWORK", Key::Network),
    own("SANDTABLE_CPUS", Key::Cpus),
    own("SANDTABLE_MEMORY", Key::Memory),
    own("SANDTABLE_PIDS", Key::Pids),
    own("SANDTABLE_DISK", Key::Disk),
    own("SANDTABLE_TIMEOUT", Key::Timeout),
    own("SANDTABLE_SSH_AGENT", Key::SshAgent),
    own("SANDTABLE_GIT_CONFIG", Key::GitConfig),
    own("SANDTABLE_SECRETS", Key::Secrets),
    own("SANDTABLE_RM", Key::Rm),
    own("SANDTABLE_BEST_EFFORT", Key::BestEffort),
    own("SANDTABLE_DANGEROUSLY_ALLOW_SOURCE", Key::AllowSource),
    own("SANDTABLE_DRY_RUN", Key::DryRun),
    own("SANDTABLE_JSON", Key::Json),
    own("SANDTABLE_REPORT", Key::Report),
    own("SANDTABLE_QUIET", Key::Quiet),
    own("SANDTABLE_TTY", Key::Tty),
    own("SANDTABLE_DETACH", Key::Detach),
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

const fn own(name: &'static str, key: Key) -> SettingVariable {
    SettingVariable { name, key, dialect: Dialect::Own }
}

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
            let name = format!("{OWN_PREFIX}{}", key.word().to_ascii_uppercase());
            let ours = SETTINGS.iter().find(|variable| variable.name == name);
            assert!(ours.is_some_and(|variable| variable.key == *key), "{name}");
        }
    }
}
