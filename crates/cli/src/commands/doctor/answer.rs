//! What `doctor` says, for people and as JSON.

use std::collections::BTreeMap;

use sandtable_protocol::report::{Control, Observed};
use sandtable_sandbox::doctor;
use sandtable_sandbox::model::causes::chained;
use sandtable_sandbox::model::check::{Check, Status};
use sandtable_sandbox::model::diagnosis::Diagnose as _;
use sandtable_sandbox::model::spec::EngineChoice;
use serde::Serialize;

use super::Trial;
use super::trial::Attack;
use crate::error::CliError;
use crate::ui::policy::indented;
use crate::ui::{escape, table};

/// The whole answer.
#[derive(Serialize)]
pub(super) struct Answer {
    pub(super) schema: u32,
    /// Whether any engine works.
    pub(super) works: bool,
    pub(super) engines: Vec<Engine>,
    pub(super) machine: Vec<Check>,
    /// With `--attack`: what was tried inside. `null` where it was not asked for or nothing could be launched.
    pub(super) attacks: Option<Vec<Attack>>,
}

/// One engine.
#[derive(Serialize)]
pub(super) struct Engine {
    #[serde(rename = "engine")]
    pub(super) name: EngineChoice,
    /// Whether a sandbox was launched in which every control holds. Container engines are only asked.
    pub(super) works: bool,
    pub(super) checks: Vec<Check>,
    /// What the launched sandbox read back; empty where none could be launched.
    pub(super) enforcement: BTreeMap<Control, Observed>,
}

impl Engine {
    pub(super) fn absent(engine: EngineChoice, check: Check) -> Self {
        Self { name: engine, works: false, checks: vec![check], enforcement: BTreeMap::new() }
    }

    /// An engine that was asked and not launched.
    pub(super) fn of_checks(engine: EngineChoice, checks: Vec<Check>) -> Self {
        Self { name: engine, works: false, checks, enforcement: BTreeMap::new() }
    }

    fn state(&self) -> &'static str {
        let any = |status| self.checks.iter().any(|check| check.status == status);
        match self.works {
            true => "works",
            false if any(Status::Ok) && !any(Status::Fail) => "answers; not launched for trial",
            false => "cannot be used here",
        }
    }

    pub(super) fn of_trial(
        engine: EngineChoice,
        trial: &Result<Trial, CliError>,
        foundations: &[Check],
    ) -> Self {
        let (id, what) = (format!("{engine}.launch"), "a sandbox, launched for trial");
        match trial {
            Err(error) => {
                let mut check = Check::fail(&id, what, chained(error));
                check.mend = doctor::remedy(foundations).or_else(|| remedy(error));
                Self::absent(engine, check)
            }
            Ok(trial) => {
                let controls = trial.enforcement.iter();
                let mut checks =
                    vec![Check::ok(&id, what, format!("a command ran in it after {} ms", trial.start_ms))];
                checks.extend(controls.filter_map(|(control, observed)| missing(engine, *control, observed)));
                let works = checks.iter().all(|check| check.status != Status::Fail);
                Self { name: engine, works, checks, enforcement: trial.enforcement.clone() }
            }
        }
    }
}

/// What the error itself knows; that `doctor` can be asked is no news here.
fn remedy(error: &CliError) -> Option<String> {
    match error {
        CliError::Session(error) => error.remedy(),
        other => other.hint(),
    }
}

fn missing(engine: EngineChoice, control: Control, observed: &Observed) -> Option<Check> {
    let (Observed::Partial { why } | Observed::Absent { why }) = observed else { return None };
    let check = Check::fail(&format!("{engine}.{control}"), &format!("control `{control}`"), why);
    Some(check.mend("sandtable run --best-effort -- CMD"))
}

/// For people.
pub(super) fn render(answer: &Answer) -> String {
    let mut parts: Vec<String> = answer.engines.iter().map(engine).collect();
    parts.push(format!("\nmachine\n{}", lines(&answer.machine)));
    if let Some(attacks) = &answer.attacks {
        let rows: Vec<[String; 4]> = attacks.iter().map(Attack::row).collect();
        let through = attacks.iter().filter(|attack| attack.went_through()).count();
        let table = indented(&table::aligned(&rows));
        parts.push(format!("\nattacks\n{table}  {} tried, {through} went through\n", attacks.len()));
    }
    let end = if answer.works { "sandboxes can be made here" } else { "no sandbox can be made here" };
    parts.push(format!("\n{end}\n"));
    parts.concat()
}

fn engine(engine: &Engine) -> String {
    let state = engine.state();
    // What is watched is not read back.
    let watched = |observed: &&Observed| matches!(observed, Observed::Watched { .. });
    let read_back = engine.enforcement.values().filter(|observed| !watched(observed));
    let holds = read_back.clone().filter(|observed| **observed == Observed::Enforced).count();
    let ledger = match read_back.count() {
        0 => String::new(),
        all => format!("  ok    {holds} of {all} controls, as read back inside\n"),
    };
    format!("{}: {state}\n{}{ledger}", engine.name, lines(&engine.checks))
}

fn lines(checks: &[Check]) -> String {
    checks.iter().map(line).collect::<Vec<_>>().concat()
}

fn line(check: &Check) -> String {
    let [what, why] = [&check.what, &check.why].map(|text| escape::line(text));
    let mend =
        check.mend.as_ref().map(|mend| format!("  {:<5} {:<24} {}\n", "", "mend:", escape::line(mend)));
    let mend = mend.unwrap_or_default();
    format!("  {:<5} {:<24} {what}: {why}\n{mend}", check.status.word(), check.id)
}

#[cfg(test)]
mod tests {
    use sandtable_protocol::probe::Class;

    use super::*;
    use crate::commands::SCHEMA;

    fn answer() -> Answer {
        let native = Engine {
            name: EngineChoice::Native,
            works: true,
            checks: vec![Check::ok("native.launch", "a sandbox, launched for trial", "a command ran")],
            enforcement: [(Control::Seccomp, Observed::Enforced)].into(),
        };
        let docker =
            Engine::absent(EngineChoice::Docker, Check::warn("engine.docker", "engine", "not installed"));
        let attack = Attack {
            probe: "caps".to_owned(),
            attacks: vec!["box/F17".to_owned()],
            expected: Class::Blocked,
            got: Class::Blocked,
            detail: "0".to_owned(),
        };
        let machine = vec![Check::fail("kernel.landlock", "Landlock", "off\u{1b}[2J").mend("reboot")];
        Answer {
            schema: SCHEMA,
            works: true,
            engines: vec![native, docker],
            machine,
            attacks: Some(vec![attack]),
        }
    }

    #[test]
    fn the_answer_has_the_shape_its_schema_promises() {
        sandtable_testkit::schema::check("doctor.json", &answer());
        sandtable_testkit::schema::check("doctor.json", &Answer { attacks: None, ..answer() });
    }

    #[test]
    fn people_see_what_holds_and_what_mends_the_rest() {
        insta::assert_snapshot!(render(&answer()), @r"
        native: works
          ok    native.launch            a sandbox, launched for trial: a command ran
          ok    1 of 1 controls, as read back inside
        docker: cannot be used here
          warn  engine.docker            engine: not installed

        machine
          fail  kernel.landlock          Landlock: off\u{1b}[2J
                mend:                    reboot

        attacks
          stopped  caps  box/F17  0
          1 tried, 0 went through

        sandboxes can be made here
        ");
    }
}
