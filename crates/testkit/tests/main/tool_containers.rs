//! Steps of a tool's plan in containers of docker and podman, as root and as an ordinary user: made on an image, for that
//! image, without a network, and nothing left behind. No recipe here fetches anything.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sandtable_testkit::container::{Contained, Kind, add, libraries};
use sandtable_testkit::env::Caller;
use sandtable_testkit::fingerprint::Fingerprint;
use sandtable_testkit::process::{Ended, Run};
use sandtable_testkit::require;
use serde_json::Value;

/// A dependency that stands for `make`, with a cache as compilers have one.
const TINYMAKE: &str = r#"
format = 1
name = "tinymake"
version = "1.0"
description = "runs a list of commands"

[[steps]]
action = "run_command"
command = ["sh", "-c", '''
mkdir -p {install_dir}/bin
printf '#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in install) . ./install.sh;; esac; shift; done\necho tinymake 1.0\n' > {install_dir}/bin/make
chmod 755 {install_dir}/bin/make
mkdir {install_dir}/cache
echo warm > {install_dir}/cache/entry
''']

[verify]
command = ["make"]
pattern = "tinymake {version}"

[provides]
binaries = ["bin/make"]
"#;

/// A program that is configured and made with it, and writes down what its steps saw.
const CLASSIC: &str = r#"
format = 1
name = "classic"
version = "2.1"
description = "is configured and made"
dependencies = ["tinymake"]

[[steps]]
action = "run_command"
command = ["sh", "-c", '''
mkdir tree
cat > tree/configure <<'END'
#!/bin/sh
cat /opt/sandtable/tools/tinymake-1.0/cache/* > seen
for word; do case $word in --prefix=*) prefix=${word#*=};; esac; done
printf 'mkdir -p %s/bin && cp classic seen %s/bin/\n' $prefix $prefix > install.sh
printf '#!/bin/sh\necho classic 2.1\n' > classic
chmod 755 classic
END
chmod 755 tree/configure
cat /proc/net/dev > {install_dir}/interfaces
cat /system > {install_dir}/system || true
cache=/opt/sandtable/tools/tinymake-1.0/cache
echo more >> $cache/entry
echo new > $cache/made
''']

[[steps]]
action = "configure_make"
source = "tree"
outputs = ["bin/classic"]

[verify]
command = ["classic"]
pattern = "classic {version}"

[provides]
binaries = ["bin/classic"]
"#;

/// An image with the C library of this machine and a file that says which image it is.
fn image(world: &Contained, tag: &str) -> Option<String> {
    let program = require::program("true")?;
    world.another(tag, &|image| {
        add(image, libraries(image, &program));
        fs_err::write(image.join("system"), tag).unwrap();
        fs_err::create_dir_all(image.join("etc")).unwrap();
        fs_err::write(image.join("etc/os-release"), "ID=debian\nPRETTY_NAME=Small\n").unwrap();
    })
}

/// A recipe in a file, by its name.
fn recipe(world: &Contained, name: &str, text: &str) -> String {
    let path = world.env.home().join(format!("{name}.toml"));
    world.env.file(&path, text);
    path.to_str().unwrap().to_owned()
}

/// A recipe with one step, which leaves a script called like it.
fn script(world: &Contained, name: &str, script: &str) -> String {
    let made = format!(
        "{script}\nmkdir -p {{install_dir}}/bin\nprintf '#!/bin/sh\\necho {name}\\n' > {{install_dir}}/bin/{name}\n\
         chmod 755 {{install_dir}}/bin/{name}"
    );
    let text = format!(
        "format = 1\nname = \"{name}\"\nversion = \"1\"\ndescription = \"a test\"\n[[steps]]\n\
         action = \"run_command\"\ncommand = [\"sh\", \"-c\", '''{made}''']\n[provides]\nbinaries = [\"bin/{name}\"]\n"
    );
    recipe(world, name, &text)
}

