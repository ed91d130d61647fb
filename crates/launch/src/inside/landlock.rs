//! Landlock: the second line behind the mounts. Even if a mount were writable by mistake, the workload
//! can change nothing outside the places named in the plan; it can reach no abstract socket and signal no
//! process outside the sandbox.

use std::fmt::Display;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, PathBeneath, PathFd, PathFdError, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope,
};

use sandtable_protocol::op::{Allow, Beneath, Network};
use sandtable_protocol::report::Observed;
use sandtable_protocol::step::Step;
use sandtable_protocol::wire::Failure;

/// The newest set of rights this code knows how to ask for; older kernels grant a part of it.
const KNOWN: ABI = ABI::V6;

/// Restricts this process to `rules` and says how far the kernel went along. What it lacks may not matter,
/// depending on the network.
pub(crate) fn restrict(rules: &[Beneath], network: &Network) -> Result<Observed, Failure> {
    let failed = |error: &dyn Display| Failure { step: Step::Landlock(error.to_string()), errno: 0 };
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(KNOWN)))
        .and_then(Ruleset::create)
        .map_err(|error| failed(&error))?;
    for Beneath { target, allow } in rules {
        let place = PathFd::new(target).map_err(|error| unopened(target, &error))?;
        ruleset =
            ruleset.add_rule(PathBeneath::new(place, rights(*allow))).map_err(|error| failed(&error))?;
    }
    let status = ruleset.no_new_privs(false).restrict_self().map_err(|error| failed(&error))?;
    Ok(match (status.ruleset, network) {
        (RulesetStatus::FullyEnforced, _)
        | (RulesetStatus::PartiallyEnforced, Network::Own | Network::Nat { .. }) => Observed::Enforced,
        (RulesetStatus::PartiallyEnforced, Network::Host) => Observed::Partial {
            why: "this kernel's Landlock cannot keep abstract sockets of the host away".to_owned(),
        },
        (RulesetStatus::NotEnforced, _) => {
            Observed::Absent { why: "this kernel has no Landlock, or it is switched off".to_owned() }
        }
    })
}

/// A command of the sandbox may have closed a directory on the way; who explains that wants to know what the kernel said.
fn unopened(target: &Path, error: &PathFdError) -> Failure {
    let errno = match error {
        PathFdError::OpenCall { source, .. } => source.raw_os_error(),
        _ => None,
    };
    Failure { step: Step::OpenForLandlock(target.into()), errno: errno.unwrap_or_default() }
}

fn rights(allow: Allow) -> BitFlags<AccessFs> {
    match allow {
        Allow::Read => AccessFs::from_read(KNOWN),
        Allow::Write => AccessFs::from_all(KNOWN),
        Allow::Devices => AccessFs::from_file(KNOWN) | AccessFs::ReadDir,
    }
}
