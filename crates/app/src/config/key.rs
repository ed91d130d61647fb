//! The names of the settings, one list for flags, variables and files.

/// A setting, as named in configuration files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Engine,
    Image,
    Pull,
    Build,
    Publish,
    EngineFlags,
    ProxyCommand,
    AllowFlags,
    SupportUrl,
    SeatbeltProfile,
    Profile,
    Name,
    Directory,
    Mode,
    Base,
    Mounts,
    Expose,
    Tools,
    Hide,
    AgentHome,
    Env,
    EnvFile,
    PassEnv,
    Network,
    Cpus,
    Memory,
    Pids,
    Disk,
    Timeout,
    SshAgent,
    GitConfig,
    Secrets,
    Rm,
    BestEffort,
    AllowSource,
    DryRun,
    Json,
    Report,
    Quiet,
    Tty,
    Detach,
}

/// What kind of value a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Path,
    Switch,
    List,
    /// A list whose items are taken as they are.
    Words,
    /// A list that a variable writes as one line, in the manner of a shell.
    Line,
}

impl Key {
    pub const ALL: &'static [Self] = &[
        Self::Engine,
        Self::Image,
        Self::Pull,
        Self::Build,
        Self::Publish,
        Self::EngineFlags,
        Self::ProxyCommand,
        Self::AllowFlags,
        Self::SupportUrl,
        Self::SeatbeltProfile,
        Self::Profile,
        Self::Name,
        Self::Directory,
        Self::Mode,
        Self::Base,
        Self::Mounts,
        Self::Expose,
        Self::Tools,
        Self::Hide,
        Self::AgentHome,
        Self::Env,
        Self::EnvFile,
        Self::PassEnv,
        Self::Network,
        Self::Cpus,
        Self::Memory,
        Self::Pids,
        Self::Disk,
        Self::Timeout,
        Self::SshAgent,
        Self::GitConfig,
        Self::Secrets,
        Self::Rm,
        Self::BestEffort,
        Self::AllowSource,
        Self::DryRun,
        Self::Json,
        Self::Report,
        Self::Quiet,
        Self::Tty,
        Self::Detach,
    ];

    /// The name in configuration files; in upper case and behind `SANDTABLE_`, the variable.
    pub fn word(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Image => "image",
            Self::Pull => "pull",
            Self::Build => "build",
            Self::Publish => "publish",
            Self::EngineFlags => "engine_flags",
            Self::ProxyCommand => "proxy_command",
            Self::AllowFlags => "dangerously_engine_flags",
            Self::SupportUrl => "support_url",
            Self::SeatbeltProfile => "seatbelt_profile",
            Self::Profile => "profile",
            Self::Name => "name",
            Self::Directory => "directory",
            Self::Mode => "mode",
            Self::Base => "base",
            Self::Mounts => "mounts",
            Self::Expose => "expose",
            Self::Tools => "tools",
            Self::Hide => "hide",
            Self::AgentHome => "agent_home",
            Self::Env => "env",
            Self::EnvFile => "env_file",
            Self::PassEnv => "pass_env",
            Self::Network => "network",
            Self::Cpus => "cpus",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Disk => "disk",
            Self::Timeout => "timeout",
            Self::SshAgent => "ssh_agent",
            Self::GitConfig => "git_config",
            Self::Secrets => "secrets",
            Self::Rm => "rm",
            Self::BestEffort => "best_effort",
            Self::AllowSource => "dangerously_allow_source",
            Self::DryRun => "dry_run",
            Self::Json => "json",
            Self::Report => "report",
            Self::Quiet => "quiet",
            Self::Tty => "tty",
            Self::Detach => "detach",
        }
    }

    /// The flag on the command line.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Engine => "--engine",
            Self::Image => "--image",
            Self::Pull => "--pull",
            Self::Build => "--build",
            Self::Publish => "--publish",
            Self::EngineFlags => "--engine-flags",
            Self::ProxyCommand => "--proxy-command",
            Self::AllowFlags => "--dangerously-engine-flags",
            Self::SupportUrl => "--support-url",
            Self::SeatbeltProfile => "--seatbelt-profile",
            Self::Profile => "--profile",
            Self::Name => "--name",
            Self::Directory => "--directory",
            Self::Mode => "--mode",
            Self::Base => "--base",
            Self::Mounts => "--mount",
            Self::Expose => "--expose",
            Self::Tools => "--tool",
            Self::Hide => "--hide",
            Self::AgentHome => "--agent-home",
            // A name alone passes the caller's value on.
            Self::Env | Self::PassEnv => "--env",
            Self::EnvFile => "--env-file",
            Self::Network => "--network",
            Self::Cpus => "--cpus",
            Self::Memory => "--memory",
            Self::Pids => "--pids",
            Self::Disk => "--disk",
            Self::Timeout => "--timeout",
            Self::SshAgent => "--ssh-agent",
            Self::GitConfig => "--git-config",
            Self::Secrets => "--secrets",
            Self::Rm => "--rm",
            Self::BestEffort => "--best-effort",
            Self::AllowSource => "--dangerously-allow-source",
            Self::DryRun => "--dry-run",
            Self::Json => "--json",
            Self::Report => "--report",
            Self::Quiet => "--quiet",
            Self::Tty => "--tty",
            Self::Detach => "--detach",
        }
    }

    pub fn kind(self) -> Kind {
        match self {
            Self::Directory | Self::Report => Kind::Path,
            Self::Mounts => Kind::List,
            Self::EngineFlags | Self::ProxyCommand => Kind::Line,
            Self::Expose
            | Self::Tools
            | Self::Hide
            | Self::AgentHome
            | Self::Env
            | Self::EnvFile
            | Self::PassEnv
            | Self::Publish => Kind::Words,
            Self::Rm
            | Self::BestEffort
            | Self::AllowSource
            | Self::AllowFlags
            | Self::Build
            | Self::DryRun
            | Self::Json
            | Self::Quiet
            | Self::Tty
            | Self::Detach => Kind::Switch,
            _ => Kind::Text,
        }
    }

    /// The setting of that name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|key| key.word() == word)
    }
}

/// The candidate that `given` was most likely meant to be, if one is close enough.
pub fn closest<'a>(given: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = given.len() / 3;
    candidates
        .map(|candidate| (strsim::osa_distance(given, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit.max(1))
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_setting() {
        for key in Key::ALL {
            assert_eq!(Key::from_word(key.word()), Some(*key));
        }
        assert_eq!(Key::from_word("Network"), None);
    }

    #[test]
    fn a_slip_of_the_pen_is_recognised_and_nonsense_is_not() {
        let words = || Key::ALL.iter().map(|key| key.word());
        assert_eq!(closest("netwrok", words()), Some("network"));
        assert_eq!(closest("git-config", words()), Some("git_config"));
        assert_eq!(closest("mount", words()), Some("mounts"));
        assert_eq!(closest("frobnicate", words()), None);
    }
}
