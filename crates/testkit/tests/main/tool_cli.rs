//! `sandtable tool` and `--tool` from outside. Most recipes here fetch nothing, so that these tests need no network; those that
//! use a registry say so and stand aside where it cannot be reached.

use std::path::{Path, PathBuf};

use sandtable_testkit::container::{Contained, Kind};
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::fingerprint::Fingerprint;
use sandtable_testkit::process::Ended;
use sandtable_testkit::require;

pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) source: PathBuf,
}

impl World {
    pub(crate) fn new(caller: Caller) -> Option<Self> {
        let env = TestEnv::of_the_executable_as(caller)?;
        let source = env.repository("r");
        Some(Self { env, source })
    }

    fn tool(&self, args: &[&str]) -> Ended {
        self.env.sandtable().directory(&self.source).arg("tool").args(args).ended()
    }

    /// A recipe in a file.
    pub(crate) fn recipe(&self, name: &str, head: &str, script: &str) -> String {
        let path = self.env.home().join(format!("{name}.toml"));
        let text = format!(
            "format = 1\nname = \"{name}\"\nversion = \"1.0\"\ndescription = \"a test\"\n{head}\n\
             [[steps]]\naction = \"run_command\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n"
        );
        self.env.file(&path, text);
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn tools(&self) -> PathBuf {
        self.env.home().join(".local/share/sandtable/tools")
    }
}

/// A script that makes a small program.
const GREET: &str = "mkdir -p {install_dir}/bin && printf '#!/bin/sh\\necho hello from $0\\n' > {install_dir}/bin/greet && \
                     chmod 755 {install_dir}/bin/greet";
const PROVIDES: &str =
    "[provides]\nbinaries = [\"bin/greet\"]\n[verify]\ncommand = [\"greet\"]\npattern = \"hello from\"";

#[test]
fn consent_is_asked_once_per_plan_and_refused_without_a_terminal() {
    let Some(world) = World::new(Caller::Same) else { return };
    let recipe = world.recipe("greet", PROVIDES, GREET);
    let refused = world.tool(&["install", "--recipe", &recipe]).expect_code(2);
    for part in ["did not come with the program", "greet 1.0", "fetches: nothing", "stays:", "--yes"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert!(!world.tools().exists(), "nothing was made");
    let made = world.tool(&["install", "--yes", "--recipe", &recipe]).expect_code(0);
    assert!(made.stderr.contains("cache: 0 hit / 1 built"), "{}", made.stderr);
    let again = world.tool(&["install", "--recipe", &recipe]).expect_code(0);
    assert!(
        again.stderr.contains("cache: 1 hit / 0 built") && !again.stderr.contains("did not come"),
        "{again:?}"
    );
    let other = world.recipe("greet", PROVIDES, &format!("{GREET}; true"));
    drop(world.tool(&["install", "--recipe", &other]).expect_code(2).expect_stderr("nobody consented"));
}

#[test]
fn a_tool_is_made_listed_found_and_removed() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(world) = World::new(caller) else { return };
        let recipe = world.recipe("greet", PROVIDES, GREET);
        let made = world.tool(&["install", "--yes", "--json", "--recipe", &recipe]).expect_code(0);
        let answer: serde_json::Value = serde_json::from_str(&made.stdout).unwrap();
        assert_eq!(answer["search"][0], "/opt/sandtable/tools/greet-1.0/bin");
        let path = PathBuf::from(world.tool(&["path", "greet"]).expect_code(0).stdout.trim());
        assert_eq!(answer["path"], path.to_str().unwrap());
        assert!(path.join("bin/greet").is_file());
        let listed = world.tool(&["ls", "--json"]).expect_code(0);
        let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
        assert_eq!(listed["tools"][0]["name"], "greet");
        let dry = world.tool(&["gc", "--all", "--dry-run"]).expect_code(0);
        assert!(dry.stdout.contains("1 tools would go") && path.exists(), "{}", dry.stdout);
        drop(world.tool(&["rm", "greet"]).expect_code(0));
        assert!(!path.exists());
        drop(world.tool(&["path", "greet"]).expect_code(2).expect_stderr("no kept tool is called `greet`"));
    }
}

