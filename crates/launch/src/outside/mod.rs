//! What acts for a sandbox from outside: it launches the first process, gives it what only the host can give, sends it
//! commands and carries their streams. The work inside is called from here, never the other way round.

pub mod attach;
pub mod cgroup;
pub mod delegate;
pub mod detach;
pub mod door;
pub mod ground;
pub mod host;
pub mod interrupt;
pub mod machine;
pub mod outpost;
pub mod relay;
pub mod supervisor;
