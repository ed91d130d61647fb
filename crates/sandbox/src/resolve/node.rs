//! What a launcher does for Node: a heap that fits the memory there is, and a port for its debugger. Options of
//! the caller's own are passed on only by name, like every variable that can make a program run code.

use std::collections::BTreeMap;

use super::case::Case;
use super::warnings;
use crate::model::engine::Maker;
use crate::model::resolved::{Variable, Warning};
use crate::model::spec::Network;

const OPTIONS: &str = "NODE_OPTIONS";
/// The option, as far as both of its spellings have it.
const HEAP: [&str; 2] = ["--max-old-space-size", "--max_old_space_size"];
const MEBIBYTE: u64 = 1 << 20;
/// A smaller heap is of no use.
const SMALLEST: u64 = 128;

/// Keeps Node's heap to half of the memory that a container may use, unless the caller has said otherwise:
/// it would take its size from the machine, and be killed.
pub(super) fn fit_memory(case: &Case<'_>, environment: &mut BTreeMap<String, Variable>) {
    let (Some(_), Some(memory)) = (case.container, &case.spec.limits.memory) else { return };
    let size = (memory.value.bytes() / 2 / MEBIBYTE).max(SMALLEST);
    let heap = format!("{}={size}", HEAP[0]);
    match environment.get_mut(OPTIONS) {
        Some(given) if HEAP.iter().any(|option| given.value.contains(option)) => {}
        Some(given) => given.value = format!("{} {heap}", given.value),
        None => {
            environment.insert(OPTIONS.to_owned(), Variable::open(heap, memory.origin.clone()));
        }
    }
}

/// The variables that tell a command of the port that is published for its debugger.
pub(super) fn debugger(case: &Case<'_>, network: Network) -> BTreeMap<String, Variable> {
    let Some(port) = case.spec.container.debug.as_ref().filter(|_| case.traits().network == Maker::Engine)
    else {
        return BTreeMap::new();
    };
    if network != Network::Nat {
        return BTreeMap::new();
    }
    let variable = |value: String| Variable::open(value, port.origin.clone());
    [("DEBUG", "1".to_owned()), ("DEBUG_PORT", port.value.inside.to_string())]
        .map(|(name, value)| (name.to_owned(), variable(value)))
        .into()
}

/// Says so if a debugger is wanted and cannot be reached.
pub(super) fn check_debugger(case: &Case<'_>, network: Network, found: &mut Vec<Warning>) {
    if let (Some(port), Some(_), false) =
        (&case.spec.container.debug, case.container, network == Network::Nat)
    {
        found.push(warnings::debugger_unreachable(port.value, &port.origin));
    }
}