fn install(world: &Contained, image: &str, words: &[&str]) -> Run {
    let on = ["tool", "install", "--yes", "--engine", world.kind.word(), "--image", image];
    world.sandtable().directory(world.env.home()).args(on).args(words)
}

fn answer(ended: Ended) -> Value {
    serde_json::from_str(&ended.expect_code(0).stdout).unwrap()
}

fn tools(world: &Contained) -> PathBuf {
    world.env.home().join(".local/share/sandtable/tools")
}

/// Places of builds that are under way or were left.
fn partials(world: &Contained) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(tools(world).join("store")).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "partial")).collect()
}

#[test]
fn a_source_is_built_on_an_image_and_for_it() {
    Contained::each(Contained::new, |world, source| {
        let (Some(one), Some(other)) = (image(world, "one"), image(world, "other")) else { return };
        let (classic, make) = (recipe(world, "classic", CLASSIC), recipe(world, "tinymake", TINYMAKE));
        let words = ["--json", "--recipe", &classic, "--recipe", &make];
        let built = install(world, &one, &words).ended();
        let said = format!("2/2 classic 2.1 is made on {} image {one} (", world.kind.word());
        assert!(built.stderr.contains(&said), "{}", built.stderr);
        let first = answer(built);
        assert_eq!((&first["cache"]["hit"], &first["cache"]["built"]), (&0.into(), &2.into()));
        assert_eq!(first["made_on"]["image"], one);
        let id = world.engine(&["image", "inspect", "--format", "{{.Id}}", &one]);
        assert_eq!(first["made_on"]["id"], id.trim());
        let path = PathBuf::from(first["path"].as_str().unwrap());
        let read = |name: &str| fs_err::read_to_string(path.join(name)).unwrap();
        assert_eq!(read("system"), "one");
        assert_eq!(read("bin/seen"), "warm\nmore\nnew\n", "later steps see what was added to the cache");
        let interfaces = read("interfaces");
        let names: Vec<&str> =
            interfaces.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim).collect();
        assert_eq!(names, ["lo"], "there is no network");
        let owner = |path: &Path| fs_err::metadata(path).unwrap().uid();
        assert_eq!(owner(&path.join("bin/classic")), owner(&world.env.home()), "files are the caller's");
        let again = answer(install(world, &one, &words).ended());
        assert_eq!((&again["cache"]["built"], &again["key"]), (&0.into(), &first["key"]));
        let elsewhere = answer(install(world, &other, &words).ended());
        assert_eq!(elsewhere["cache"]["built"], 2);
        assert_ne!(elsewhere["key"], first["key"]);
        let natively = world.sandtable().directory(&source).args(["tool", "install", "--yes"]).args(words);
        // Where no native sandbox can be made, nothing is taken for one either.
        let natively = natively.ended();
        assert!(natively.code == 125 || answer(natively)["key"] != first["key"]);
        listed_and_used(world, &source, &one);
        assert_eq!(partials(world), [""; 0].map(PathBuf::from));
    });
}

/// A tool is known by the image it was made on, and a sandbox of that image gets it.
fn listed_and_used(world: &Contained, source: &Path, image: &str) {
    let listed = world.sandtable().args(["tool", "ls"]).ended().expect_code(0).stdout;
    let on = format!("on {} image {image} (", world.kind.word());
    assert_eq!(listed.lines().filter(|line| line.contains(&on)).count(), 2, "{listed}");
    let report = world.env.home().join("report.json");
    let words = ["--rm", "-q", "--tool", "classic", "--report", report.to_str().unwrap(), "--", "classic"];
    let run = ["run", "--engine", world.kind.word(), "--image", image];
    let ended = world.sandtable().directory(source).args(run).args(words).ended().expect_code(0);
    assert_eq!(ended.stdout, "classic 2.1\n");
    let report: Value = serde_json::from_str(&fs_err::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["tools"][0]["made_on"]["image"], image);
    let sandtable = || world.sandtable().directory(source);
    let snapshot = sandtable().args(["snapshot", "."]).ended().expect_code(0).stdout;
    let words = ["--engine", world.kind.word(), "--image", image, "--tool", "classic", "--", "classic"];
    let proof = sandtable().args(["verify", snapshot.trim()]).args(words).ended().expect_code(0).stdout;
    let proof: Value = serde_json::from_str(&proof).unwrap();
    let id = report["tools"][0]["made_on"]["id"].as_str().unwrap();
    assert_eq!(proof["policy"]["tools_made_on"]["classic 2.1"], format!("{} {id}", world.kind.word()));
}

