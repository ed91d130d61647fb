//! The socket of Docker Desktop. It lies in a virtual machine, so only a container can tell whether it is there;
//! the one that is asked is of the sandbox's own image, which is there by now, and has no network.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use sandtable_launch::relay::REACH;
use serde::{Deserialize, Serialize};

use crate::model::agent::SOCKET;
use crate::model::image::ResolvedImage;
use crate::model::path::HostPath;
use crate::model::resolved::{ResolvedSpec, Variable};
use crate::process::Cli;

/// Where Docker Desktop shows the host's agent, in its virtual machine.
pub(super) const MAGIC_SOCKET: &str = "/run/host-services/ssh-auth.sock";
/// Where our own executable is in the container that looks.
const LOOKER: &str = "/sandtable-reach";
/// How long the container may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A call of the engine that succeeds if the socket is there and answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    pub program: PathBuf,
    pub variables: BTreeMap<String, Variable>,
    pub argv: Vec<String>,
}

/// The call for `spec`, if a container engine runs it.
pub(super) fn plan(spec: &ResolvedSpec) -> Option<Probe> {
    let container = spec.container.as_ref()?;
    let Some(ResolvedImage::Named { name, .. }) = &spec.image else { return None };
    let bind = |source: &str, target: &str, rest: &str| {
        ["--mount".to_owned(), format!("type=bind,source={source},target={target}{rest}")]
    };
    let fixed = ["run", "--rm", "--pull", "never", "--network", "none", "--cap-drop=ALL"].map(str::to_owned);
    let identity = ["--user".to_owned(), format!("{}:{}", spec.identity.uid, spec.identity.gid)];
    let git = ["--env".to_owned(), "GIT_DISCOVERY_ACROSS_FILESYSTEM=1".to_owned()];
    let look = ["--entrypoint", LOOKER, name.as_str(), REACH, SOCKET].map(str::to_owned);
    let argv = fixed
        .into_iter()
        .chain(identity)
        .chain(git)
        .chain(bind(MAGIC_SOCKET, SOCKET, ""))
        .chain(bind(&container.init.to_string(), LOOKER, ",readonly"))
        .chain(look)
        .collect();
    Some(Probe { program: container.program.clone().into(), variables: container.variables.clone(), argv })
}

/// Looks.
pub(super) fn check(probe: &Probe) -> Result<(), String> {
    let program = HostPath::new(&probe.program).map_err(|error| error.to_string())?;
    let call = Cli::new(program).args(&probe.argv);
    let variables = probe.variables.iter();
    let call = variables.fold(call, |call, (name, variable)| call.variable(name, &variable.value));
    let finished = call.finish_within(PATIENCE).map_err(|error| error.to_string())?;
    if finished.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&finished.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it gave no reason").trim();
    Err(format!("Docker Desktop's `{MAGIC_SOCKET}` cannot be reached from a container: {last}"))
}
