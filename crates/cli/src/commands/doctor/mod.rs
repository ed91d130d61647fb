//! `sandtable doctor`: what can be enforced here, what not, why, and the one command that mends it.
//!
//! The native engine is not guessed about: a sandbox is launched on a temporary directory of our own, by the
//! code that `run` uses, and says what holds. The facts around it explain a launch that failed.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Args;
use sandtable_app::config;
use sandtable_app::config::layer::Layer;
use sandtable_protocol::report::{Control, Observed};
use sandtable_sandbox::doctor::{self, Patient};
use sandtable_sandbox::facts::MachineFacts;
use sandtable_sandbox::model::causes::chained;
use sandtable_sandbox::model::check::Check;
use sandtable_sandbox::model::spec::EngineChoice;

use crate::app::App;
use crate::error::CliError;
use crate::exit::Own;

#[cfg(target_os = "linux")]
mod again;
mod answer;
#[cfg(target_os = "linux")]
mod attacks;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod trial;
#[cfg(target_os = "linux")]
mod trial;

use answer::{Answer, Engine};
use trial::Attack;

/// The profile, with the places where a package would put the executable.
const PROFILE: &str = include_str!("../../../../../packaging/apparmor/sandtable");
const PROFILE_PATH: &str = "/usr/{bin,local/bin}/sandtable";

/// What `doctor` takes.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct DoctorArgs {
    /// Also try the attacks of the threat model from inside, and list what came of each
    #[arg(long)]
    attack: bool,
    /// Answer as JSON
    #[arg(long)]
    json: bool,
    /// Print an AppArmor profile that lets this executable make user namespaces, and do nothing else
    #[arg(long, conflicts_with_all = ["attack", "json"])]
    apparmor_profile: bool,
}

/// What a launched sandbox told.
#[derive(Debug)]
struct Trial {
    enforcement: BTreeMap<Control, Observed>,
    start_ms: u64,
    attacks: Vec<Attack>,
}

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// Only that a command runs.
    Launch,
    /// The attacks of the threat model.
    Attack,
}

pub(crate) fn run(app: &App, args: &DoctorArgs) -> Result<ExitCode, CliError> {
    if args.apparmor_profile {
        return profile(app);
    }
    let answer = examine(app, args)?;
    if args.json {
        app.ui.json(&answer)?;
    } else {
        app.ui.answer(&answer::render(&answer))?;
    }
    let leaked = answer.attacks.iter().flatten().any(Attack::went_through);
    Ok(if answer.works && !leaked { ExitCode::SUCCESS } else { Own::Failed.into() })
}

fn examine(app: &App, args: &DoctorArgs) -> Result<Answer, CliError> {
    let (host, facts) = (app.environment().host()?, MachineFacts);
    let patient = Patient { host: &host, facts: &facts };
    let mut machine = doctor::foundations(patient);
    let depth = if args.attack { Depth::Attack } else { Depth::Launch };
    let image = config::load(app.environment(), Layer::default()).ok().and_then(|loaded| loaded.spec.image);
    let image = image.map(|image| image.value.to_string());
    let mut engines = Vec::new();
    let mut attacks = None;
    for choice in EngineChoice::ALL.iter().copied().filter(|choice| *choice != EngineChoice::Auto) {
        if let EngineChoice::Docker | EngineChoice::Podman = choice {
            let checks = doctor::container_engine(choice, patient, image.as_deref());
            engines.push(Engine::of_checks(choice, checks));
            continue;
        }
        if let Some(check) = doctor::absent_engine(choice, patient) {
            engines.push(Engine::absent(choice, check));
            continue;
        }
        let trial = trial::launch(app, choice, depth);
        if let Ok(trial) = &trial {
            attacks = args.attack.then(|| trial.attacks.clone());
        }
        engines.push(Engine::of_trial(choice, &trial, &machine));
    }
    machine.extend(doctor::surroundings(patient));
    machine.extend([settings(app), terminal()]);
    Ok(Answer {
        schema: super::SCHEMA,
        works: engines.iter().any(|engine| engine.works),
        engines,
        machine,
        attacks,
    })
}

/// Whether variables and the user's file can be understood: every other command refuses to go on if not.
fn settings(app: &App) -> Check {
    let (id, what) = ("state.settings", "your settings");
    match config::output(app.environment(), Layer::default()) {
        Ok(_) => Check::ok(id, what, "variables and the user's file are understood"),
        Err(error) => {
            let error = CliError::from(error);
            Check { mend: error.hint(), ..Check::fail(id, what, chained(&error)) }
        }
    }
}

fn terminal() -> Check {
    let (id, what) = ("machine.terminal", "a terminal");
    let both = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let why = if both {
        "standard input and output are one; a command gets a terminal of its own"
    } else {
        "standard input or output is none; a command gets streams"
    };
    Check::ok(id, what, why)
}

/// The profile for the executable that was called.
fn profile(app: &App) -> Result<ExitCode, CliError> {
    let path = std::env::current_exe().map_err(CliError::Answer)?;
    app.ui.answer(&PROFILE.replace(PROFILE_PATH, &quoted(&path.to_string_lossy())))?;
    Ok(ExitCode::SUCCESS)
}

/// A path as AppArmor reads it: in quotes, its own signs taken literally.
fn quoted(path: &str) -> String {
    let special = |c: char| matches!(c, '"' | '\\' | '*' | '?' | '[' | ']' | '{' | '}' | '^' | '@');
    let escaped: String =
        path.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect();
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_names_a_path_once_and_only_there() {
        assert_eq!(PROFILE.matches(PROFILE_PATH).count(), 1);
        assert!(PROFILE.contains("flags=(unconfined)") && PROFILE.contains("userns,"));
        assert_eq!(quoted("/opt/a b/{x}"), r#""/opt/a b/\{x\}""#);
    }
}