#[test]
fn a_failed_step_shows_its_output_and_can_be_entered() {
    Contained::each(Contained::new, |world, _| {
        let Some(image) = image(world, "one") else { return };
        let broken = script(world, "broken", "echo trace > seen; echo the reason is this >&2; exit 7");
        let words = ["--recipe", &broken];
        let failed = install(world, &image, &words).ended().expect_code(1);
        let failed = failed.expect_stderr("[tool-step]").expect_stderr("ended with 7");
        drop(failed.expect_stderr("the reason is this"));
        assert_eq!((partials(world).len(), world.left()), (0, Vec::new()));
        drop(install(world, &image, &words).arg("--keep").ended().expect_code(1));
        let on = ["tool", "shell", "--yes", "--engine", world.kind.word(), "--image", &image];
        let shell = world.sandtable().directory(world.env.home()).args(on).args(words);
        let entered = shell.args(["--", "sh", "-c", "pwd; cat seen /system"]).ended().expect_code(0);
        assert_eq!(entered.stdout, "/build\ntrace\none");
        drop(entered.expect_stderr("this is what step 1 of broken 1 (run_command) left"));
    });
}

#[test]
fn time_ends_everything_that_a_step_started() {
    Contained::each(Contained::new, |world, _| {
        let Some(image) = image(world, "one") else { return };
        let endless = script(world, "endless", "sleep 1000 & (sleep 1000 &) ; sleep 1000");
        let ended = install(world, &image, &["--timeout", "2s", "--recipe", &endless]).ended();
        drop(ended.expect_code(1).expect_stderr("it took longer than 2 s"));
        assert_eq!((partials(world).len(), world.left()), (0, Vec::new()));
    });
}

#[test]
fn what_cannot_run_on_the_image_is_refused_before_it_is_tried() {
    Contained::each(Contained::new, |world, _| {
        let Some(program) = require::program("true") else { return };
        let musl = world.another("musl", &|image| {
            fs_err::create_dir_all(image.join("lib")).unwrap();
            let loader = format!("lib/ld-musl-{}.so.1", std::env::consts::ARCH);
            fs_err::write(image.join(loader), b"\0musl\x001.2.3\0").unwrap();
            fs_err::copy(&program, image.join("program")).unwrap();
        });
        let Some(musl) = musl else { return };
        let copying = "mkdir -p {install_dir}/bin; cp /program {install_dir}/bin/foreign; exit 0";
        let foreign = script(world, "foreign", copying);
        let refused = install(world, &musl, &["--recipe", &foreign]).ended().expect_code(1);
        let loader = if std::env::consts::ARCH == "x86_64" { "ld-linux-x86-64.so.2" } else { "ld-linux" };
        let refused = refused.expect_stderr("[tool-misfit]").expect_stderr(loader);
        drop(refused.expect_stderr("the root file system has musl 1.2.3").expect_stderr("musllinux"));
        // The plan is for the image's C library unless somebody says otherwise.
        let other = install(world, &musl, &["--libc", "glibc", "--recipe", &foreign]).ended();
        drop(other.expect_code(1).expect_stderr("[tool-platform]"));
        assert_eq!((partials(world).len(), world.left()), (0, Vec::new()));
    });
}

