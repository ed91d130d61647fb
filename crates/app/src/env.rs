//! The environment of the caller, as a value that a surface makes, and the names of the variables that mean something.
//!
//! An empty variable counts as unset, everywhere. The variables that set a setting are a table in `config`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use sandtable_merge::CONFIGURING;
use sandtable_sandbox::host::Host;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::model::spec::{MountAccess, Spec};

/// The home directory: base of the XDG defaults, and what `~/` means in the user's file.
pub const HOME: &str = "HOME";
/// Our state lives in its `sandtable`; `$HOME/.local/share` when unset.
pub const XDG_DATA_HOME: &str = "XDG_DATA_HOME";
/// The user's file is its `sandtable/config.toml`; `$HOME/.config` when unset.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
/// The shell that `sandtable shell` runs, if it is there inside; `/bin/sh` otherwise.
pub const SHELL: &str = "SHELL";
/// Where temporary files are made; `/tmp` when unset.
pub const TMPDIR: &str = "TMPDIR";
/// Any value: no colour.
pub const NO_COLOR: &str = "NO_COLOR";
/// `dumb`: no colour.
pub const TERM: &str = "TERM";
/// The launcher's question whose the files made inside are.
pub const SET_UID_GID: &str = "SANDBOX_SET_UID_GID";
/// The launcher's wish for a debugger: `1` or `true`; any other value is another program's.
pub const DEBUG: &str = "DEBUG";
/// The port for it; [`DEFAULT_DEBUG_PORT`] when unset.
pub const DEBUG_PORT: &str = "DEBUG_PORT";
/// Where Node's debugger listens.
pub const DEFAULT_DEBUG_PORT: &str = "9229";
/// Set inside a sandbox to its name. On the host it is only reported; it never switches anything off.
pub const SANDBOX: &str = "SANDBOX";
/// How our own variables start. One that sets nothing is an error: it is a misspelt wish.
pub const OWN_PREFIX: &str = "SANDTABLE_";
/// Set inside a sandbox to the place of its policy card; nothing to somebody who asks for another sandbox.
pub const POLICY_CARD: &str = sandtable_sandbox::resolve::CARD_VARIABLE;
/// Names of our prefix that mean nothing to the program: the tests and benchmarks of this repository set
/// them for themselves, and may call the program with them still set.
pub const HARNESS: &[&str] = &[
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

/// Why the environment is of no use.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    #[error("there is no place for sandboxes: neither `{XDG_DATA_HOME}` nor `{HOME}` is set")]
    NoHome,
    #[error("variable `{name}` is not an absolute path: `{}`", .value.display())]
    NotAPath { name: &'static str, value: PathBuf },
}

/// The variables of the caller.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    /// `sandtable`, where that is not the program that runs.
    executable: Option<HostPath>,
}

impl Environment {
    /// An environment of these variables and no other.
    pub fn of(variables: &[(&str, &str)]) -> Self {
        variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
    }

    /// The same for a program that is not `sandtable` itself, with the place of that.
    #[must_use]
    pub fn with_executable(self, executable: HostPath) -> Self {
        Self { executable: Some(executable), ..self }
    }

