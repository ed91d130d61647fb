//! Container engines: installed, answering, whose rights they have, and whether the image is here. Asked, not
//! launched: without an image there is nothing to launch.

use std::path::{Path, PathBuf};

use super::Patient;
use crate::facts::Said;
use crate::model::check::Check;
use crate::model::container::Questions;
use crate::model::spec::EngineChoice;
use crate::resolve::engine_variables;

/// What is known of a container engine; the last check that is no failure says how far it got.
pub fn container_engine(engine: EngineChoice, patient: Patient<'_>, image: Option<&str>) -> Vec<Check> {
    let id = |what: &str| format!("{engine}.{what}");
    let search = patient.host.environment.get("PATH").map_or("", String::as_str);
    let search: Vec<PathBuf> = search.split(':').map(PathBuf::from).collect();
    let what = format!("engine `{engine}`");
    let Some(Questions { package, ask: words }) = Questions::of(engine) else { return Vec::new() };
    let Ok(program) = patient.facts.program(engine.word(), &search) else {
        let check = Check::warn(&format!("engine.{engine}"), &what, "not installed");
        return vec![check.mend(format!("sudo apt-get install {package}"))];
    };
    let said = if let Some(words) = words {
        ask(patient, &program, words)
    } else {
        let stdout = format!("installed at `{}`", program.display());
        Ok(Said { code: Some(0), stdout, stderr: String::new() })
    };
    let mut checks = match said {
        Ok(Said { code: Some(0), stdout, .. }) => answers(engine, &what, stdout.trim(), patient),
        other => return vec![silent(&format!("engine.{engine}"), &what, other)],
    };
    checks.extend(image.map(|image| presence(&id("image"), image, patient, &program)));
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
        _ => (said.to_owned(), patient.host.uid != 0),
    };
    let rights = if rootless { Rights::Own } else { Rights::Root };
    vec![Check::ok(&format!("engine.{engine}"), what, text), rights.check(&format!("{engine}.rights"))]
}

/// Whose rights an engine has.
enum Rights {
    Own,
    Root,
}

fn ask(patient: Patient<'_>, program: &Path, arguments: &[&str]) -> Result<Said, String> {
    let variables: Vec<(String, String)> =
        engine_variables(patient.host).into_iter().map(|(name, variable)| (name, variable.value)).collect();
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
    match ask(patient, program, &["image", "inspect", "--format", "{{.Id}}", image]) {
        Ok(Said { code: Some(0), stdout, .. }) => Check::ok(id, &what, format!("here, as {}", stdout.trim())),
        _ => Check::warn(id, &what, "not here; the first run fetches it")
            .mend(format!("{} pull {image}", program.display())),
    }
}
