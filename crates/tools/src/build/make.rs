//! Making one tool: its steps, then whether it can run where it will, then whether it works.

use std::path::Path;
use std::time::{Duration, Instant};

use sandtable_sandbox::model::layer::LayerName;
use sandtable_sandbox::model::mount::{Content, HostAccess, Mount, Ownership, Pins};
use sandtable_sandbox::model::path::{BoxPath, HostPath};
use sandtable_sandbox::model::resolved::ResolvedSpec;
use sandtable_sandbox::model::setting::Origin;
use sandtable_sandbox::model::tool::ProvidedDep;
use sandtable_sandbox::session::Sandboxes;
use sandtable_sandbox::session::one_shot::{End, OneShot, Ran};

use super::error::{Error, StepError};
use super::files::Foreign;
use super::fit::{Answer, Fit, Question, Unfit, ask};
use super::image::BuildImage;
use super::left;
use super::packages;
use super::root::{Seen, System, mount};
use super::spec::{Steps, limits, spec, table};
use super::usage::Usage;
use super::{Note, Workshop};
use crate::assemble::implies;
use crate::depot::Workplace;
use crate::elf::Misfit;
use crate::execute::{
    Action, Area, COMPILER_CACHE, Command, Lowering, Packed, WORK, missing_commands, verification,
};
use crate::fetch::Cache;
use crate::plan::{FileName, Plan, VerifyCommand};

/// How long steps may take: those that only put files in place, and those that compile.
const PLACING: Duration = Duration::from_mins(10);
const BUILDING: Duration = Duration::from_hours(1);
/// How long a verification may take.
const VERIFYING: Duration = Duration::from_mins(2);

/// A tool in the making.
pub(super) struct Making<'a> {
    pub(super) workshop: &'a Workshop,
    pub(super) root: &'a Seen,
    pub(super) cache: &'a Cache,
    pub(super) plan: &'a Plan,
    /// All that its steps see.
    pub(super) dependencies: &'a [ProvidedDep],
    pub(super) workplace: &'a Workplace,
    /// Called when a step begins, with its number from one and its action.
    pub(super) begun: &'a dyn Fn(usize, &'static str),
}

