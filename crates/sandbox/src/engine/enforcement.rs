//! Which controls a request needs, and whether what was reported is enough.

use sandtable_protocol::report::{Control, Observed, Report};

use crate::model::container::EngineRights;
use crate::model::limits::{Disk, Limits, Need};
use crate::model::resolved::ResolvedSpec;
use crate::model::setting::Origin;
use crate::model::spec::{Network, Strictness};

/// A control that the policy requires and that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{control}` is required but not enforced ({why})")]
pub struct Missing {
    pub control: Control,
    pub why: String,
}

/// The controls `spec` requires: all of them, but for what it gives away on purpose and limits that nobody
/// named.
pub fn required(spec: &ResolvedSpec) -> Vec<Control> {
    let wanted = |control: &Control| match control {
        Control::NetworkNamespace => spec.network.value != Network::Host,
        Control::UserNamespace | Control::PrivateIds => has_own_ids(spec),
        limit => need(*limit, &spec.limits) == Some(Need::Required),
    };
    Control::ALL.into_iter().filter(wanted).collect()
}

/// Whether the engine gives a sandbox ids of its own. One that runs as root gives it the host's, which whoever
/// chooses it chooses with it; the record shows what is lost.
fn has_own_ids(spec: &ResolvedSpec) -> bool {
    spec.container.as_ref().is_none_or(|container| container.rights == EngineRights::Rootless)
}

/// How much a control is needed. What is no limit is always required.
fn need(control: Control, limits: &Limits) -> Option<Need> {
    let origin = match control {
        Control::MemoryLimit => limits.memory.as_ref().map(|limit| &limit.origin),
        Control::CpuLimit => limits.cpus.as_ref().map(|limit| &limit.origin),
        Control::PidsLimit => limits.pids.as_ref().map(|limit| &limit.origin),
        Control::DiskLimit => match &limits.disk {
            Some(limit) if limit.value == Disk::Unlimited => None,
            Some(limit) => Some(&limit.origin),
            // The default budget can be watched everywhere.
            None => Some(&Origin::Default),
        },
        _ => return Some(Need::Required),
    };
    origin.map(Need::of)
}

/// Every required control that `report` does not show as enforced.
pub fn missing(spec: &ResolvedSpec, report: &Report) -> Vec<Missing> {
    let judge = |control: Control| match report.controls.get(&control) {
        Some(Observed::Enforced | Observed::Watched { .. }) => None,
        Some(Observed::Partial { why } | Observed::Absent { why }) => {
            Some(Missing { control, why: why.clone() })
        }
        None => Some(Missing { control, why: "the sandbox did not report it".to_owned() }),
    };
    required(spec).into_iter().filter_map(judge).collect()
}

/// Required controls that do not hold and therefore stop the launch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sandbox is not what was promised: {}", listed(.0))]
pub struct Refusal(Vec<Missing>);

impl Refusal {
    /// What the user can do, a line each.
    pub fn remedy(&self) -> String {
        let without = "`--best-effort` runs without it and says in the record what is lost";
        if self.0.iter().any(|missing| Control::LIMITS.contains(&missing.control)) {
            return format!(
                "a limit needs a control group of your own, which systemd gives to whoever is logged in: \
                 `sandtable doctor` says what is in the way\n{without}"
            );
        }
        without.to_owned()
    }
}

/// Why the launch stops: any missing control, unless the caller asked for best effort.
pub fn refusal(spec: &ResolvedSpec, report: &Report) -> Option<Refusal> {
    let missing = missing(spec, report);
    (spec.strictness.value == Strictness::Strict && !missing.is_empty()).then_some(Refusal(missing))
}

fn listed(missing: &[Missing]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
