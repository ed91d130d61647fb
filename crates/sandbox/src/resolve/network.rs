//! The way out of a sandbox that has one: a program of the host that carries its packets, and the file that
//! says whom to ask for names.

use super::case::Case;
use super::error::ResolveError;
use super::helpers;
use crate::facts::Kind;
use crate::model::container::Lowers;
use crate::model::engine::Maker;
use crate::model::mount::{Content, HostAccess, Mount, Ownership};
use crate::model::path::{BoxPath, HostPath};
use crate::model::platform::Os;
use crate::model::resolved::{HelperKind, NetworkHelper};
use crate::model::setting::{Origin, Setting};
use crate::model::spec::Network;

/// Where the helpers answer questions for names.
const NAME_SERVER: &str = "10.0.2.3";
/// The device that packets pass through.
const TUNNEL: &str = "/dev/net/tun";
const RESOLVER: &str = "/etc/resolv.conf";

/// The program that is used, if one is needed.
pub(super) fn helper(
    case: &Case<'_>,
    network: &Setting<Network>,
) -> Result<Option<NetworkHelper>, ResolveError> {
    if network.value != Network::Nat || case.traits().network == Maker::Engine {
        return Ok(None);
    }
    carriers(case).map(Some)
}

/// The program that carries packets, and the device for them.
fn carriers(case: &Case<'_>) -> Result<NetworkHelper, ResolveError> {
    let facts = case.facts;
    let found = HelperKind::ALL.iter().find_map(|kind| {
        let program = helpers::helper(kind.word(), case.host, facts)?;
        Some(NetworkHelper { kind: *kind, program: HostPath::new(program).ok()? })
    });
    let helper = found.ok_or(ResolveError::NetworkHelperMissing)?;
    match facts.kind(TUNNEL) {
        Ok(device) if device.readable => Ok(helper),
        _ => Err(ResolveError::NetworkDevice { path: TUNNEL.into() }),
    }
}

/// Without root Podman, whose overlays stand on one directory only, carries packets itself, with the same program and device.
pub(super) fn check_rootless(case: &Case<'_>, network: &Setting<Network>) -> Result<(), ResolveError> {
    let needs = matches!(network.value, Network::Nat | Network::Proxied);
    let rootless = case.container.is_some_and(|container| container.lowers == Lowers::One);
    let here = case.facts.platform().unwrap_or_default().os == Os::Linux;
    if needs && rootless && here { carriers(case).map(drop) } else { Ok(()) }
}

/// The resolver's configuration for a sandbox that shows an image, at the place where every image has it.
pub(super) fn resolver_of_image(case: &Case<'_>) -> Option<Mount> {
    let content = match case.spec.network.value {
        Network::None | Network::Proxied => return None,
        Network::Nat => Content::Text { contents: format!("nameserver {NAME_SERVER}\n") },
        Network::Host => {
            let source = HostPath::new(case.facts.real_path(RESOLVER).ok()?).ok()?;
            Content::Host { source, access: HostAccess::Read, ownership: Ownership::System, identity: None }
        }
    };
    Some(Mount {
        target: BoxPath::new(RESOLVER).expect("absolute"),
        content,
        reason: "names are looked up as on the host".to_owned(),
        origin: Origin::Default,
    })
}

/// A resolver's configuration of the sandbox's own, at the place that `/etc/resolv.conf` leads to.
pub(super) fn resolver(case: &Case<'_>) -> Option<Mount> {
    let real = case.facts.real_path(RESOLVER).ok()?;
    if case.facts.kind(&real).ok()?.kind != Kind::File {
        return None;
    }
    Some(Mount {
        target: HostPath::new(real).ok()?.same_inside(),
        content: Content::Text { contents: format!("nameserver {NAME_SERVER}\n") },
        reason: "names are looked up by way of the program that carries the packets".to_owned(),
        origin: Origin::Default,
    })
}
