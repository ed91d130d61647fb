//! Properties of engines, as data. Code outside `engine/` asks for a property and not for the engine.

use super::resolved::EngineName;

/// The properties of an engine that the meaning of a request depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineTraits {
    /// The root file system that sandboxes see.
    pub system: System,
    /// Starts the first process of a sandbox. That of an engine continues if our supervisor is killed.
    pub processes: Maker,
    /// Makes the mounts. Without any, files are visible at their own paths only.
    pub mounts: Maker,
    /// Makes the network. Without any, a sandbox has that of the host, or none.
    pub network: Maker,
    /// Makes the control group.
    pub groups: Maker,
}

/// The origin of a root file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Directories of the host, or a root file system in a directory of the host.
    Host,
    /// An image of the engine, by its name.
    Image,
}

/// The part that makes something for a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// Our own code.
    Sandtable,
    /// The engine, by words in its command line.
    Engine,
    Nobody,
}

impl EngineTraits {
    /// Whether a file can be shown at another path than its own.
    pub fn has_views(self) -> bool {
        self.mounts != Maker::Nobody
    }
}

impl EngineName {
    /// The properties of this engine.
    pub const fn traits(self) -> EngineTraits {
        use Maker::{Engine, Nobody, Sandtable};
        match self {
            Self::Native => EngineTraits {
                system: System::Host,
                processes: Sandtable,
                mounts: Sandtable,
                network: Sandtable,
                groups: Sandtable,
            },
            Self::Docker | Self::Podman => EngineTraits {
                system: System::Image,
                processes: Engine,
                mounts: Engine,
                network: Engine,
                groups: Engine,
            },
            Self::Seatbelt => EngineTraits {
                system: System::Host,
                processes: Sandtable,
                mounts: Nobody,
                network: Nobody,
                groups: Nobody,
            },
        }
    }
}
