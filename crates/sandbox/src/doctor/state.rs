//! Where our own state lives.

use super::Patient;
use crate::facts::Failure;
use crate::model::check::Check;
use crate::resolve;

/// No other kind of file system is sure to hold a layer.
const ELSEWHERE: &str = "export XDG_DATA_HOME=/a/directory/of/yours/on/ext4-xfs-or-btrfs";

pub(super) fn directory(patient: Patient<'_>) -> Check {
    let (id, what) = ("state.directory", "the state directory");
    let path = &patient.host.data;
    if let Err(error) = resolve::check_state(patient.host, patient.facts) {
        return Check::fail(id, what, error.to_string()).mend(ELSEWHERE);
    }
    for ancestor in path.as_path().ancestors() {
        match patient.facts.writable(ancestor) {
            Ok(true) => {
                return Check::ok(
                    id,
                    what,
                    format!("`{path}` can be written and can hold the layers of sandboxes"),
                );
            }
            Ok(false) => {
                return Check::fail(id, what, format!("`{}` cannot be written", ancestor.display()))
                    .mend(ELSEWHERE);
            }
            Err(Failure::Missing) => {}
            Err(why) => return Check::fail(id, what, format!("`{}`: {why}", ancestor.display())),
        }
    }
    Check::fail(id, what, format!("`{path}` cannot be made"))
}
