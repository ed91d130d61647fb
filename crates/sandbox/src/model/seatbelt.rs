//! What only Seatbelt, the sandbox of macOS, is asked for, and what it cannot be asked for.

use std::path::PathBuf;

use super::choice::choice;
use super::limits::{Disk, Limits, Need};
use super::path::{BoxPath, HostPath};
use super::setting::{Origin, Setting};
use super::spec::Network;

/// The profile, where a longer name would say the same twice.
pub type Profile = SeatbeltProfile;

choice! {
    /// The profile: what is open besides files, and which connections are.
    SeatbeltProfile {
        PermissiveOpen = "permissive-open",
        PermissiveClosed = "permissive-closed",
        PermissiveProxied = "permissive-proxied",
        RestrictiveOpen = "restrictive-open",
        RestrictiveClosed = "restrictive-closed",
        RestrictiveProxied = "restrictive-proxied",
    }
}

/// What is open that is neither a file nor a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Everything that does not lead out.
    Permissive,
    /// What is listed.
    Restrictive,
}

/// Which connections are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    Open,
    Closed,
    Proxied,
}

impl SeatbeltProfile {
    pub fn base(self) -> Base {
        match self {
            Self::PermissiveOpen | Self::PermissiveClosed | Self::PermissiveProxied => Base::Permissive,
            Self::RestrictiveOpen | Self::RestrictiveClosed | Self::RestrictiveProxied => Base::Restrictive,
        }
    }

    pub fn traffic(self) -> Traffic {
        match self {
            Self::PermissiveOpen | Self::RestrictiveOpen => Traffic::Open,
            Self::PermissiveClosed | Self::RestrictiveClosed => Traffic::Closed,
            Self::PermissiveProxied | Self::RestrictiveProxied => Traffic::Proxied,
        }
    }
}

/// Something that was asked for and that Seatbelt cannot do. Never ignored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    #[error("engine `seatbelt` cannot limit {what}, and {origin} asks for it")]
    Limit { what: &'static str, origin: String },
    #[error("engine `seatbelt` has no network of its own, so there is no `nat`")]
    Nat,
    #[error("engine `seatbelt` runs the system of this machine, not an image")]
    Image,
    #[error("profile `{profile}` needs a proxy command")]
    Proxy { profile: SeatbeltProfile },
    #[error("profile `{profile}` and network `{network}` contradict each other")]
    Contradiction { profile: SeatbeltProfile, network: Network },
    #[error("engine `seatbelt` has no copy-on-write view of `{target}`")]
    CopyOnWrite { target: BoxPath },
    #[error("engine `seatbelt` shows everything where it is: `{path}` cannot be at `{target}`")]
    Elsewhere { path: HostPath, target: BoxPath },
    #[error("engine `seatbelt` cannot show {what} at `{target}`")]
    Content { target: BoxPath, what: &'static str },
    #[error("the path `{}` is not valid UTF-8", path.display())]
    NotText { path: PathBuf },
}

impl Unsupported {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Limit { .. } | Self::Image => "use `--engine docker` or `--engine podman`, or leave it out",
            Self::Nat => "use `--network none` or `--network host`",
            Self::Proxy { .. } => "use a profile that ends in `-open` or `-closed`",
            Self::Contradiction { .. } => "leave one of the two out",
            Self::CopyOnWrite { .. } => "use `--mode copy`, or `--mode live` to work on the files themselves",
            Self::Elsewhere { .. } => "mount it at its own path",
            Self::Content { .. } => "use `--engine docker` or `--engine podman`",
            Self::NotText { .. } => "rename it",
        }
    }
}

/// The profile and the network that hold, given what was asked for. A profile says which connections are open;
/// whoever asks for a network as well must mean the same.
pub fn profile(
    asked: Option<SeatbeltProfile>,
    network: &Setting<Network>,
) -> Result<(SeatbeltProfile, Network), Unsupported> {
    let Some(profile) = asked else {
        return match network.value {
            Network::None => Ok((SeatbeltProfile::PermissiveClosed, Network::None)),
            Network::Host => Ok((SeatbeltProfile::PermissiveOpen, Network::Host)),
            Network::Nat => Err(Unsupported::Nat),
            Network::Proxied => Err(Unsupported::Proxy { profile: SeatbeltProfile::PermissiveProxied }),
        };
    };
    let meant = match profile.traffic() {
        Traffic::Open => Network::Host,
        Traffic::Closed => Network::None,
        Traffic::Proxied => return Err(Unsupported::Proxy { profile }),
    };
    match network.origin {
        _ if network.value == meant => Ok((profile, meant)),
        Origin::Default => Ok((profile, meant)),
        _ => Err(Unsupported::Contradiction { profile, network: network.value }),
    }
}

/// Refuses limits that somebody named: there is nothing to enforce them with.
pub fn check_limits(limits: &Limits) -> Result<(), Unsupported> {
    let named = [
        ("processors", limits.cpus.as_ref().map(|limit| &limit.origin)),
        ("memory", limits.memory.as_ref().map(|limit| &limit.origin)),
        ("processes", limits.pids.as_ref().map(|limit| &limit.origin)),
        (
            "disk",
            limits.disk.as_ref().filter(|limit| limit.value != Disk::Unlimited).map(|limit| &limit.origin),
        ),
    ];
    let required = |origin: &&Origin| Need::of(origin) == Need::Required;
    for (what, origin) in named {
        if let Some(origin) = origin.filter(required) {
            return Err(Unsupported::Limit { what, origin: origin.to_string() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_and_a_network_say_the_same_or_one_of_them_nothing() {
        use SeatbeltProfile::{PermissiveClosed, PermissiveOpen, RestrictiveOpen, RestrictiveProxied};
        let default = Setting::default_value(Network::None);
        let flag = |network| Setting::new(network, Origin::Flag { name: "--network".to_owned() });
        assert_eq!(profile(None, &default), Ok((PermissiveClosed, Network::None)));
        assert_eq!(profile(None, &flag(Network::Host)), Ok((PermissiveOpen, Network::Host)));
        assert_eq!(profile(None, &flag(Network::Nat)), Err(Unsupported::Nat));
        assert_eq!(profile(Some(RestrictiveOpen), &default), Ok((RestrictiveOpen, Network::Host)));
        assert!(matches!(
            profile(Some(RestrictiveOpen), &flag(Network::None)),
            Err(Unsupported::Contradiction { .. })
        ));
        assert!(matches!(profile(Some(RestrictiveProxied), &default), Err(Unsupported::Proxy { .. })));
    }

    #[test]
    fn a_limit_that_somebody_named_is_refused() {
        let limit =
            |origin| Limits { pids: Some(Setting::new("64".parse().unwrap(), origin)), ..Limits::default() };
        assert!(check_limits(&limit(Origin::Flag { name: "--pids".to_owned() })).is_err());
        assert_eq!(check_limits(&Limits::default()), Ok(()));
    }
}