#[test]
fn a_damaged_tool_is_refused_and_a_removed_one_is_made_again() {
    let Some(world) = World::new(Caller::Same) else { return };
    let recipe = world.recipe("greet", PROVIDES, GREET);
    let install = || world.tool(&["install", "--yes", "--recipe", &recipe]);
    drop(install().expect_code(0));
    let path = PathBuf::from(world.tool(&["path", "greet"]).expect_code(0).stdout.trim());
    let program = path.join("bin/greet");
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    for directory in [&path.join("bin"), &program] {
        fs_err::set_permissions(directory, mode(0o755)).unwrap();
    }
    fs_err::write(&program, "#!/bin/sh\necho something else\n").unwrap();
    let said = install().expect_code(1);
    assert!(said.stderr.contains("greet") && said.stderr.contains("is not what was made"), "{}", said.stderr);
    drop(world.tool(&["rm", "greet"]).expect_code(0));
    assert!(install().expect_code(0).stderr.contains("1 built"));
}

#[test]
fn what_stays_depends_on_where_dependencies_come_from() {
    let Some(world) = World::new(Caller::Same) else { return };
    let recipe = world.recipe("greet", PROVIDES, GREET);
    let install =
        |deps: &str| world.tool(&["install", "--yes", "--deps", deps, "--json", "--recipe", &recipe]);
    let kept = || world.tool(&["ls"]).expect_code(0).stdout.lines().count();
    let isolated = install("isolated").expect_code(0);
    assert!(isolated.stdout.contains("\"path\": null"), "{}", isolated.stdout);
    let left = Fingerprint::of(&world.tools(), &[]);
    assert_eq!(kept(), 0, "{left:?}");
    drop(install("store").expect_code(0));
    assert_eq!(kept(), 1);
    drop(install("image").expect_code(0));
    assert_eq!(kept(), 2, "the root file system is another one, and so is the key");
}

#[test]
fn a_malicious_recipe_changes_nothing_outside() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(world) = World::new(caller) else { return };
        let kept = world.recipe("victim", PROVIDES, GREET);
        drop(world.tool(&["install", "--yes", "--recipe", &kept]).expect_code(0));
        let home = world.env.home();
        let before = Fingerprint::of(&home, &[]);
        let attacks = [
            format!("echo x > {}/evil", home.display()),
            format!("echo x > {}/evil", world.tools().display()),
            "echo x > /usr/local/bin/evil".to_owned(),
            "echo x > /opt/sandtable/tools/evil/bin/../../../../../evil || exit 1".to_owned(),
            "echo x > /dev/tcp/127.0.0.1/22 || test -e /sys/class/net/eth0".to_owned(),
        ];
        for (number, attack) in attacks.iter().enumerate() {
            let recipe = world.recipe(&format!("evil{number}"), "", attack);
            let ended = world.tool(&["install", "--yes", "--recipe", &recipe]);
            fs_err::remove_file(recipe).unwrap();
            assert_ne!(ended.code, 0, "{attack}: {ended:?}");
        }
        assert!(!Path::new("/usr/local/bin/evil").exists() && !Path::new("/evil").exists());
        let ours = |line: &String| !line.contains("tool-consent") && !line.contains(".lock");
        let moved: Vec<String> =
            before.differences(&Fingerprint::of(&home, &[])).into_iter().filter(ours).collect();
        assert!(moved.iter().all(|line| !line.contains("evil")), "{moved:#?}");
    }
}

#[test]
fn a_dependency_of_the_wrong_origin_is_refused() {
    let Some(world) = World::new(Caller::Same) else { return };
    let cmake = world.recipe("cmake", "", GREET);
    let mine = world.recipe("mine", "dependencies = [\"cmake\"]", "true");
    let said = world.tool(&["install", "--yes", "--recipe", &mine, "--recipe", &cmake]).expect_code(2);
    assert!(said.stderr.contains("may not be called `cmake`"), "{}", said.stderr);
    let missing = world.recipe("mine", "dependencies = [\"no-such-tool\"]", "true");
    let said = world.tool(&["plan", "--recipe", &missing]).expect_code(2);
    assert!(said.stderr.contains("`mine → no-such-tool`"), "{}", said.stderr);
    let odd = world.env.home().join("odd.toml");
    world.env.file(&odd, "format = 1\nname = \"../x\"\nversion = \"1\"\ndescription = \"d\"\n");
    let said = world.tool(&["plan", "--recipe", odd.to_str().unwrap()]).expect_code(2);
    assert!(said.stderr.contains("line 2, column 8"), "{}", said.stderr);
}