    /// A variable's value, unless it is unset or empty.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The names of the variables that are set and not empty, as far as they are text.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().filter(|(_, value)| !value.is_empty()).filter_map(|(name, _)| name.to_str())
    }

    pub fn home(&self) -> Result<Option<HostPath>, EnvironmentError> {
        self.path(HOME)
    }

    /// What the variables say about git's configuration. A path in one of them is from the current directory, as for git.
    pub fn git_variables(&self) -> Vec<(OsString, OsString)> {
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
                let path = self.variables.get(OsStr::new(name));
                path.map(|path| if path.is_empty() { path.clone() } else { here.join(path).into_os_string() })
            }
            _ => self.variables.get(OsStr::new(name)).cloned(),
        };
        let names = self.variables.keys().filter_map(|name| name.to_str()).filter(|name| known(name));
        names.filter_map(|name| Some((name.into(), value(name)?))).collect()
    }

    /// Where sandboxes are kept.
    pub fn data(&self) -> Result<HostPath, EnvironmentError> {
        if let Some(base) = self.path(XDG_DATA_HOME)? {
            return Ok(base.join("sandtable"));
        }
        Ok(self.home()?.ok_or(EnvironmentError::NoHome)?.join(".local/share/sandtable"))
    }

    /// Where the user's file would be.
    pub fn user_file(&self) -> Result<Option<PathBuf>, EnvironmentError> {
        Ok(self.settings()?.map(|base| base.join("sandtable/config.toml").into()))
    }

    /// Where the user's settings are.
    pub fn settings(&self) -> Result<Option<HostPath>, EnvironmentError> {
        match self.path(XDG_CONFIG_HOME)? {
            Some(base) => Ok(Some(base)),
            None => Ok(self.home()?.map(|home| home.join(".config"))),
        }
    }

    /// The caller, as the library sees it.
    pub fn host(&self) -> Result<Host, EnvironmentError> {
        let (home, data) = (self.home()?, self.data()?);
        let uid = rustix::process::getuid().as_raw();
        let gid = rustix::process::getgid().as_raw();
        let current = || std::env::current_exe().ok().and_then(|path| HostPath::new(path).ok());
        let executable = self.executable.clone().or_else(current);
        let (environment, odd_variables) = (BTreeMap::new(), Vec::new());
        let foreign =
            std::env::current_dir().into_iter().filter_map(|path| HostPath::new(path).ok()).collect();
        let tools = Vec::new();
        let mut host = Host { uid, gid, home, data, executable, environment, odd_variables, foreign, tools };
        for (name, value) in &self.variables {
            if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
                host.environment.insert(name.to_owned(), value.to_owned());
            } else {
                host.odd_variables.push(name.to_string_lossy().into_owned());
            }
        }
        Ok(host)
    }

    /// The same for a sandbox of `spec`.
    pub fn host_for(&self, spec: &Spec) -> Result<Host, EnvironmentError> {
        let mut host = self.host()?;
        host.foreign.extend(foreign(spec));
        Ok(host)
    }

    fn path(&self, name: &'static str) -> Result<Option<HostPath>, EnvironmentError> {
        let refused = |value: &OsStr| EnvironmentError::NotAPath { name, value: Path::new(value).to_owned() };
        self.get(name).map(|value| HostPath::new(value).map_err(|_| refused(value))).transpose()
    }
}

/// What a sandbox of `spec` may have written: nothing from there works for us outside.
fn foreign(spec: &Spec) -> impl Iterator<Item = HostPath> {
    let lent = spec.mounts.iter().filter(|mount| mount.value.access == MountAccess::Write);
    let places = lent.map(|mount| &mount.value.source).chain([&spec.directory.value]);
    places.filter_map(|place| HostPath::new(place).ok())
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self { variables: variables.into_iter().collect(), executable: None }
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
        assert!(matches!(Environment::default().data(), Err(EnvironmentError::NoHome)));
        let relative = Environment::of(&[(XDG_DATA_HOME, "data")]);
        assert!(matches!(relative.data(), Err(EnvironmentError::NotAPath { name: XDG_DATA_HOME, .. })));
        let home = Environment::of(&[(HOME, "u"), (XDG_DATA_HOME, "/data")]);
        assert!(matches!(home.host(), Err(EnvironmentError::NotAPath { name: HOME, .. })));
    }

    #[test]
    fn variables_that_are_not_text_are_named_only() {
        let mut environment = Environment::of(&[(HOME, "/home/u"), ("A", "b")]);
        environment.variables.insert("ODD".into(), OsString::from_vec(vec![0xff]));
        let host = environment.host().expect("home is set");
        assert_eq!(host.odd_variables, ["ODD"]);
        assert_eq!(host.environment.get("A").map(String::as_str), Some("b"));
    }
}
