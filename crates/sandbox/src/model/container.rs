//! What only container engines are asked for, and what they are told apart by.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::image::Pull;
use super::path::HostPath;
use super::resolved::Variable;
use super::setting::Setting;
use super::spec::EngineChoice;

choice! {
    /// Whether options of the engine that undo the sandbox are taken.
    FlagGuard { Refuse = "refuse", Allow = "allow" }
}

choice! {
    /// Whether the image is built from the project's own recipe before it is used.
    Build { No = "no", Project = "project" }
}

choice! {
    /// Whose rights the engine has on this machine.
    EngineRights { Root = "root", Rootless = "rootless" }
}

/// What is asked of container engines only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerRequest {
    pub pull: Setting<Pull>,
    /// Options for the engine, word by word.
    pub flags: Vec<Setting<String>>,
    pub flag_guard: Setting<FlagGuard>,
    pub ports: Vec<Setting<Port>>,
    pub build: Setting<Build>,
    /// The command of a proxy that is the only way out, word by word.
    #[serde(default)]
    pub proxy: Option<Setting<Vec<String>>>,
    /// A port for a debugger, if one is wanted.
    #[serde(default)]
    pub debug: Option<Setting<Port>>,
    /// Where people are sent when an image cannot be had.
    pub support: Setting<String>,
}

impl Default for ContainerRequest {
    fn default() -> Self {
        Self {
            pull: Setting::default_value(Pull::Missing),
            flags: Vec::new(),
            flag_guard: Setting::default_value(FlagGuard::Refuse),
            ports: Vec::new(),
            build: Setting::default_value(Build::No),
            proxy: None,
            debug: None,
            support: Setting::default_value(SUPPORT.to_owned()),
        }
    }
}

/// Where a proxy command listens, in its own container and, for the command, inside.
pub const PROXY_PORT: u16 = 8877;
/// Where people are sent by default.
pub const SUPPORT: &str = "https://github.com/vybestack/llxprt-code/discussions";

choice! {
    /// How many directories an overlay of the engine can stand on.
    Lowers { One = "one", Many = "many" }
}

/// What records say that do not say it.
const fn many() -> Lowers {
    Lowers::Many
}

choice! {
    /// Whether a program is asked as if its caller had no home directory.
    Homeless { No = "no", Yes = "yes" }
}

/// What an engine's program is asked about itself, and the package it comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Questions {
    pub package: &'static str,
    /// Arguments that only look: version, runtime, version of control groups and rights, with semicolons between
    /// them; or the version alone.
    pub ask: &'static [&'static str],
    /// Whether it makes directories of its own whatever it is asked, and has to be asked without a home.
    pub homeless: Homeless,
}

impl Questions {
    /// The questions for a container engine.
    pub fn of(engine: EngineChoice) -> Option<Self> {
        match engine {
            EngineChoice::Docker => Some(Self {
                package: "docker.io",
                ask: &[
                    "info",
                    "--format",
                    "{{.ServerVersion}};{{.DefaultRuntime}};{{.CgroupVersion}};{{.SecurityOptions}}",
                ],
                homeless: Homeless::No,
            }),
            EngineChoice::Podman => {
                Some(Self { package: "podman", ask: &["--version"], homeless: Homeless::Yes })
            }
            EngineChoice::Auto | EngineChoice::Native | EngineChoice::Seatbelt => None,
        }
    }
}

/// The container engine as it is on this machine, and what it is told besides the sandbox itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The engine's command line program.
    pub program: HostPath,
    /// Exactly the variables it gets.
    pub variables: BTreeMap<String, Variable>,
    pub rights: EngineRights,
    #[serde(default = "many")]
    pub lowers: Lowers,
    /// Our own executable, which is PID 1 inside.
    pub init: HostPath,
    /// Options of the user for the engine, word by word.
    pub flags: Vec<Setting<String>>,
    pub ports: Vec<Setting<Port>>,
    /// The project's own recipe for the image, when that is built first.
    #[serde(default)]
    pub build: Option<Recipe>,
    /// The command of the proxy, when that is the way out.
    #[serde(default)]
    pub proxy: Option<Setting<Vec<String>>>,
    /// Where people are sent when an image cannot be had.
    pub support: Setting<String>,
}

/// How an image is built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    pub file: HostPath,
    /// What it can take files from.
    pub context: HostPath,
}

/// A port of the sandbox that the host's loopback address shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Port {
    pub host: u16,
    pub inside: u16,
}

/// Why a text is no port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a port: use a number from `1` to `65535`, or two of them as in `8080:80`")]
pub struct PortError(pub String);

impl FromStr for Port {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<u16>().ok().filter(|number| digits && *number > 0)
        };
        let (host, inside) = text.split_once(':').unwrap_or((text, text));
        match (number(host), number(inside)) {
            (Some(host), Some(inside)) => Ok(Self { host, inside }),
            _ => Err(PortError(text.to_owned())),
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.inside)
    }
}

impl TryFrom<String> for Port {
    type Error = PortError;

    fn try_from(text: String) -> Result<Self, PortError> {
        text.parse()
    }
}

impl From<Port> for String {
    fn from(port: Port) -> Self {
        port.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_one_number_or_two() {
        assert_eq!("8080".parse(), Ok(Port { host: 8080, inside: 8080 }));
        assert_eq!("8080:80".parse(), Ok(Port { host: 8080, inside: 80 }));
        for bad in ["", "0", "65536", "80:", ":80", "80:0", "a", "+80", "0.0.0.0:80:80", "80-90"] {
            assert_eq!(bad.parse::<Port>(), Err(PortError(bad.to_owned())));
        }
    }
}
