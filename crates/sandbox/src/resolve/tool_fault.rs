//! Why a tool cannot be shown in a sandbox.

use std::path::PathBuf;

use crate::facts::Failure;
use crate::model::blame::Blame;
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::EngineName;
use crate::model::tool::ToolName;

/// What is wrong with a tool, or with showing tools at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolFault {
    #[error("engine `{engine}` cannot show tools: it shows no file at another place than its own")]
    Elsewhere { engine: EngineName },
    #[error("tool `{name}` is not in the store of tools: `{path}` is not below `{root}`")]
    Outside { name: ToolName, path: HostPath, root: HostPath },
    #[error("tool `{name}` cannot be shown: `{path}` {why}", path = path.display())]
    Path { name: ToolName, path: PathBuf, why: &'static str },
    #[error("tool `{name}` cannot be mounted at `{target}` from `{path}`{}", errno(why))]
    Unmountable {
        name: ToolName,
        target: BoxPath,
        path: HostPath,
        #[source]
        why: Failure,
    },
}

impl ToolFault {
    pub(super) fn blame(&self) -> Blame {
        match self {
            Self::Elsewhere { .. } => Blame::Input,
            _ => Blame::Machine,
        }
    }

    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Elsewhere { .. } => "tools-elsewhere",
            Self::Outside { .. } => "tool-outside",
            Self::Path { .. } => "tool-path",
            Self::Unmountable { .. } => "tool-unmountable",
        }
    }

    pub(super) fn remedy(&self) -> String {
        match self {
            Self::Elsewhere { .. } => "leave out `--tool`, or use another engine".to_owned(),
            Self::Outside { .. } | Self::Path { .. } => {
                "remove it and let it be made again: `sandtable tool gc`".to_owned()
            }
            Self::Unmountable { path, .. } => {
                format!("`chmod u+rx` what leads to `{path}`, or remove it and let it be made again")
            }
        }
    }
}

/// The kernel's word for a failure, where there is one.
fn errno(why: &Failure) -> &'static str {
    match why {
        Failure::Missing => " (ENOENT)",
        Failure::Denied => " (EACCES)",
        Failure::Other(_) => "",
    }
}