impl Making<'_> {
    pub(super) fn make(&self) -> Result<Vec<Note>, Error> {
        let sandbox = |error| Error::Sandbox(Box::new(error));
        packages::check(self.plan, self.root, self.workshop.identity)
            .map_err(|source| Error::Packages { chain: self.plan.name.to_string(), source })?;
        let sandboxes = Sandboxes::new(&self.workplace.partial);
        let resolved = self.resolved().map_err(sandbox)?;
        let mut inside = OneShot::new(&sandboxes, resolved).map_err(sandbox)?;
        let mut usage = Usage::of(self.dependencies);
        let notes = self.steps(&inside, &mut usage)?;
        inside.remount(table(self.mounts(HostAccess::Read)).map_err(sandbox)?);
        self.check(&inside)?;
        self.verify(&inside)?;
        usage.look();
        let tool = || self.plan.title();
        let unused = usage.unused().into_iter().filter(|name| self.is_declared(name));
        let unused = unused.map(|dependency| Note::Unused { tool: tool(), dependency });
        Ok(notes.into_iter().chain(unused).collect())
    }

    /// Whether the plan itself names it; what only a dependency needs, or what comes with an action, is not the author's
    /// choice.
    fn is_declared(&self, name: &str) -> bool {
        let (steps, os) = (&self.plan.steps, self.plan.platform.os);
        let implied = steps.iter().any(|step| implies(step.action(), os, name));
        !implied && self.plan.dependencies.iter().any(|dependency| dependency.name.as_str() == name)
    }

    fn steps(&self, inside: &OneShot, usage: &mut Usage) -> Result<Vec<Note>, Error> {
        let usual = if self.plan.builds() { BUILDING } else { PLACING };
        let limit = self.workshop.timeout.unwrap_or(usual);
        let running = Running { inside, deadline: Instant::now() + limit, limit };
        let mut lowering = Lowering::new(self.plan, self.dependencies, self.workshop.jobs);
        let mut notes = Vec::new();
        for (index, step) in self.plan.steps.iter().enumerate() {
            let (number, action) = (index + 1, step.action());
            (self.begun)(number, action);
            left::begin(self.workplace, number);
            let failed = |source| Error::Step {
                chain: self.plan.name.to_string(),
                number,
                action,
                source: Box::new(source),
            };
            for todo in lowering.step(index, step) {
                let missing = self.act(&todo, number, &running).map_err(failed)?;
                notes.extend(missing.into_iter().map(|command| Note::Undeclared {
                    tool: self.plan.title(),
                    step: number,
                    command,
                }));
                usage.look();
            }
        }
        Ok(notes)
    }

    /// Does one thing; says which programs were looked for in vain.
    fn act(&self, action: &Action, number: usize, running: &Running<'_>) -> Result<Vec<String>, StepError> {
        let area = |area: Area| match area {
            Area::Work => Foreign::open(&self.workplace.work),
            Area::Output => Foreign::open(&self.workplace.output),
        };
        match action {
            Action::Put { file, to } => {
                let mut content = self.download(file)?;
                area(Area::Work)?.write(to, &mut content, 0o644)?;
            }
            Action::Unpack(unpacking) => {
                let (archive, shown) = match &unpacking.from {
                    Packed::Work(path) => (area(Area::Work)?.read(path)?, path.to_string()),
                    Packed::Download(file) => (self.download(file)?, file.to_string()),
                };
                let how = (unpacking.format, unpacking.strip);
                let unpacked = area(unpacking.area)?.unpack(&unpacking.to, archive, how);
                unpacked.map_err(|source| StepError::Archive { file: shown, source })?;
            }
            Action::Write { area: which, path, text, mode } => {
                area(*which)?.write(path, &mut text.as_bytes(), *mode)?;
            }
            Action::Replace { file, find, replace } => area(Area::Work)?.replace(file, find, replace)?,
            Action::Collect { from, patterns, to } => {
                let work = area(Area::Work)?;
                let target = self.plan.place().join(to.as_path());
                for pattern in patterns {
                    let names = work.matching(from, pattern)?;
                    let paths = names.iter().map(|name| format!("{WORK}/{from}/{name}"));
                    running.run(&collecting(paths, &target), number)?;
                }
            }
            Action::Require { outputs } => {
                let output = area(Area::Output)?;
                if let Some(missing) = outputs.iter().find(|path| !output.has(path)) {
                    return Err(StepError::NoOutput(missing.to_string()));
                }
            }
            Action::Run(command) => return running.run(command, number),
        }
        Ok(Vec::new())
    }

    fn download(&self, file: &FileName) -> Result<std::fs::File, StepError> {
        let gone = || StepError::NoDownload(file.to_string());
        let download = self.plan.downloads.iter().find(|download| download.file == *file).ok_or_else(gone)?;
        self.cache.open(download).ok().flatten().ok_or_else(gone)
    }

    /// Whether every program that the tool offers is there and can run in the root file system.
    fn check(&self, inside: &OneShot) -> Result<(), Error> {
        let chain = || self.plan.name.to_string();
        let fit = match &self.root.system {
            System::Machine(files) | System::Tree(files) => {
                let tools = self.dependencies.iter().map(|tool| tool.source.as_path());
                let fit = self.fit(self.workplace.output.as_path(), tools);
                fit.check(&packages::files(files, &self.mounts(HostAccess::Read), inside))
            }
            System::Image(image) => {
                let tools = self.dependencies.iter().map(|tool| tool.place.as_path());
                let place = self.plan.place();
                self.fit_inside(self.fit(place.as_path(), tools), inside, image)?
            }
        };
        fit.map_err(|unfit| match unfit {
            Unfit::Missing(binary) => Error::NoBinary { chain: chain(), binary },
            Unfit::Misfit(misfit) => Error::Misfit { chain: chain(), source: Box::new(misfit) },
        })
    }

    fn fit<'p>(&self, place: &'p Path, tools: impl Iterator<Item = &'p Path>) -> Fit {
        let libraries = tools.chain([place]).flat_map(|place| [place.join("lib"), place.join("lib64")]);
        Fit {
            libraries: libraries.collect(),
            place: place.to_owned(),
            binaries: self.plan.provides.binaries.iter().map(ToString::to_string).collect(),
            machine: self.plan.platform.arch.to_string(),
        }
    }

    /// The same asked in a container, where the image's files are.
    fn fit_inside(&self, fit: Fit, inside: &OneShot, image: &BuildImage) -> Result<Result<(), Unfit>, Error> {
        let answer = ask(inside, &Question::Fit(fit), Instant::now() + VERIFYING);
        match answer.map_err(|error| Error::Sandbox(Box::new(error)))? {
            Some(Answer::Fits) => Ok(Ok(())),
            Some(Answer::Missing { binary }) => Ok(Err(Unfit::Missing(binary))),
            Some(Answer::Misfit { said, remedy }) => Ok(Err(Unfit::Misfit(Misfit::Told { said, remedy }))),
            Some(Answer::Looked(_)) | None => {
                Err(Error::NoAnswer { chain: self.plan.name.to_string(), image: image.made_on.image.clone() })
            }
        }
    }

    fn verify(&self, inside: &OneShot) -> Result<(), Error> {
        let itself = ProvidedDep {
            name: self.plan.name.clone(),
            version: self.plan.version.clone(),
            key: String::new(),
            source: self.workplace.output.clone(),
            place: self.plan.place(),
            search: self.plan.search(),
            env: self.plan.provides.env.clone(),
            made_on: None,
        };
        let tools: Vec<ProvidedDep> =
            std::iter::once(itself).chain(self.dependencies.iter().cloned()).collect();
        for (command, wanted) in verification(self.plan, &tools).iter().zip(&self.plan.verify) {
            let ran = inside
                .run(command, Instant::now() + self.workshop.timeout.unwrap_or(VERIFYING).min(VERIFYING));
            let ran = ran.map_err(|error| Error::Sandbox(Box::new(error)))?;
            if let Some(why) = unsatisfied(&ran, wanted) {
                return Err(Error::Verify {
                    chain: self.plan.name.to_string(),
                    command: command.shown(),
                    why,
                });
            }
        }
        Ok(())
    }

    /// The file system of a step; `output` says what may be done with the tool itself.
    fn mounts(&self, output: HostAccess) -> Vec<Mount> {
        let ours = |target: &BoxPath, source: &HostPath, access, reason: &str| Mount {
            target: target.clone(),
            content: Content::Host {
                source: source.clone(),
                access,
                ownership: Ownership::Caller,
                identity: None,
            },
            reason: reason.to_owned(),
            origin: Origin::Default,
        };
        let mut mounts = packages::mounts(self.plan, self.root, self.workshop.identity);
        let work = BoxPath::new(WORK).expect("absolute");
        mounts.push(ours(&work, &self.workplace.work, HostAccess::Write, "where the steps work"));
        mounts.push(ours(
            &self.plan.place(),
            &self.workplace.output,
            output,
            "what the tool will consist of",
        ));
        for tool in self.dependencies {
            mounts.push(ours(&tool.place, &tool.source, HostAccess::Read, "a declared dependency"));
            let cache = tool.source.join(COMPILER_CACHE);
            if cache.as_path().is_dir() {
                let content = Content::Cow {
                    source: cache,
                    layer: LayerName::cache(tool.name.as_str()).expect("the name of a tool is one of a file"),
                    pins: Pins::None,
                    identity: None,
                };
                let target = tool.place.join(COMPILER_CACHE).to_string();
                mounts.push(mount(
                    &target,
                    content,
                    "a compiler's cache; what is added is for these steps only",
                ));
            }
        }
        mounts
    }

    pub(super) fn resolved(&self) -> Result<ResolvedSpec, sandtable_sandbox::session::SessionError> {
        spec(Steps {
            on: self.root.image(),
            identity: self.workshop.identity,
            source: self.workplace.work.clone(),
            directory: BoxPath::new(WORK).expect("absolute"),
            mounts: self.mounts(HostAccess::Write),
            limits: limits(self.plan),
        })
    }
}

