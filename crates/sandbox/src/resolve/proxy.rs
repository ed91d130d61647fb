//! The proxy command of a launcher: a program of the image that runs beside the sandbox and is its only way out.
//! Naming one says that nothing else gets out, so it never makes a network wider than was asked for by name.

use std::collections::BTreeMap;

use super::error::ResolveError;
use super::warnings;
use crate::host::Host;
use crate::model::container::{Container, PROXY_PORT};
use crate::model::engine::{EngineTraits, Maker};
use crate::model::resolved::{EngineName, Variable, Warning};
use crate::model::setting::{Origin, Setting};
use crate::model::spec::{Network, Spec};

/// Why there cannot be a proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    #[error("network `proxied` needs a proxy command, and none was named")]
    Unnamed,
    #[error("network `host` goes around the proxy command, which {origin} asks for")]
    Around { origin: String },
    #[error("the proxy command of {origin} is for docker and podman, and `{engine}` would go around it")]
    Elsewhere { origin: String, engine: EngineName },
}

impl ProxyError {
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Unnamed => "proxy-unnamed",
            Self::Around { .. } => "proxy-around",
            Self::Elsewhere { .. } => "proxy-elsewhere",
        }
    }

    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::Unnamed => {
                "name one: `--proxy-command COMMAND`, or the variable `LLXPRT_SANDBOX_PROXY_COMMAND`"
            }
            Self::Around { .. } => "leave one of the two out",
            Self::Elsewhere { .. } => {
                "unset it, use `--network none`, or name an image and an engine: `--engine podman --image NAME`"
            }
        }
    }
}

/// What programs look at to find a proxy.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
/// What is reached without it.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// The sandbox's own services.
const LOOPBACK: &str = "localhost,127.0.0.1,::1";

/// The network that holds, with the proxy command taken into account.
pub(super) fn network(spec: &Spec, engine: EngineName) -> Result<Setting<Network>, ResolveError> {
    let asked = spec.network.clone();
    let EngineTraits { network, .. } = engine.traits();
    let contained = network == Maker::Engine;
    match (&spec.container.proxy, asked.value) {
        // Seatbelt has words of its own for it.
        (_, Network::Proxied) if network == Maker::Sandtable => {
            Err(ResolveError::ContainersOnly { what: "--network proxied", engine })
        }
        (None, Network::Proxied) if contained => Err(ResolveError::Proxy(ProxyError::Unnamed)),
        (Some(command), Network::Nat | Network::Host) if !contained => {
            Err(ResolveError::Proxy(ProxyError::Elsewhere { origin: command.origin.to_string(), engine }))
        }
        (Some(command), Network::Host) => {
            Err(ResolveError::Proxy(ProxyError::Around { origin: command.origin.to_string() }))
        }
        (Some(command), Network::None) if contained && asked.origin == Origin::Default => {
            Ok(Setting::new(Network::Proxied, command.origin.clone()))
        }
        (Some(command), Network::Nat) => Ok(Setting::new(Network::Proxied, command.origin.clone())),
        _ => Ok(asked),
    }
}

/// Says so if there is a proxy command that nothing goes through.
pub(super) fn check_use(spec: &Spec, network: Network, found: &mut Vec<Warning>) {
    if let (Some(command), Network::None) = (&spec.container.proxy, network) {
        found.push(warnings::proxy_unused(&command.origin));
    }
}

/// The variables by which programs inside find the proxy.
pub(super) fn variables(host: &Host, network: Network) -> BTreeMap<String, Variable> {
    if network != Network::Proxied {
        return BTreeMap::new();
    }
    let address = format!("http://127.0.0.1:{PROXY_PORT}");
    let proxies = PROXIES.map(|name| (name.to_owned(), Variable::open(&address, Origin::Default)));
    let own = EXCEPTIONS.iter().find_map(|name| {
        let value = host.environment.get(*name).filter(|value| !value.is_empty())?;
        Some(Variable::open(value, Origin::Variable { name: (*name).to_owned() }))
    });
    let own = own.unwrap_or_else(|| Variable::open(LOOPBACK, Origin::Default));
    proxies.into_iter().chain(EXCEPTIONS.map(|name| (name.to_owned(), own.clone()))).collect()
}

/// `container` with the command, if it is used.
pub(super) fn with_command(container: Container, spec: &Spec, network: Network) -> Container {
    let proxy = spec.container.proxy.clone().filter(|_| network == Network::Proxied);
    Container { proxy, ..container }
}

#[cfg(test)]
mod tests {
    use super::super::tests::spec;
    use super::*;
    use crate::model::diagnosis::Diagnose as _;

    fn outcome(asked: Setting<Network>, command: Option<&str>, engine: EngineName) -> String {
        let mut spec = spec("/home/ann/project");
        spec.network = asked;
        let origin = Origin::Variable { name: "SANDBOX_PROXY_COMMAND".to_owned() };
        spec.container.proxy = command.map(|word| Setting::new(vec![word.to_owned()], origin));
        match network(&spec, engine) {
            Ok(network) => format!("{} by {}", network.value, network.origin),
            Err(error) => error.code().to_owned(),
        }
    }

    #[test]
    fn a_proxy_narrows_and_never_widens() {
        use EngineName::{Native, Podman};
        let flag = |value| Setting::new(value, Origin::Flag { name: "--network".to_owned() });
        let default = || Setting::default_value(Network::None);
        let by_command = "proxied by variable SANDBOX_PROXY_COMMAND";
        for (asked, command, engine, meant) in [
            (default(), None, Podman, "none by default"),
            (default(), Some("p"), Podman, by_command),
            (flag(Network::Nat), Some("p"), Podman, by_command),
            (flag(Network::None), Some("p"), Podman, "none by flag --network"),
            (flag(Network::Proxied), Some("p"), Podman, "proxied by flag --network"),
            (flag(Network::Proxied), None, Podman, "proxy-unnamed"),
            (flag(Network::Host), Some("p"), Podman, "proxy-around"),
            (default(), Some("p"), Native, "none by default"),
            (flag(Network::Nat), Some("p"), Native, "proxy-elsewhere"),
            (flag(Network::Host), Some("p"), Native, "proxy-elsewhere"),
            (flag(Network::Proxied), Some("p"), Native, "containers-only"),
        ] {
            assert_eq!(outcome(asked.clone(), command, engine), meant, "{asked:?} {command:?} {engine}");
        }
    }
}
