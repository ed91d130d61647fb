//! Which engine runs the sandbox. A requested engine that cannot run it is an error, never another engine.

use super::error::Error;
use super::search;
use crate::facts::Facts;
use crate::host::Host;
use crate::model::resolved::EngineName;
use crate::model::spec::{EngineChoice, Spec};

/// The engine and why it is the one.
pub(super) fn choose(spec: &Spec, host: &Host, facts: &dyn Facts) -> Result<(EngineName, String), Error> {
    let package = match spec.engine.value {
        EngineChoice::Auto => {
            return Ok((
                EngineName::Native,
                "auto: on Linux the native engine needs no daemon and no image".into(),
            ));
        }
        EngineChoice::Native => {
            return Ok((EngineName::Native, format!("asked for by {}", spec.engine.origin)));
        }
        EngineChoice::Seatbelt => return Err(Error::EngineElsewhere { engine: spec.engine.value }),
        EngineChoice::Docker => "docker.io",
        EngineChoice::Podman => "podman",
    };
    let engine = spec.engine.value;
    Err(match facts.program(engine.word(), &search::directories(host)) {
        Ok(program) => Error::EngineUnsupported { engine, program },
        Err(_) => Error::EngineMissing { engine, package },
    })
}
