//! Container engines: installed, answering, whose rights they have, and whether the image is here. Asked, not
//! launched: without an image there is nothing to launch.

use std::path::Path;

use super::{Patient, podman};
use crate::facts::Said;
use crate::model::check::Check;
use crate::model::container::{Homeless, Questions};
use crate::model::spec::EngineChoice;
use crate::resolve::{engine_variables, helper};

/// Directories that a program may make things in.
const HOMES: &[&str] = &["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];
/// Said of an engine that was not asked.
const NEVER_RAN: &str = "installed; it has never run for you, and to ask it would make its directories";
/// What nobody has.
const NOWHERE: &str = "/nonexistent";

/// What is known of a container engine; the last check that is no failure says how far it got.
pub fn container_engine(engine: EngineChoice, patient: Patient<'_>, image: Option<&str>) -> Vec<Check> {
    let id = |what: &str| format!("{engine}.{what}");
    let what = format!("engine `{engine}`");
    let Some(questions) = Questions::of(engine) else { return Vec::new() };
    let Questions { package, .. } = questions;
    let Some(program) = helper(engine.word(), patient.host, patient.facts) else {
        let check = Check::warn(&format!("engine.{engine}"), &what, "not installed");
        return vec![check.mend(format!("sudo apt-get install {package}"))];
    };
    // To ask a Podman that has never run would make its directories: for root not where it has no home, for others anyway.
    let has_run = questions.homeless == Homeless::No || podman::has_storage(patient);
    let said = match (has_run, patient.host.uid) {
        (true, uid) if uid != 0 => ask(patient, &program, questions.ask, Homeless::No),
        (false, uid) if uid != 0 => {
            Ok(Said { code: Some(0), stdout: NEVER_RAN.to_owned(), stderr: String::new() })
        }
        _ => ask(patient, &program, questions.ask, questions.homeless),
    };
    let mut checks = match said {
        Ok(Said { code: Some(0), stdout, .. }) => answers(engine, &what, stdout.trim(), patient),
        other => return vec![silent(&format!("engine.{engine}"), &what, other)],
    };
    if questions.homeless == Homeless::Yes {
        checks.extend(podman::checks(patient));
    }
    checks.extend(image.map(|image| {
        if has_run {
            presence(&id("image"), image, patient, &program)
        } else {
            absent(&id("image"), image, &program)
        }
    }));
    checks
}

/// What an engine said of itself.
fn answers(engine: EngineChoice, what: &str, said: &str, patient: Patient<'_>) -> Vec<Check> {
    let fields: Vec<&str> = said.splitn(4, ';').collect();
    let (text, rootless) = match fields[..] {
        [version, runtime, groups, security] => (
            format!("version {version}, runtime `{runtime}`, control groups of version {groups}"),
            security.contains("name=rootless"),
        ),
        _ => (said.trim_start_matches("podman ").to_owned(), patient.host.uid != 0),
    };
    let rights = if rootless { Rights::Own } else { Rights::Root };
    vec![Check::ok(&format!("engine.{engine}"), what, text), rights.check(&format!("{engine}.rights"))]
}

/// Whose rights an engine has.
enum Rights {
    Own,
    Root,
}

fn ask(patient: Patient<'_>, program: &Path, arguments: &[&str], homeless: Homeless) -> Result<Said, String> {
    let own = engine_variables(patient.host, patient.facts).into_iter().map(|(name, variable)| {
        let home = homeless == Homeless::Yes && HOMES.contains(&name.as_str());
        (name, if home { NOWHERE.to_owned() } else { variable.value })
    });
    let mut variables: Vec<(String, String)> = own.collect();
    if homeless == Homeless::Yes {
        let missing = HOMES.iter().filter(|name| !variables.iter().any(|(known, _)| known == *name));
        let missing: Vec<_> = missing.map(|name| ((*name).to_owned(), NOWHERE.to_owned())).collect();
        variables.extend(missing);
    }
    patient.facts.output(program, arguments, &variables).map_err(|why| why.to_string())
}

fn silent(id: &str, what: &str, said: Result<Said, String>) -> Check {
    let why = match said {
        Ok(said) if said.stderr.trim().is_empty() => said.stdout,
        Ok(said) => said.stderr,
        Err(why) => why,
    };
    let why = why.trim().lines().last().unwrap_or("it says nothing").to_owned();
    let mend = if why.to_lowercase().contains("permission denied") {
        "sudo usermod -aG docker $USER"
    } else {
        "sudo systemctl start docker"
    };
    Check::fail(id, what, why).mend(mend)
}

impl Rights {
    fn check(&self, id: &str) -> Check {
        let what = "whose rights it has";
        match self {
            Self::Own => Check::ok(id, what, "yours: the command has ids of its own"),
            Self::Root => Check::warn(
                id,
                what,
                "root's: the command shares the ids of the host, and whoever may use the engine is as good as root",
            ),
        }
    }
}

fn presence(id: &str, image: &str, patient: Patient<'_>, program: &Path) -> Check {
    let what = format!("image `{image}`");
    match ask(patient, program, &["image", "inspect", "--format", "{{.Id}}", image], Homeless::No) {
        Ok(Said { code: Some(0), stdout, .. }) => Check::ok(id, &what, format!("here, as {}", stdout.trim())),
        _ => absent(id, image, program),
    }
}

fn absent(id: &str, image: &str, program: &Path) -> Check {
    let what = format!("image `{image}`");
    Check::warn(id, &what, "not here; the first run fetches it")
        .mend(format!("{} pull {image}", program.display()))
}
