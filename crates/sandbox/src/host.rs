//! What the caller knows about itself. Only the command line reads the environment; the library is given
//! this.

use std::collections::BTreeMap;

use crate::model::path::HostPath;
use crate::model::tool::ProvidedDep;

/// The caller: who, where from, with which environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub uid: u32,
    pub gid: u32,
    /// The home directory, if there is one.
    pub home: Option<HostPath>,
    /// Where our own state lives: `$XDG_DATA_HOME/sandtable`.
    pub data: HostPath,
    /// Our own executable, if it can be found: PID 1 of a container.
    pub executable: Option<HostPath>,
    /// The caller's environment; variables that are not UTF-8 are left out and named in `odd_variables`.
    pub environment: BTreeMap<String, String>,
    pub odd_variables: Vec<String>,
    /// Where the caller is and what is worked on: no program from there is ever started outside a sandbox.
    pub foreign: Vec<HostPath>,
    /// The finished tools that the sandbox shall have, each with what it needs.
    pub tools: Vec<ProvidedDep>,
}
