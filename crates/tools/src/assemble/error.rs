//! Why a recipe has no plan, always with the way that leads to the place.

use std::fmt;

use sandtable_sandbox::model::tool::ToolRequest;

use super::super::plan::{PlanError, PlanPlatform, ToolName};
use super::super::recipe::Place;
use super::super::recipe::action::LowerError;
use super::expand::ExpandError;

/// From the recipe that was asked for to the one that is meant: `ninja → cmake`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain(pub Vec<ToolName>);

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(ToolName::as_str).collect();
        f.write_str(&names.join(" → "))
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error("there is no recipe for `{request}`; there is {}", known.join(", "))]
    Unknown { request: ToolRequest, known: Vec<String> },
    #[error("`{chain}`: there is no recipe for the dependency `{request}` among those that may provide it; there is {}", known.join(", "))]
    Missing { chain: Chain, request: ToolRequest, known: Vec<String> },
    #[error("a local recipe may not be called `{name}`: a built-in one is, and others depend on it")]
    Shadows { name: ToolName },
    #[error("two recipes are called `{name}`")]
    Twice { name: ToolName },
    #[error("dependencies go in a circle: `{chain}`")]
    Cycle { chain: Chain },
    #[error("dependencies are nested too deep: `{chain}`")]
    Deep { chain: Chain },
    #[error("too many dependencies, the last by way of `{chain}`")]
    Many { chain: Chain },
    #[error("`{chain}`: the step at {place} cannot be planned")]
    Step {
        chain: Chain,
        place: Place,
        #[source]
        error: LowerError,
    },
    #[error("`{chain}`: a text of the recipe cannot be used")]
    Expand {
        chain: Chain,
        #[source]
        error: ExpandError,
    },
    #[error("`{chain}`: the recipe has nothing for {target}")]
    Nothing { chain: Chain, target: PlanPlatform },
    #[error("`{chain}`: the recipe makes no sound plan")]
    Unsound {
        chain: Chain,
        #[source]
        error: PlanError,
    },
}
