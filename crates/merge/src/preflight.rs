//! What must hold before a result may be delivered, looked up and never assumed.

mod disk;
mod state;
mod writable;

pub(super) use disk::{as_on_disk, disk_steps, files, untracked};
pub(super) use state::{case, notes, state, undoable};
pub(super) use writable::writable;