#[test]
fn a_plan_needs_no_recipe() {
    let Some(world) = World::new(Caller::Same) else { return };
    let recipe = world.recipe("greet", PROVIDES, GREET);
    let plan = world.tool(&["plan", "--json", "--recipe", &recipe]).expect_code(0).stdout;
    let file = world.env.home().join("greet.json");
    world.env.file(&file, &plan);
    let file = file.to_str().unwrap();
    assert_eq!(world.tool(&["plan-show", "--json", file]).expect_code(0).stdout, plan);
    let other = world.env.home().join("other.json");
    world.env.file(&other, plan.replace("\"1.0\"", "\"1.1\""));
    let other = other.to_str().unwrap();
    let said = world.tool(&["plan-diff", "--exit-code", file, other]).expect_code(1).stdout;
    assert!(said.contains("- version = 1.0\n+ version = 1.1\n"), "{said}");
    assert_eq!(world.tool(&["plan-diff", "--exit-code", file, file]).expect_code(0).stdout, "");
    drop(world.tool(&["install", "--yes", "--plan", file]).expect_code(0));
    let bad = world.env.home().join("bad.json");
    world.env.file(&bad, plan.replace("run_command", "download"));
    drop(world.tool(&["plan-show", bad.to_str().unwrap()]).expect_code(2).expect_stderr("is no plan"));
}

#[test]
fn a_dry_run_makes_nothing_and_says_what_would_be_seen_inside() {
    let Some(world) = World::new(Caller::Same) else { return };
    let said = world.tool(&["install", "--dry-run", "node"]).expect_code(0).stdout;
    for part in
        ["node 24.19.0 for linux", "network   none", "writable  /opt/sandtable/tools/node-24.19.0", "stays"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("\n  PATH"), "a download alone brings nothing onto PATH: {said}");
    assert!(!world.tools().exists());
}

#[test]
fn the_data_directory_may_lie_anywhere() {
    let Some(world) = World::new(Caller::Same) else { return };
    let recipe = world.recipe("greet", PROVIDES, GREET);
    let real = world.env.home().join("real data");
    world.env.directory(&real);
    let link = world.env.home().join("link");
    world.env.symlink(&real, &link);
    for data in [&world.env.home().join("with spaces"), &link] {
        let run = world.env.sandtable().variable("XDG_DATA_HOME", data).args(["tool", "install", "--yes"]);
        drop(run.args(["--recipe", &recipe]).ended().expect_code(0));
        assert!(data.join("sandtable/tools/store").is_dir());
    }
    let relative = world.env.sandtable().variable("XDG_DATA_HOME", "relative").args(["tool", "ls"]).ended();
    drop(relative.expect_code(2).expect_stderr("is not an absolute path"));
    let none =
        world.env.sandtable().variable("XDG_DATA_HOME", "").variable("HOME", "").args(["tool", "ls"]).ended();
    assert_eq!(none.code, 2, "{none:?}");
}

#[test]
fn families_that_cannot_be_tried_are_said_to_be_so() {
    let Some(world) = World::new(Caller::Same) else { return };
    let recipe = world.recipe("greet", PROVIDES, GREET);
    let test = |more: &[&str]| {
        let args = [&["test", "--yes", "--json", "--recipe", &recipe, "--family", "all"], more].concat();
        world.tool(&args)
    };
    let strict = test(&[]).expect_code(1);
    let matrix: serde_json::Value = serde_json::from_str(&strict.stdout).unwrap();
    let cells = matrix["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 5);
    let count = |state: &str| cells.iter().filter(|cell| cell["state"] == state).count();
    assert_eq!(count("pass") + count("unavailable"), 5, "{matrix:#}");
    assert!(cells.iter().all(|cell| cell["why"].as_str().is_some_and(|why| !why.is_empty())));
    drop(test(&["--allow-unavailable"]).expect_code(0));
}

#[test]
fn a_shell_has_what_a_recipe_declares_and_nothing_is_kept() {
    let Some(world) = World::new(Caller::Same) else { return };
    let greet = world.recipe("greet", PROVIDES, GREET);
    let mine = world.recipe("mine", "dependencies = [\"greet\"]", "true");
    let said =
        world.tool(&["shell", "--yes", "--recipe", &mine, "--recipe", &greet, "--", "greet"]).expect_code(0);
    assert_eq!(said.stdout, "hello from /opt/sandtable/tools/greet-1.0/bin/greet\n");
    assert_eq!(world.env.sandtable().args(["ls", "--json"]).ended().stdout.matches("\"name\"").count(), 0);
}

/// Whether a built-in tool is there; where its registry cannot be reached that is said, and is no failure: a test
/// must not depend on somebody else's server.
fn has(ended: &Ended) -> bool {
    if ended.code != 0 && ended.stderr.contains("[tool-fetch]") {
        require::say(&format!("skipped: a registry cannot be reached: {}", ended.stderr));
        return false;
    }
    assert_eq!(ended.code, 0, "{ended:?}");
    true
}

#[test]
fn an_ordinary_sandbox_has_the_tools_it_asks_for() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(world) = World::new(caller) else { return };
        let unmade =
            world.env.sandtable().directory(&world.source).args(["run", "--dry-run", "--tool", "ninja"]);
        drop(unmade.args(["--", "true"]).ended().expect_code(2).expect_stderr("is not kept here yet"));
        if !has(&world.tool(&["install", "ninja"])) {
            return;
        }
        let script = "command -v ninja && ninja --version && touch /opt/sandtable/tools/ninja-1.13.2/x";
        let run = world.env.sandtable().directory(&world.source).args([
            "run",
            "--name",
            "t",
            "-q",
            "--tool",
            "ninja@1.13",
        ]);
        let report = world.env.home().join("report.json");
        let run = run.arg("--report").arg(&report);
        let ended = run.args(["--", "sh", "-c", script]).ended().expect_code(1);
        let report: serde_json::Value =
            serde_json::from_str(&fs_err::read_to_string(&report).unwrap()).unwrap();
        let tool = &report["tools"][0];
        assert_eq!((&tool["name"], &tool["version"]), (&"ninja".into(), &"1.13.2".into()), "{report:#}");
        assert_eq!(tool["key"].as_str().map(str::len), Some(64));
        assert!(ended.stdout.starts_with("/opt/sandtable/tools/ninja-1.13.2/bin/ninja\n1.13.2"), "{ended:?}");
        assert!(ended.stderr.contains("Read-only file system"), "{ended:?}");
        let again = world.env.sandtable().args(["exec", "t", "--", "ninja", "--version"]).ended();
        assert!(again.expect_code(0).stdout.starts_with("1.13"));
        let collected = world.tool(&["gc", "--all"]).expect_code(0);
        assert!(collected.stdout.starts_with("0 tools"), "a sandbox still has it: {}", collected.stdout);
        drop(world.env.sandtable().args(["rm", "t"]).ended().expect_code(0));
        assert!(world.tool(&["gc", "--all"]).expect_code(0).stdout.starts_with("1 tools"));
    }
}