#[test]
fn no_package_is_installed_into_an_image() {
    Contained::each(Contained::new, |world, _| {
        let Some(image) = image(world, "one") else { return };
        let packages = "format = 1\nname = \"packages\"\nversion = \"1\"\ndescription = \"a test\"\n[[steps]]\n\
             action = \"system_packages\"\napt = [\"hello\"]\n[provides]\nbinaries = [\"bin/x\"]\n";
        let packages = recipe(world, "packages", packages);
        let refused = install(world, &image, &["--family", "debian", "--recipe", &packages]).ended();
        let refused = refused.expect_code(1).expect_stderr("[tool-packages]");
        drop(refused.expect_stderr("name an image that has them"));
        assert!(partials(world).is_empty());
    });
}

#[test]
fn a_hostile_step_reaches_nothing() {
    Contained::each(Contained::new, |world, source| {
        let Some(image) = image(world, "one") else { return };
        let home = world.env.home();
        world.env.file(&home.join("victim"), "as it was");
        let make = recipe(world, "tinymake", TINYMAKE);
        drop(install(world, &image, &["--recipe", &make]).ended().expect_code(0));
        let path = world.sandtable().args(["tool", "path", "tinymake"]).ended().expect_code(0).stdout;
        let kept = || Fingerprint::of(Path::new(path.trim()), &[]);
        let before = [world.env.fingerprint(&source), kept()];
        let (victim, store) = (home.join("victim"), tools(world).join("store"));
        let attempts = format!(
            "for f in {victim} {store}/x /opt/sandtable/tools/tinymake-1.0/bin/make \
             /opt/sandtable/tools/x /etc/passwd /bin/sh /.sandtable/init /.sandtable/door/x /x; do\n\
               if (echo bad > $f) 2>/dev/null; then echo wrote $f; fi\n\
             done\n\
             chmod 777 /opt/sandtable/tools/tinymake-1.0/bin 2>/dev/null && echo changed its mode\n\
             rm -rf /opt/sandtable/tools/tinymake-1.0/bin 2>/dev/null; ls /opt/sandtable/tools/tinymake-1.0/bin/make || echo gone\n\
             ls {home} {store} 2>/dev/null && echo saw the host\n\
             nc -w 1 127.0.0.1 22 </dev/null 2>/dev/null && echo reached something\n\
             exit 9",
            victim = victim.display(),
            store = store.display(),
            home = home.display(),
        );
        let text = CLASSIC.replace("mkdir tree\n", &format!("{attempts}\n"));
        let hostile = recipe(world, "hostile", &text);
        let words = ["--recipe", hostile.as_str(), "--recipe", make.as_str()];
        let failed = install(world, &image, &words).ended().expect_code(1).expect_stderr("ended with 9");
        for bad in ["wrote", "changed", "gone", "saw the host", "reached"] {
            let said = failed.stderr.lines().filter(|line| line.trim_start().starts_with('|'));
            assert!(!said.clone().any(|line| line.contains(bad)), "{bad}: {}", failed.stderr);
        }
        assert_eq!(fs_err::read_to_string(&victim).unwrap(), "as it was");
        let after = [world.env.fingerprint(&source), kept()];
        assert_eq!(before[0].differences(&after[0]), [""; 0]);
        assert_eq!(before[1].differences(&after[1]), [""; 0]);
    });
}

