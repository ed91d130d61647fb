//! Steps become actions. Pure: the same plan with the same dependencies gives the same actions.

use std::collections::BTreeMap;

use sandtable_sandbox::model::path::BoxPath;
use sandtable_sandbox::model::shell::quoted;
use sandtable_sandbox::model::tool::ProvidedDep;

use super::{Action, Area, COMPILER_CACHE, Command, HOME, OWN, Packed, Unpacking, WORK};
use crate::family::family;
use crate::plan::step::{ArchiveFormat, NpmExec, Patch, PipInstall, Placement};
use crate::plan::{InnerPath, Plan, Step};

/// The directories of a root file system that hold programs, behind those of tools.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
/// A moment for everything that would write down the present one, so that two builds are alike: the first of 2020.
const EPOCH: &str = "1577836800";

/// Copies each pair of arguments, files and directories alike. Paths come as arguments, never as part of a script.
const PLACE: &str = r#"set -e
while [ $# -gt 0 ]; do
  if [ -d "$1" ] && [ ! -L "$1" ]; then mkdir -p "$2"; cp -a "$1/." "$2/"
  else mkdir -p "${2%/*}"; cp -a "$1" "$2"; fi
  shift 2
done"#;
/// Links each pair of arguments.
const LINK: &str = r#"set -e
while [ $# -gt 0 ]; do mkdir -p "${2%/*}"; ln -s "$1" "$2"; shift 2; done"#;

/// Lowers the steps of one plan, in order: what one sets is seen by those after it.
#[derive(Debug)]
pub struct Lowering<'a> {
    pub(super) plan: &'a Plan,
    pub(super) dependencies: &'a [ProvidedDep],
    pub(super) jobs: usize,
    environment: BTreeMap<String, String>,
}

impl<'a> Lowering<'a> {
    /// `dependencies` are all that the steps see; `jobs` is how much a build may do at once.
    pub fn new(plan: &'a Plan, dependencies: &'a [ProvidedDep], jobs: usize) -> Self {
        Self { plan, dependencies, jobs, environment: BTreeMap::new() }
    }

    /// What the step with that number is.
    pub fn step(&mut self, number: usize, step: &Step) -> Vec<Action> {
        match step {
            Step::DownloadFile { file, to } => vec![Action::Put { file: file.clone(), to: to.clone() }],
            Step::Extract { archive, format, to, strip } => vec![Action::Unpack(Unpacking {
                from: Packed::Work(archive.clone()),
                format: *format,
                area: Area::Work,
                to: to.clone(),
                strip: *strip,
            })],
            Step::Chmod { files, mode } => {
                let files = files.iter().map(|file| in_work(file).to_string());
                vec![self.run(["chmod".to_owned(), String::from(*mode)].into_iter().chain(files))]
            }
            Step::InstallBinaries { files, executables } => self.install(files, executables),
            Step::InstallLibraries { from, patterns, to } => {
                vec![Action::Collect { from: from.clone(), patterns: patterns.clone(), to: to.clone() }]
            }
            Step::SetEnv { vars } => {
                self.environment.extend(vars.clone());
                Vec::new()
            }
            Step::SetRpath { binaries, rpath } => {
                let words = ["patchelf", "--set-rpath", rpath].map(str::to_owned);
                vec![
                    self.run(
                        words.into_iter().chain(binaries.iter().map(|file| self.output(file).to_string())),
                    ),
                ]
            }
            Step::LinkDependencies { dependency, files, to } => {
                let found = self.dependencies.iter().find(|provided| provided.name == *dependency);
                let place = found.map_or_else(|| self.plan.place(), |provided| provided.place.clone());
                let pairs = files.iter().flat_map(|file| {
                    let target = self.output(to).join(file.file_name());
                    [place.join(file.as_path()).to_string(), target.to_string()]
                });
                vec![self.script(LINK, pairs)]
            }
            Step::ApplyPatch { patch, strip, directory } => {
                let directory = directory.as_ref().map_or_else(work, in_work);
                self.patch(number, (patch, *strip), directory)
            }
            Step::TextReplace { file, find, replace } => {
                vec![Action::Replace { file: file.clone(), find: find.clone(), replace: replace.clone() }]
            }
            Step::RunCommand { command, directory, env } => {
                let mut environment = self.environment();
                environment.extend(env.clone());
                let directory = directory.as_ref().map_or_else(work, in_work);
                vec![Action::Run(Command { argv: command.clone(), directory, environment })]
            }
            Step::NpmExec(exec) => self.npm(exec),
            Step::PipInstall(install) => self.pip(install),
            Step::CmakeBuild(build) => self.cmake(number, build),
            Step::ConfigureMake(build) => self.configure(build),
            Step::MesonBuild(build) => self.meson(number, build),
            Step::CargoBuild(build) => self.cargo(build),
            Step::GoBuild(build) => self.go(build),
            Step::SystemPackages { manager, packages } => self.packages(*manager, packages),
        }
    }

    /// The environment of the next command: nothing of the caller's is in it.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let own = format!("{WORK}/{OWN}/bin");
        let mut environment = user_environment(self.plan, self.dependencies, &[own]);
        environment.insert("SOURCE_DATE_EPOCH".to_owned(), EPOCH.to_owned());
        environment.insert("ZIG_LOCAL_CACHE_DIR".to_owned(), format!("{WORK}/{OWN}/zig-local"));
        if let Some(zig) = self.zig() {
            let cache = zig.place.join(COMPILER_CACHE);
            environment.insert("ZIG_GLOBAL_CACHE_DIR".to_owned(), cache.to_string());
        }
        environment.extend(self.environment.clone());
        environment
    }

    /// The compiler among the dependencies.
    pub(super) fn zig(&self) -> Option<&ProvidedDep> {
        self.dependencies.iter().find(|dependency| dependency.name.as_str() == "zig")
    }

    pub(super) fn output(&self, path: &InnerPath) -> BoxPath {
        self.plan.place().join(path.as_path())
    }

    pub(super) fn run(&self, argv: impl IntoIterator<Item = String>) -> Action {
        self.run_in(work(), argv)
    }

    pub(super) fn run_in(&self, directory: BoxPath, argv: impl IntoIterator<Item = String>) -> Action {
        let argv = argv.into_iter().collect();
        Action::Run(Command { argv, directory, environment: self.environment() })
    }

    pub(super) fn script(&self, script: &str, arguments: impl IntoIterator<Item = String>) -> Action {
        let words = ["sh", "-c", script, "sh"].map(str::to_owned);
        self.run(words.into_iter().chain(arguments))
    }

    pub(super) fn install(&self, files: &[Placement], executables: &[InnerPath]) -> Vec<Action> {
        let pairs = files
            .iter()
            .flat_map(|file| [in_work(&file.from).to_string(), self.output(&file.to).to_string()]);
        let mut actions = vec![self.script(PLACE, pairs)];
        if !executables.is_empty() {
            let files = executables.iter().map(|file| self.output(file).to_string());
            actions.push(self.run(["chmod", "755"].map(str::to_owned).into_iter().chain(files)));
        }
        actions
    }

    fn patch(&self, number: usize, (patch, strip): (&Patch, u32), directory: BoxPath) -> Vec<Action> {
        let (mut actions, file) = match patch {
            Patch::File(file) => (Vec::new(), in_work(file)),
            Patch::Data(text) => {
                let written = own(&format!("patch-{number}"));
                let file = in_work(&written);
                (
                    vec![Action::Write { area: Area::Work, path: written, text: text.clone(), mode: 0o644 }],
                    file,
                )
            }
        };
        let words = [
            "patch".to_owned(),
            "--batch".to_owned(),
            format!("-p{strip}"),
            "-i".to_owned(),
            file.to_string(),
        ];
        actions.push(self.run_in(directory, words));
        actions
    }

    /// Packages as they are, each where the plan puts it, and a program for each name. Their scripts do not run.
    fn npm(&self, exec: &NpmExec) -> Vec<Action> {
        let unpack = exec.packages.iter().map(|package| {
            Action::Unpack(Unpacking {
                from: Packed::Download(package.file.clone()),
                format: ArchiveFormat::TarGz,
                area: Area::Output,
                to: below("lib", package.to.as_str()),
                strip: 1,
            })
        });
        let programs = exec.binaries.iter().map(|(name, script)| {
            let script = self.output(&below("lib", script.as_str()));
            program(name, &format!("exec node {} \"$@\"", quoted(&script.to_string())))
        });
        unpack.chain(programs).collect()
    }

    /// Wheels as they are, and a program for each entry point.
    fn pip(&self, install: &PipInstall) -> Vec<Action> {
        let unpack = install.wheels.iter().map(|wheel| {
            Action::Unpack(Unpacking {
                from: Packed::Download(wheel.clone()),
                format: ArchiveFormat::Zip,
                area: Area::Output,
                to: inner("lib/python"),
                strip: 0,
            })
        });
        let place = self.output(&inner("lib/python"));
        let programs = install.binaries.iter().map(|(name, entry)| {
            let (module, function) = entry.split_once(':').unwrap_or((entry, "main"));
            let code = format!(
                "import sys; sys.path.insert(0, {:?}); sys.argv[0] = {:?}; from {module} import {function} as main; \
                 sys.exit(main())",
                place.to_string(),
                // By what it finds there, a program calls itself again.
                self.output(&below("bin", name)).to_string()
            );
            program(name, &format!("exec python3 -c {} \"$@\"", quoted(&code)))
        });
        unpack.chain(programs).collect()
    }
}

