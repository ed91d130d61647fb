//! The real executable with its native engine.

use sandtable_protocol::probe::Line;

use super::{Case, Engine, Stage};
use crate::env::Caller;
use crate::process::{Ended, Run};

/// Secrets in the caller's environment, which no command may see.
pub const SECRET_VARIABLES: &[&str] =
    &["DEPLOY_TOKEN", "AWS_SECRET_ACCESS_KEY", "SIGNING_KEY", "SSH_AUTH_SOCK"];

/// `sandtable run`, as whoever the stage's world says.
#[derive(Clone, Copy, Debug)]
pub struct Native {
    pub caller: Caller,
}

impl Engine for Native {
    fn name(&self) -> String {
        match self.caller {
            Caller::Same => "native".to_owned(),
            Caller::Ordinary { .. } => "native (ordinary user)".to_owned(),
        }
    }

    fn attempt(&self, stage: &Stage, case: &Case, args: &[String]) -> Result<Line, String> {
        let run = stage.env().sandtable().directory(stage.source());
        let run = run.args(["run", "--rm", "-q"]).args(stage.options(case));
        let run = run.args(["--", "./probe-bin", "__probe", case.probe]).args(args);
        answer(&provoked(run, stage).ended())
    }
}

/// Starts a program as a careless caller would: with a spare descriptor open and secrets in the environment.
pub(super) fn provoked(run: Run, stage: &Stage) -> Run {
    let run = SECRET_VARIABLES.iter().fold(run, |run, name| run.variable(name, "canary"));
    let first = format!(
        "{}:{}",
        stage.env().home().join(".cargo/bin").display(),
        stage.env().root().join("bin").display()
    );
    let run = run.variable("PATH", format!("{first}:{}", crate::env::PATH));
    run.through(["sh", "-c", "exec 9</; exec \"$@\"", "sh"])
}

/// The line that a probe printed.
pub(super) fn answer(ended: &Ended) -> Result<Line, String> {
    let said = || format!("exit {}, stdout {:?}, stderr {:?}", ended.code, ended.stdout, ended.stderr);
    if ended.code != 0 {
        return Err(said());
    }
    serde_json::from_str(ended.stdout.trim()).map_err(|error| format!("{error}: {}", said()))
}