/// Begins to make a tool and sends the builder `signal` while a step runs.
fn interrupted(world: &Contained, image: &str, words: &[&str], signal: Signal) {
    let mut child = install(world, image, words).started();
    // However long that takes: a builder that ends without having begun its step is what would be wrong.
    while !partials(world).iter().any(|partial| partial.join("work/begun").exists()) {
        assert_eq!(child.try_wait().unwrap(), None, "the step begins");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
    child.wait().unwrap();
    for partial in partials(world) {
        fs_err::remove_file(partial.join("work/begun")).ok();
    }
}

#[test]
fn a_builder_that_is_killed_or_interrupted_leaves_no_container() {
    Contained::each(Contained::new, |world, _| {
        let Some(image) = image(world, "one") else { return };
        let make = recipe(world, "tinymake", TINYMAKE);
        let using = |name: &str, text: &str| {
            let path = script(world, name, text);
            let text = fs_err::read_to_string(&path).unwrap();
            recipe(world, name, &text.replace("[[steps]]", "dependencies = [\"tinymake\"]\n[[steps]]"))
        };
        let slow = using("slow", "echo > begun; sleep 1000 & sleep 1000");
        let words = ["--recipe", slow.as_str(), "--recipe", make.as_str()];
        for signal in [Signal::KILL, Signal::INT] {
            interrupted(world, &image, &words, signal);
            let running = || world.left().iter().any(|line| line.contains("sandtable.pid="));
            let gone = (0..200).any(|_| {
                std::thread::sleep(Duration::from_millis(50));
                !running()
            });
            assert!(gone, "{signal:?}: {:?}", world.left());
        }
        // Whatever is made next removes what is left of it, and the same tool is made as if nothing had been.
        let patient = using("patient", "echo > begun; sleep 4");
        let words = ["--recipe", patient.as_str(), "--recipe", make.as_str()];
        interrupted(world, &image, &words, Signal::KILL);
        drop(install(world, &image, &words).ended().expect_code(0));
        assert_eq!(world.left(), [""; 0]);
    });
}

#[test]
fn an_image_or_an_engine_that_is_no_use_is_said_as_run_says_it() {
    Contained::each(Contained::new, |world, source| {
        let quick = script(world, "quick", "true");
        let words = ["--recipe", &quick];
        let alike = |image: &str, code: i32, said: &str| {
            let ended = install(world, image, &words).args(["--pull", "never"]).ended();
            drop(ended.expect_code(code).expect_stderr(said));
            let on = ["run", "--rm", "--engine", world.kind.word(), "--image", image, "--pull", "never"];
            let run = world.sandtable().directory(&source).args(on).args(["--", "true"]).ended();
            drop(run.expect_code(code).expect_stderr(said));
        };
        alike("localhost/no-such-image:1", 2, "[image-missing]");
        let on = ["tool", "install", "--yes", "--engine", world.kind.word()];
        let unnamed = world.sandtable().args(on).args(words).ended();
        drop(unnamed.expect_code(2).expect_stderr("name one: `--image NAME`"));
        let bare = world.another("bare", &|image| fs_err::remove_file(image.join("bin/sh")).unwrap());
        if let Some(bare) = bare {
            let refused = install(world, &bare, &words).ended().expect_code(2);
            drop(refused.expect_stderr("has no shell").expect_stderr("`--image`"));
        }
        if world.kind == Kind::Docker {
            let stopped = install(world, "a:1", &words).variable("DOCKER_HOST", "unix:///no/such/socket");
            drop(stopped.ended().expect_code(125).expect_stderr("[engine-down]"));
        }
        if let Some(image) = image(world, "one") {
            let odd = world.env.home().join("a:b");
            world.env.directory(&odd);
            let refused = install(world, &image, &words).variable("XDG_DATA_HOME", &odd).ended();
            drop(
                refused.expect_code(125).expect_stderr("[tool-place]").expect_stderr("without comma, colon"),
            );
        }
        assert!(partials(world).is_empty());
        assert_eq!(fs_err::read_dir(world.env.sandboxes()).map_or(0, Iterator::count), 0);
    });
}

#[test]
fn without_words_about_an_engine_nothing_asks_one() {
    let Some(world) = Contained::new(Kind::Docker, Caller::Same) else { return };
    let quick = script(&world, "quick", "true");
    let natively = world.sandtable().args(["tool", "install", "--yes", "--json", "--recipe", &quick]);
    let made = natively.variable("DOCKER_HOST", "unix:///no/such/socket").ended();
    assert!(made.code == 125 || answer(made)["made_on"].is_null());
}