/// What was fetched in one world, given to another: nothing is fetched twice because of a test.
fn lend_downloads(from: &Path, world: &World) {
    let to = world.tools().join("downloads");
    world.env.directory(&to);
    for entry in fs_err::read_dir(from.join("downloads")).unwrap().flatten() {
        let path = entry.path();
        if path.is_file() && path.extension().is_none() {
            world.env.file(&to.join(entry.file_name()), fs_err::read(path).unwrap());
        }
    }
}

#[test]
fn node_is_there_on_every_engine_that_is_asked_for_it() {
    const CALL: [&str; 5] = ["--tool", "node", "--", "node", "-e"];
    const ONE: &str = "console.log(1)";
    let Some(first) = World::new(Caller::Same) else { return };
    if !has(&first.tool(&["install", "node"])) {
        return;
    }
    let run = |world: &World| {
        let run = world.env.sandtable().directory(&world.source).args(["run", "--rm", "-q"]);
        run.args(CALL).arg(ONE).ended().expect_code(0)
    };
    assert_eq!(run(&first).stdout, "1\n");
    if let Some(second) = World::new(Caller::ordinary()) {
        lend_downloads(&first.tools(), &second);
        // Made on the way, without being installed first.
        assert_eq!(run(&second).stdout, "1\n");
    }
    let path = first.tool(&["path", "node"]).expect_code(0).stdout;
    let program = Path::new(path.trim()).join("node/bin/node");
    let data = first.env.home().join(".local/share");
    for kind in [Kind::Docker, Kind::Podman] {
        let Some(world) = Contained::with_libraries_of(kind, Caller::Same, Some(&program)) else { continue };
        let source = world.env.repository("r");
        let run = |words: &[&str]| {
            let run = world.starting(&source).variable("XDG_DATA_HOME", &data).args(["--rm", "-q"]);
            run.args(words).ended().expect_code(0)
        };
        assert_eq!(run(&[&CALL[..], &[ONE]].concat()).stdout, "1\n", "{kind:?}");
        let search = run(&["--tool", "node", "--", "sh", "-c", "echo $PATH"]).stdout;
        assert!(search.starts_with("/opt/sandtable/tools/node-24.19.0/node/bin:/"), "{kind:?}: {search}");
        assert_eq!(world.left(), [""; 0], "{kind:?}");
    }
}

