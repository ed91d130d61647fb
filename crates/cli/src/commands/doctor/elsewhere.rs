//! The trial of `doctor` where no sandbox can be launched: it says so.

use std::collections::BTreeMap;

use sandtable_launch::report::{Control, Observed};
use sandtable_sandbox::engine;
use sandtable_sandbox::model::spec::EngineChoice;
use sandtable_sandbox::session;
use serde::Serialize;

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

/// What a launched sandbox told.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) enforcement: BTreeMap<Control, Observed>,
    pub(super) start_ms: u64,
    pub(super) attacks: Vec<Attack>,
}

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    Launch,
    Attack,
}

/// Refuses as `run` does.
pub(super) fn launch(_app: &App, _engine: EngineChoice, _depth: Depth) -> Result<Trial, CliError> {
    engine::can_start().map_err(session::Error::from)?;
    unreachable!("this file is for systems on which nothing can be started")
}
