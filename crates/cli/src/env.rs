//! The environment: the only place that reads it, and the only place that knows the names.
//!
//! An empty variable counts as unset, everywhere. Variables that set a setting are one table
//! ([`SETTINGS`]), strongest first for each setting; what their values mean is `config`'s business.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use sandtable_merge::CONFIGURING;
use sandtable_sandbox::host::Host;
use sandtable_sandbox::model::path::HostPath;

use crate::config::key::Key;

/// The home directory: base of the XDG defaults, and what `~/` means in the user's file.
pub(crate) const HOME: &str = "HOME";
/// Our state lives in its `sandtable`; `$HOME/.local/share` when unset.
pub(crate) const XDG_DATA_HOME: &str = "XDG_DATA_HOME";
/// The user's file is its `sandtable/config.toml`; `$HOME/.config` when unset.
pub(crate) const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// The shell that `sandtable shell` runs, if it is there inside; `/bin/sh` otherwise.
pub(crate) const SHELL: &str = "SHELL";
/// Where temporary files are made; `/tmp` when unset.
pub(crate) const TMPDIR: &str = "TMPDIR";
/// Any value: no colour.
pub(crate) const NO_COLOR: &str = "NO_COLOR";
/// `dumb`: no colour.
pub(crate) const TERM: &str = "TERM";
/// The launcher's question whose the files made inside are.
pub(crate) const SET_UID_GID: &str = "SANDBOX_SET_UID_GID";
/// The launcher's wish for a debugger: `1` or `true`; any other value is another program's.
pub(crate) const DEBUG: &str = "DEBUG";
/// The port for it; [`DEFAULT_DEBUG_PORT`] when unset.
pub(crate) const DEBUG_PORT: &str = "DEBUG_PORT";
/// Where Node's debugger listens.
pub(crate) const DEFAULT_DEBUG_PORT: &str = "9229";
/// Set inside a sandbox to its name. On the host it is only reported; it never switches anything off.
pub(crate) const SANDBOX: &str = "SANDBOX";
/// How our own variables start. One that is not in [`SETTINGS`] is an error: it is a misspelt wish.
pub(crate) const OWN_PREFIX: &str = "SANDTABLE_";
/// Set inside a sandbox to the place of its policy card; nothing to somebody who asks for another sandbox.
pub(crate) const POLICY_CARD: &str = sandtable_sandbox::resolve::CARD_VARIABLE;
/// Names of our prefix that mean nothing to the program: the tests and benchmarks of this repository set
/// them for themselves, and may call the program with them still set.
pub(crate) const HARNESS: &[&str] = &[
    POLICY_CARD,
    "SANDTABLE_BIN",
    "SANDTABLE_FAILPOINT_BIN",
    "SANDTABLE_INSIDE_NULL",
    "SANDTABLE_LONG",
    "SANDTABLE_TEST_DOCKER",
    "SANDTABLE_TEST_ROOTS",
    "SANDTABLE_TEST_SEED",
    "SANDTABLE_TEST_USER",
    "SANDTABLE_TEST_VM",
    // Names a control whose step is skipped. Only builds with the feature read it; all others refuse it.
    #[cfg(feature = "failpoints")]
    "SANDTABLE_FAIL_SKIP",
];

/// A variable that sets a setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettingVariable {
    pub(crate) name: &'static str,
    pub(crate) key: Key,
    pub(crate) dialect: Dialect,
}

/// Whose words a variable uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The words of the flags and files.
    Own,
    /// The launcher's words, and ours.
    Launcher,
}

/// Every variable that sets a setting. Of two for the same setting, the earlier wins.
pub(crate) const SETTINGS: &[SettingVariable] = &[
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

/// Why the environment is of no use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no place for sandboxes: neither `{XDG_DATA_HOME}` nor `{HOME}` is set")]
    NoHome,
    #[error("variable `{name}` is not an absolute path: `{}`", .value.display())]
    NotAPath { name: &'static str, value: PathBuf },
}

/// The variables of this process as they are, for PID 1 of a container.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub(crate) fn pairs() -> Vec<OsString> {
    let joined = |(name, value): (OsString, OsString)| {
        let mut pair = name;
        pair.push("=");
        pair.push(value);
        pair
    };
    std::env::vars_os().map(joined).collect()
}

