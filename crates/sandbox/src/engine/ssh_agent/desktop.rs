//! The socket of Docker Desktop. It lies in a virtual machine, so only a container can tell whether it is there;
//! the one that is asked is of the sandbox's own image, which is there by now, and has no network.

use std::time::Duration;

use sandtable_protocol::constants::REACH;

use crate::model::agent::SOCKET;
use crate::model::image::ResolvedImage;
use crate::model::resolved::ResolvedSpec;
use crate::process::Cli;

/// Where Docker Desktop shows the host's agent, in its virtual machine.
pub(super) const MAGIC_SOCKET: &str = "/run/host-services/ssh-auth.sock";
/// Where our own executable is in the container that looks.
const LOOKER: &str = "/sandtable-reach";
/// How long the container may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The words of a call that succeeds if the socket is there and lets the caller in.
pub(super) fn words(spec: &ResolvedSpec) -> Option<Vec<String>> {
    let container = spec.container.as_ref()?;
    let Some(ResolvedImage::Named { name, id, .. }) = &spec.image else { return None };
    let image = id.as_deref().unwrap_or(name.as_str());
    let bind = |source: &str, target: &str, rest: &str| {
        ["--mount".to_owned(), format!("type=bind,source={source},target={target}{rest}")]
    };
    let fixed = ["run", "--rm", "--pull", "never", "--network", "none", "--cap-drop=ALL"].map(str::to_owned);
    let identity = ["--user".to_owned(), format!("{}:{}", spec.identity.uid, spec.identity.gid)];
    let git = ["--env".to_owned(), "GIT_DISCOVERY_ACROSS_FILESYSTEM=1".to_owned()];
    let words = fixed
        .into_iter()
        .chain(identity)
        .chain(git)
        .chain(bind(MAGIC_SOCKET, SOCKET, ""))
        .chain(bind(&container.init.to_string(), LOOKER, ",readonly"))
        .chain(["--entrypoint", LOOKER, image, REACH, SOCKET].map(str::to_owned));
    Some(words.collect())
}

/// Looks, or says why the agent cannot be reached.
pub(super) fn check(spec: &ResolvedSpec) -> Result<(), String> {
    let (Some(words), Some(container)) = (words(spec), &spec.container) else {
        return Err("there is no image to look for it with".to_owned());
    };
    let call = Cli::new(container.program.clone()).args(words);
    let variables = container.variables.iter();
    let call = variables.fold(call, |call, (name, variable)| call.variable(name, &variable.value));
    let finished = call.finish_within(PATIENCE).map_err(|error| error.to_string())?;
    if finished.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&finished.stderr);
    Err(format!("Docker Desktop's `{MAGIC_SOCKET}` cannot be reached from a container: {}", reason(&said)))
}

/// The last line that says something. Docker follows its error with advice to read its help.
fn reason(said: &str) -> &str {
    let advice = |line: &str| line.contains(" --help'");
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty() && !advice(line));
    last.unwrap_or("it gave no reason")
}
