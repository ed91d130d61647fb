//! The trial of `doctor` where no sandbox can be launched: it says so.

use sandtable_sandbox::engine;
use sandtable_sandbox::model::spec::EngineChoice;
use sandtable_sandbox::session;
use serde::Serialize;

use super::{Depth, Trial};
use crate::app::App;
use crate::error::CliError;

/// An attack that was tried: there is none.
#[derive(Clone, Debug, Serialize)]
pub(super) enum Attack {}

impl Attack {
    pub(super) fn went_through(&self) -> bool {
        match *self {}
    }

    pub(super) fn row(&self) -> [String; 4] {
        match *self {}
    }
}

/// Refuses as `run` does.
pub(super) fn launch(_app: &App, _engine: EngineChoice, _depth: Depth) -> Result<Trial, CliError> {
    engine::can_start().map_err(session::SessionError::from)?;
    unreachable!("this file is for systems on which nothing can be started")
}