/// A small program in the output.
fn program(name: &str, script: &str) -> Action {
    let text = format!("#!/bin/sh\n{script}\n");
    Action::Write { area: Area::Output, path: below("bin", name), text, mode: 0o755 }
}

/// The commands that show that the finished tool works, with itself before what it needs on PATH.
pub fn verification(plan: &Plan, tools: &[ProvidedDep]) -> Vec<Command> {
    let command = |verify: &crate::plan::VerifyCommand| Command {
        argv: verify.command.clone(),
        directory: work(),
        environment: user_environment(plan, tools, &[]),
    };
    plan.verify.iter().map(command).collect()
}

/// What whoever uses these tools has as environment; `first` comes before them on PATH.
fn user_environment(plan: &Plan, tools: &[ProvidedDep], first: &[String]) -> BTreeMap<String, String> {
    let family = plan.platform.linux_family.map(family);
    let system = family.map_or(SYSTEM_PATH, |family| &family.search).to_owned();
    let search = tools.iter().flat_map(|tool| tool.search.iter().map(ToString::to_string));
    let path: Vec<String> = first.iter().cloned().chain(search).chain([system]).collect();
    let fixed =
        [("HOME", HOME), ("TMPDIR", "/tmp"), ("LANG", "C.UTF-8"), ("LC_ALL", "C.UTF-8"), ("TERM", "dumb")];
    let mut environment: BTreeMap<String, String> =
        fixed.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    environment.extend(family.map(|family| ("SSL_CERT_FILE".to_owned(), family.certificates.clone())));
    for tool in tools {
        environment.extend(tool.env.clone());
    }
    environment.insert("PATH".to_owned(), path.join(":"));
    environment
}

/// Where a path of the work directory stands inside.
pub(super) fn in_work(path: &InnerPath) -> BoxPath {
    work().join(path.as_path())
}

pub(super) fn work() -> BoxPath {
    BoxPath::new(WORK).expect("absolute")
}

/// A path of the executor's own below the work directory.
pub(super) fn own(name: &str) -> InnerPath {
    below(OWN, name)
}

pub(super) fn below(directory: &str, name: &str) -> InnerPath {
    inner(&format!("{directory}/{name}"))
}

/// A path that a checked plan leads to. A name with letters that no path may have becomes one without.
fn inner(text: &str) -> InnerPath {
    text.parse().unwrap_or_else(|_| {
        let plain: String =
            text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
        plain.parse().expect("letters, digits and underscores")
    })
}
