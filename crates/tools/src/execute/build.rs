//! The build systems. Compiler and linker are `zig`, told the machine and the C library by the plan, so that what is
//! built depends neither on the processor at hand nor on headers and libraries of the system. Where no dependency of ours
//! is wanted, that system is what one builds with: its compiler, its headers and its libraries.

use super::lower::{Lowering, in_work, own, work};
use super::{Action, Area, Command, OWN, Packed, Unpacking, WORK};
use crate::family;
use crate::plan::step::{
    ArchiveFormat, CargoBuild, CmakeBuild, Configure, ConfigureMake, GoBuild, MesonBuild, PackageManager,
    Placement,
};
use crate::plan::{InnerPath, Libc, PlanPlatform};

/// The compiler's arguments for a platform. The present moment is what `SOURCE_DATE_EPOCH` says, so a program may ask for it.
pub(super) fn compiler_target(platform: PlanPlatform) -> String {
    let libc = match platform.libc {
        Libc::Glibc => "gnu",
        Libc::Musl => "musl",
    };
    format!("-target {}-linux-{libc} -mcpu=baseline -Wno-date-time", platform.arch)
}

impl Lowering<'_> {
    /// The usual names of a compiler and its companions, as small programs that call `zig`; none where the system's are
    /// to be found.
    fn compilers(&self) -> Vec<Action> {
        if self.zig().is_none() {
            return Vec::new();
        }
        let target = compiler_target(self.plan.platform);
        let each = [
            ("cc", format!("cc {target}")),
            ("gcc", format!("cc {target}")),
            ("c++", format!("c++ {target}")),
            ("g++", format!("c++ {target}")),
            ("ar", "ar".to_owned()),
            ("ranlib", "ranlib".to_owned()),
            ("ld", "ld.lld".to_owned()),
        ];
        let write = |(name, call): (&str, String)| Action::Write {
            area: Area::Work,
            path: own(&format!("bin/{name}")),
            text: format!("#!/bin/sh\nexec zig {call} \"$@\"\n"),
            mode: 0o755,
        };
        each.map(write).into()
    }

    /// Runs a build tool where the compiler and the dependencies are what it finds, and nothing of the system is; or where
    /// the system is all that it finds.
    fn built(&self, directory: sandtable_sandbox::model::path::BoxPath, argv: Vec<String>) -> Action {
        let mut action = self.run_in(directory, argv);
        if let Action::Run(command) = &mut action
            && self.zig().is_some()
        {
            let tools = ["CC", "CXX", "AR", "RANLIB"].into_iter().zip(["cc", "c++", "ar", "ranlib"]);
            let mut set = |name: &str, value: String| {
                command.environment.entry(name.to_owned()).or_insert(value);
            };
            for (variable, tool) in tools {
                set(variable, format!("{WORK}/{OWN}/bin/{tool}"));
            }
            let each =
                |below: &str| self.dependencies.iter().map(|tool| tool.place.join(below)).collect::<Vec<_>>();
            let joined =
                |places: Vec<sandtable_sandbox::model::path::BoxPath>, prefix: &str, between: &str| {
                    let texts = places.iter().map(|place| format!("{prefix}{place}"));
                    texts.collect::<Vec<_>>().join(between)
                };
            let mut packages = each("lib/pkgconfig");
            packages.extend(each("share/pkgconfig"));
            set("PKG_CONFIG_LIBDIR", joined(packages, "", ":"));
            let libraries = self.libraries();
            set("CPPFLAGS", joined(libraries.iter().map(|place| place.join("include")).collect(), "-I", " "));
            set("LDFLAGS", joined(libraries.iter().map(|place| place.join("lib")).collect(), "-L", " "));
            set("CMAKE_PREFIX_PATH", joined(libraries, "", ":"));
        }
        action
    }

    /// Dependencies that offer no program are there for their libraries.
    fn libraries(&self) -> Vec<sandtable_sandbox::model::path::BoxPath> {
        self.dependencies
            .iter()
            .filter(|tool| tool.search.is_empty())
            .map(|tool| tool.place.clone())
            .collect()
    }

    pub(super) fn cmake(&self, number: usize, build: &CmakeBuild) -> Vec<Action> {
        let directory = in_work(&own(&format!("cmake-{number}"))).to_string();
        let mut configure: Vec<String> =
            ["cmake", "-S", &in_work(&build.source).to_string(), "-B", &directory].map(str::to_owned).into();
        configure.extend(["-G", "Unix Makefiles"].map(str::to_owned));
        configure.push(format!("-DCMAKE_BUILD_TYPE={}", capital(&build.build_type)));
        configure.push(format!("-DCMAKE_INSTALL_PREFIX={}", self.plan.place()));
        configure.push("-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF".to_owned());
        configure.extend(build.arguments.clone());
        let mut make: Vec<String> = ["cmake", "--build", &directory, "--parallel"].map(str::to_owned).into();
        make.push(self.jobs.to_string());
        if !build.targets.is_empty() {
            make.push("--target".to_owned());
            make.extend(build.targets.clone());
        }
        let install: Vec<String> = ["cmake", "--install", &directory].map(str::to_owned).into();
        let mut actions = self.compilers();
        actions.extend([configure, make, install].map(|argv| self.built(work(), argv)));
        actions.push(Action::Require { outputs: build.outputs.clone() });
        actions
    }

    pub(super) fn configure(&self, build: &ConfigureMake) -> Vec<Action> {
        let source = in_work(&build.source);
        let mut actions = self.compilers();
        if build.configure == Configure::Run {
            let mut configure = vec!["./configure".to_owned(), format!("--prefix={}", self.plan.place())];
            configure.extend(build.configure_arguments.clone());
            actions.push(self.built(source.clone(), configure));
        }
        let mut make = vec!["make".to_owned(), format!("-j{}", self.jobs)];
        make.extend(build.make_arguments.clone());
        make.extend(build.targets.clone());
        let mut install = vec!["make".to_owned()];
        install.extend(build.make_arguments.clone());
        if build.configure == Configure::Skip {
            install.push(format!("PREFIX={}", self.plan.place()));
            install.push(format!("prefix={}", self.plan.place()));
        }
        install.push("install".to_owned());
        actions.extend([make, install].map(|argv| self.built(source.clone(), argv)));
        actions.push(Action::Require { outputs: build.outputs.clone() });
        actions
    }

    pub(super) fn meson(&self, number: usize, build: &MesonBuild) -> Vec<Action> {
        let directory = in_work(&own(&format!("meson-{number}"))).to_string();
        let mut setup: Vec<String> =
            ["meson", "setup", &directory, &in_work(&build.source).to_string()].map(str::to_owned).into();
        setup.push(format!("--prefix={}", self.plan.place()));
        setup.push(format!("--buildtype={}", build.build_type));
        setup.extend(["--wrap-mode=nodownload", "--libdir=lib"].map(str::to_owned));
        setup.extend(build.arguments.clone());
        let jobs = format!("-j{}", self.jobs);
        let make: Vec<String> = ["ninja", "-C", &directory, &jobs].map(str::to_owned).into();
        let install: Vec<String> =
            ["meson", "install", "-C", &directory, "--no-rebuild"].map(str::to_owned).into();
        let mut actions = self.compilers();
        actions.extend([setup, make, install].map(|argv| self.built(work(), argv)));
        actions.push(Action::Require { outputs: build.outputs.clone() });
        actions
    }

    /// Crates stand in a directory that takes the place of the registry; each says what its package's hash was, which
    /// cargo holds against the lock file.
    pub(super) fn cargo(&self, build: &CargoBuild) -> Vec<Action> {
        let mut actions = self.compilers();
        for file in &build.crates {
            let name = file.as_str().trim_end_matches(".crate");
            let hash = self.plan.downloads.iter().find(|download| download.file == *file);
            let hash = hash.map_or_else(String::new, |download| download.sha256.to_string());
            actions.push(Action::Unpack(Unpacking {
                from: Packed::Download(file.clone()),
                format: ArchiveFormat::TarGz,
                area: Area::Work,
                to: own(&format!("crates/{name}")),
                strip: 1,
            }));
            actions.push(Action::Write {
                area: Area::Work,
                path: own(&format!("crates/{name}/.cargo-checksum.json")),
                text: format!("{{\"files\":{{}},\"package\":\"{hash}\"}}"),
                mode: 0o644,
            });
        }
        let directory = format!("{WORK}/{OWN}/crates");
        let configuration = format!(
            "[source.crates-io]\nreplace-with = \"given\"\n\n[source.given]\ndirectory = \"{directory}\"\n\n[net]\noffline = true\n"
        );
        actions.push(Action::Write {
            area: Area::Work,
            path: own("cargo/config.toml"),
            text: configuration,
            mode: 0o644,
        });
        let mut argv: Vec<String> =
            ["cargo", "build", "--release", "--offline", "--locked"].map(str::to_owned).into();
        argv.push(format!("--jobs={}", self.jobs));
        argv.extend(build.arguments.clone());
        let mut run = self.built(in_work(&build.source), argv);
        if let Action::Run(command) = &mut run {
            command.environment.insert("CARGO_HOME".to_owned(), format!("{WORK}/{OWN}/cargo"));
            command.environment.insert("CARGO_TARGET_DIR".to_owned(), format!("{WORK}/{OWN}/target"));
        }
        actions.push(run);
        let made = |name: &String| Placement {
            from: own(&format!("target/release/{name}")),
            to: super::lower::below("bin", name),
        };
        let files: Vec<Placement> = build.binaries.iter().map(made).collect();
        let outputs: Vec<InnerPath> = files.iter().map(|file| file.to.clone()).collect();
        actions.extend(self.install(&files, &outputs));
        actions
    }

    pub(super) fn go(&self, build: &GoBuild) -> Vec<Action> {
        let source = in_work(&build.source);
        let binary = super::lower::below("bin", &build.binary);
        let mut commands = Vec::new();
        for module in &build.modules {
            let to = format!("-replace={}={}", module.path, in_work(&module.directory));
            commands.push(["go", "mod", "edit", &to].map(str::to_owned).to_vec());
        }
        let output = self.output(&binary).to_string();
        let mut argv: Vec<String> = ["go", "build", "-trimpath", "-o", &output].map(str::to_owned).into();
        argv.extend(build.arguments.clone());
        argv.push(build.package.clone());
        commands.push(argv);
        let variables = [
            ("GOPROXY", "off".to_owned()),
            ("GOSUMDB", "off".to_owned()),
            ("GOFLAGS", "-mod=mod".to_owned()),
            ("GOTOOLCHAIN", "local".to_owned()),
            ("CGO_ENABLED", "0".to_owned()),
            ("GOPATH", format!("{WORK}/{OWN}/go")),
            ("GOCACHE", format!("{WORK}/{OWN}/go-cache")),
        ];
        let mut actions: Vec<Action> = commands
            .into_iter()
            .map(|argv| {
                let mut run = self.run_in(source.clone(), argv);
                if let Action::Run(command) = &mut run {
                    let missing = variables.iter().filter(|(name, _)| !self.sets(name));
                    command
                        .environment
                        .extend(missing.map(|(name, value)| ((*name).to_owned(), value.clone())));
                }
                run
            })
            .collect();
        actions.push(Action::Require { outputs: vec![binary] });
        actions
    }

    /// Whether a step before has set that variable.
    fn sets(&self, name: &str) -> bool {
        self.plan
            .steps
            .iter()
            .any(|step| matches!(step, crate::plan::Step::SetEnv { vars } if vars.contains_key(name)))
    }

    /// What the package manager of a family does to install `names`.
    pub(super) fn packages(&self, manager: PackageManager, names: &[String]) -> Vec<Action> {
        let packages = family::packages(manager);
        let environment = || {
            let mut environment = self.environment();
            environment.extend(packages.environment.clone());
            environment
        };
        let command = |argv| Action::Run(Command { argv, directory: work(), environment: environment() });
        packages.install(names).into_iter().map(command).collect()
    }
}

/// As cmake writes its build types.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
