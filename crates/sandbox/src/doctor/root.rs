//! What only a sandbox of root needs: ids to give away, and the right to do so. Root of a container often has
//! neither.

use super::Patient;
use crate::model::check::Check;

/// The ids of which sandboxes of root take their private ranges.
const PRIVATE: std::ops::Range<u64> = 0x7000_0000..0x7fff_0000;
/// `CAP_SYS_ADMIN`: mounts whose owners are shifted.
const SYS_ADMIN: u64 = 1 << 21;
/// Becoming an ordinary user helps against both: such a user needs neither.
const AS_ORDINARY_USER: &str = "unshare --user --map-user=1000 --map-group=1000 sandtable doctor";

pub(super) fn id_range(patient: Patient<'_>) -> Check {
    let (id, what) = ("kernel.id-range", "a private range of ids");
    if patient.host.uid != 0 {
        return Check::ok(id, what, "an ordinary user keeps its own ids");
    }
    let map = patient.facts.read_small("/proc/self/uid_map", 1 << 16).unwrap_or_default();
    if map.lines().any(|line| covers(line) == Some(true)) {
        return Check::ok(id, what, "root here can give a sandbox ids of its own");
    }
    let shown = map.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = format!(
        "root of this user namespace has too few ids (`{shown}`) to give a sandbox a range of its own"
    );
    Check::fail(id, what, why).mend(AS_ORDINARY_USER)
}

pub(super) fn capabilities(patient: Patient<'_>) -> Check {
    let (id, what) = ("kernel.idmapped-mounts", "mounts with shifted owners");
    if patient.host.uid != 0 {
        return Check::ok(id, what, "an ordinary user needs none");
    }
    let status = patient.facts.read_small("/proc/self/status", 1 << 16).unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    match held {
        Some(held) if held & SYS_ADMIN == 0 => {
            let why =
                "root here lacks the capability `SYS_ADMIN`, without which a sandbox of root cannot be made";
            Check::fail(id, what, why).mend(AS_ORDINARY_USER)
        }
        _ => Check::ok(id, what, "root may make them; the file systems must be able to, as the launch shows"),
    }
}

/// Whether a line of an id map has the whole range from which private ones are taken.
fn covers(line: &str) -> Option<bool> {
    let mut numbers = line.split_whitespace().map(str::parse::<u64>);
    let (first, _, count) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(first <= PRIVATE.start && first + count >= PRIVATE.end)
}