#[test]
fn a_tool_of_ones_own_is_asked_for_by_its_name() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(world) = World::new(caller) else { return };
        let recipe = world.recipe("greet", PROVIDES, GREET);
        let run = || {
            let run = world.env.sandtable().directory(&world.source).args(["run", "--rm", "-q", "--tool"]);
            run.args(["greet", "--", "greet"]).ended()
        };
        drop(run().expect_code(2).expect_stderr("`greet`"));
        drop(world.tool(&["install", "--yes", "--recipe", &recipe]).expect_code(0));
        assert_eq!(run().expect_code(0).stdout, "hello from /opt/sandtable/tools/greet-1.0/bin/greet\n");
        // Without the consent it is a directory like any other.
        let consents = world.env.home().join(".local/share/sandtable/tool-consent");
        fs_err::remove_dir_all(consents).unwrap();
        drop(run().expect_code(2).expect_stderr("`greet`"));
    }
}

/// How many places of unfinished builds there are.
fn partials(world: &World) -> usize {
    let entries = fs_err::read_dir(world.tools().join("store")).unwrap().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "partial")).count()
}

#[test]
fn the_place_of_a_failed_step_can_be_entered() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(world) = World::new(caller) else { return };
        let greet = world.recipe("greet", PROVIDES, GREET);
        let more = "\n[[steps]]\naction = \"set_env\"\nvars = { WORD = \"said\" }\n\
                    \n[[steps]]\naction = \"run_command\"\ncommand = [\"sh\", \"-c\", \"touch half; exit 3\"]\ndirectory = \"tree\"\n";
        let broken = |last: &str| {
            let head = "dependencies = [\"greet\"]";
            let path = world.recipe("broken", head, "mkdir tree && echo first > tree/made");
            let text = fs_err::read_to_string(&path).unwrap() + last;
            world.env.file(Path::new(&path), text);
            path
        };
        let recipe = broken(more);
        let both = ["--yes", "--recipe", &recipe, "--recipe", &greet];
        let shell = |more: &[&str]| world.tool(&[&["shell"], &both[..], more].concat());
        drop(
            world
                .tool(&[&["install", "--keep"], &both[..]].concat())
                .expect_code(1)
                .expect_stderr("ended with 3"),
        );
        let look = "pwd; cat made; ls; echo $WORD; greet; grep -c : /proc/net/dev; touch seen";
        let inside = shell(&["--", "sh", "-c", look]).expect_code(0);
        assert_eq!(
            inside.stdout,
            "/build/tree\nfirst\nhalf\nmade\nsaid\nhello from /opt/sandtable/tools/greet-1.0/bin/greet\n1\n"
        );
        assert!(inside.stderr.contains("step 3 of broken 1.0 (run_command)"), "{}", inside.stderr);
        assert_eq!(shell(&["--", "ls"]).expect_code(0).stdout, "half\nmade\nseen\n", "it stays");
        let clean = shell(&["--clean", "--", "sh", "-c", "ls; greet"]).expect_code(0);
        assert!(clean.stdout.starts_with("hello from"), "{}", clean.stdout);
        // The next build begins anew, and leaves nothing when it is not asked to.
        let again = world.tool(&[&["install"], &both[..]].concat()).expect_code(1);
        assert!(!again.stderr.contains("\\n"), "{}", again.stderr);
        assert_eq!(partials(&world), 0);
        drop(world.tool(&[&["install", "--keep"], &both[..]].concat()).expect_code(1));
        assert_eq!(partials(&world), 1);
        drop(world.tool(&["gc", "--all"]).expect_code(0));
        assert_eq!(partials(&world), 0);
        assert!(shell(&["--", "greet"]).expect_code(0).stdout.starts_with("hello from"));
        assert_eq!(
            world.env.sandtable().args(["ls", "--json"]).ended().stdout.matches("\"name\"").count(),
            0
        );
    }
}

#[test]
fn recipes_with_lock_files_pin_every_dependency() {
    let Some(world) = World::new(Caller::Same) else { return };
    for name in ["glob", "sphinx", "choose", "hub"] {
        let recipe = require::workspace().join(format!("crates/testkit/recipes/{name}.toml"));
        let plan = world.tool(&["plan", "--json", "--recipe", recipe.to_str().unwrap()]).expect_code(0);
        let plan: serde_json::Value = serde_json::from_str(&plan.stdout).unwrap();
        let downloads = plan["downloads"].as_array().unwrap();
        assert!(downloads.len() > 10, "{name}: {}", downloads.len());
        assert!(downloads.iter().all(|file| file["sha256"].as_str().is_some_and(|hash| hash.len() == 64)));
        let pinned: Vec<&str> = downloads.iter().map(|file| file["file"].as_str().unwrap()).collect();
        let text = plan["steps"].to_string();
        assert!(pinned.iter().all(|file| text.contains(file)), "{name}: what is fetched is used");
    }
}
