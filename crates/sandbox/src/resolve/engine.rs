//! Which engine runs the sandbox. A requested engine that cannot run it is an error, never another engine.

use super::error::Error;
use super::search;
use crate::facts::Facts;
use crate::host::Host;
use crate::model::platform::Os;
use crate::model::resolved::EngineName;
use crate::model::setting::Setting;
use crate::model::spec::EngineChoice;

/// The engine and why it is the one.
pub(super) fn choose(
    asked: &Setting<EngineChoice>,
    host: &Host,
    facts: &dyn Facts,
) -> Result<(EngineName, String), Error> {
    let package = match asked.value {
        EngineChoice::Auto if on_a_mac(facts) => {
            return Ok((EngineName::Seatbelt, "auto: on macOS it needs no daemon and no image".into()));
        }
        EngineChoice::Auto => {
            return Ok((
                EngineName::Native,
                "auto: on Linux the native engine needs no daemon and no image".into(),
            ));
        }
        EngineChoice::Native => {
            return Ok((EngineName::Native, format!("asked for by {}", asked.origin)));
        }
        EngineChoice::Seatbelt if on_a_mac(facts) => {
            return Ok((EngineName::Seatbelt, format!("asked for by {}", asked.origin)));
        }
        EngineChoice::Seatbelt => return Err(Error::EngineElsewhere { engine: asked.value }),
        EngineChoice::Docker => "docker.io",
        EngineChoice::Podman => "podman",
    };
    let engine = asked.value;
    Err(match facts.program(engine.word(), &search::directories(host)) {
        Ok(program) => Error::EngineUnsupported { engine, program },
        Err(_) => Error::EngineMissing { engine, package },
    })
}

fn on_a_mac(facts: &dyn Facts) -> bool {
    facts.platform().is_ok_and(|platform| platform.os == Os::MacOs)
}