/// The variables of this process, or of a test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Reads the environment. Called once, in `main`.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    pub(crate) fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    #[cfg(test)]
    pub(crate) fn of(variables: &[(&str, &str)]) -> Self {
        Self(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    /// A variable's value, unless it is unset or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The names of the variables that are set and not empty, as far as they are text.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, value)| !value.is_empty()).filter_map(|(name, _)| name.to_str())
    }

    pub(crate) fn home(&self) -> Result<Option<HostPath>, Error> {
        self.path(HOME)
    }

    /// What the variables say about git's configuration. A path in one of them is from the current directory, as for git.
    pub(crate) fn git_variables(&self) -> Vec<(OsString, OsString)> {
        let here = std::env::current_dir().unwrap_or_default();
        let known = |name: &str| {
            CONFIGURING
                .iter()
                .any(|known| name == *known || (known.ends_with('_') && name.starts_with(known)))
        };
        let value = |name: &str| match name {
            "XDG_CONFIG_HOME" => {
                self.get(name).map(OsStr::to_owned).filter(|path| Path::new(path).is_absolute())
            }
            "GIT_CONFIG_GLOBAL" | "GIT_CONFIG_SYSTEM" => {
                let path = self.0.get(OsStr::new(name));
                path.map(|path| if path.is_empty() { path.clone() } else { here.join(path).into_os_string() })
            }
            _ => self.0.get(OsStr::new(name)).cloned(),
        };
        let names = self.0.keys().filter_map(|name| name.to_str()).filter(|name| known(name));
        names.filter_map(|name| Some((name.into(), value(name)?))).collect()
    }

    /// Where sandboxes are kept.
    pub(crate) fn data(&self) -> Result<HostPath, Error> {
        if let Some(base) = self.path(XDG_DATA_HOME)? {
            return Ok(base.join("sandtable"));
        }
        Ok(self.home()?.ok_or(Error::NoHome)?.join(".local/share/sandtable"))
    }

    /// Where the user's file would be.
    pub(crate) fn user_file(&self) -> Result<Option<PathBuf>, Error> {
        Ok(self.settings()?.map(|base| base.join("sandtable/config.toml").into()))
    }

    /// Where the user's settings are.
    pub(crate) fn settings(&self) -> Result<Option<HostPath>, Error> {
        match self.path(XDG_CONFIG_HOME)? {
            Some(base) => Ok(Some(base)),
            None => Ok(self.home()?.map(|home| home.join(".config"))),
        }
    }

    /// The caller, as the library sees it.
    pub(crate) fn host(&self) -> Result<Host, Error> {
        let (home, data) = (self.home()?, self.data()?);
        let uid = rustix::process::getuid().as_raw();
        let gid = rustix::process::getgid().as_raw();
        let executable = std::env::current_exe().ok().and_then(|path| HostPath::new(path).ok());
        let (environment, odd_variables) = (BTreeMap::new(), Vec::new());
        let foreign =
            std::env::current_dir().into_iter().filter_map(|path| HostPath::new(path).ok()).collect();
        let tools = Vec::new();
        let mut host = Host { uid, gid, home, data, executable, environment, odd_variables, foreign, tools };
        for (name, value) in &self.0 {
            if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
                host.environment.insert(name.to_owned(), value.to_owned());
            } else {
                host.odd_variables.push(name.to_string_lossy().into_owned());
            }
        }
        Ok(host)
    }

    fn path(&self, name: &'static str) -> Result<Option<HostPath>, Error> {
        let refused = |value: &OsStr| Error::NotAPath { name, value: Path::new(value).to_owned() };
        self.get(name).map(|value| HostPath::new(value).map_err(|_| refused(value))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn text(path: &HostPath) -> String {
        path.to_string()
    }

    #[test]
    fn state_lives_in_the_xdg_directory_or_below_home() {
        let both = Environment::of(&[(HOME, "/home/u"), (XDG_DATA_HOME, "/data")]);
        assert_eq!(both.data().as_ref().map(text).ok(), Some("/data/sandtable".to_owned()));
        let home = Environment::of(&[(HOME, "/home/u"), (XDG_DATA_HOME, "")]);
        assert_eq!(home.data().as_ref().map(text).ok(), Some("/home/u/.local/share/sandtable".to_owned()));
        let data = Environment::of(&[(XDG_DATA_HOME, "/data")]);
        assert_eq!(
            data.host().map(|host| (host.home, text(&host.data))).ok(),
            Some((None, "/data/sandtable".to_owned()))
        );
    }

    #[test]
    fn without_a_place_for_state_nothing_starts() {
        assert!(matches!(Environment::default().data(), Err(Error::NoHome)));
        let relative = Environment::of(&[(XDG_DATA_HOME, "data")]);
        assert!(matches!(relative.data(), Err(Error::NotAPath { name: XDG_DATA_HOME, .. })));
        let home = Environment::of(&[(HOME, "u"), (XDG_DATA_HOME, "/data")]);
        assert!(matches!(home.host(), Err(Error::NotAPath { name: HOME, .. })));
    }

    #[test]
    fn variables_that_are_not_text_are_named_only() {
        let mut environment = Environment::of(&[(HOME, "/home/u"), ("A", "b")]);
        environment.0.insert("ODD".into(), OsString::from_vec(vec![0xff]));
        let host = environment.host().expect("home is set");
        assert_eq!(host.odd_variables, ["ODD"]);
        assert_eq!(host.environment.get("A").map(String::as_str), Some("b"));
    }

    #[test]
    fn every_setting_has_a_variable_of_its_own_name() {
        for key in Key::ALL {
            let name = format!("{OWN_PREFIX}{}", key.word().to_ascii_uppercase());
            let ours = SETTINGS.iter().find(|variable| variable.name == name);
            assert!(ours.is_some_and(|variable| variable.key == *key), "{name}");
        }
    }
}