/// The sandbox of the steps and how long it may take.
struct Running<'a> {
    inside: &'a OneShot,
    deadline: Instant,
    limit: Duration,
}

impl Running<'_> {
    /// Runs to the end; says which programs were looked for in vain.
    fn run(&self, command: &Command, number: usize) -> Result<Vec<String>, StepError> {
        let Ran { end, output } = self.inside.run(command, self.deadline)?;
        let missing = missing_commands(&output);
        match end {
            End::Exited(0) => Ok(missing),
            End::Exited(code) => {
                Err(StepError::Exit { command: command.shown(), code, missing, output: last_lines(&output) })
            }
            End::TimedOut => Err(StepError::TimedOut { limit: self.limit }),
            End::NoProgram => Err(StepError::NotFound { number, program: command.argv[0].clone() }),
        }
    }
}

/// Copies files into a directory of the output.
fn collecting(paths: impl Iterator<Item = String>, target: &BoxPath) -> Command {
    let script = "set -e; to=$1; shift; mkdir -p \"$to\"; cp -a \"$@\" \"$to/\"";
    let words = ["sh", "-c", script, "sh", &target.to_string()].map(str::to_owned);
    let variables = [("PATH", "/usr/bin:/bin"), ("LC_ALL", "C.UTF-8")];
    Command {
        argv: words.into_iter().chain(paths).collect(),
        directory: BoxPath::new(WORK).expect("absolute"),
        environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
    }
}

/// What a verification lacks.
fn unsatisfied(ran: &Ran, wanted: &VerifyCommand) -> Option<String> {
    match ran.end {
        End::TimedOut => return Some("it does not end".to_owned()),
        End::NoProgram => return Some("there is no such program".to_owned()),
        End::Exited(code) if code != wanted.exit_code => {
            return Some(format!(
                "it ended with {code}, not {}; it said: {}",
                wanted.exit_code,
                last_lines(&ran.output)
            ));
        }
        End::Exited(_) => {}
    }
    let missing = wanted.patterns.iter().find(|pattern| !ran.output.contains(pattern.as_str()))?;
    Some(format!("`{missing}` is not in what it said: {}", last_lines(&ran.output)))
}

/// The end of an output, for an error.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
