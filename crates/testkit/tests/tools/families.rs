//! The matrix of families, on root file systems that `scripts/family-roots` made: a real Debian, a real musl with
//! busybox, and three that carry the real package manager of another family and say that they are no more than that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sandtable_testkit::archive::{gzip, layout, sha256, write_layout};
use sandtable_testkit::env::{Caller, PATH, TestEnv};
use sandtable_testkit::process::{Ended, Run};
use sandtable_testkit::require::{is_root, program, skip, variable};
use serde_json::Value;

use crate::elf::musl_program;

struct World {
    env: TestEnv,
    roots: PathBuf,
}

impl World {
    fn new() -> Option<Self> {
        let Some(roots) = variable("SANDTABLE_TEST_ROOTS") else {
            skip("no root file systems of families: `./test` as root on Debian for x86-64 makes them");
            return None;
        };
        if !is_root() {
            skip("packages are installed in sandboxes of root only");
            return None;
        }
        let env = TestEnv::of_the_executable_as(Caller::Same)?;
        env.directory(&env.home().join("programs"));
        env.directory(&env.home().join("served"));
        let world = Self { env, roots: roots.into() };
        world.client();
        Some(world)
    }

    /// A client that has files instead of a network.
    fn client(&self) {
        let script = "#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in --output) to=$2;; --url) url=$2;; esac; shift; done\n\
                      cp \"$HOME/served/${url##*/}\" \"$to\"\n";
        // By another process: what this one has open for writing, for a moment and in any thread's child, cannot be executed.
        let written = Run::new("/bin/sh", self.env.root())
            .args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""])
            .arg(self.env.home().join("programs/curl"))
            .arg(script)
            .ended();
        assert_eq!(written.code, 0, "{}", written.stderr);
    }

    fn root(&self, name: &str) -> PathBuf {
        self.roots.join(name)
    }

    fn brought(&self, family: &str, root: &str) -> [String; 2] {
        ["--rootfs".to_owned(), format!("{family}={}", self.root(root).display())]
    }

    fn recipe(&self, name: &str, text: &str) -> [String; 2] {
        let path = self.env.home().join(format!("{name}.toml"));
        let head = format!("format = 1\nname = \"{name}\"\nversion = \"1.0\"\ndescription = \"a test\"\n");
        self.env.file(&path, head + text);
        ["--recipe".to_owned(), path.to_str().unwrap().to_owned()]
    }

    /// A recipe whose program is a file that is fetched.
    fn fetching(&self, name: &str, content: &[u8], verify: &str) -> [String; 2] {
        self.env.file(&self.env.home().join("served").join(name), content);
        let text = format!(
            "[[download]]\nsource = \"https\"\nname = \"{name}\"\nversion = \"1.0\"\nfile = \"{name}\"\n\
             url = \"https://example.org/{name}\"\nsha256 = \"{}\"\n\
             [[steps]]\naction = \"download_binary\"\nfile = \"{name}\"\nto = \"bin/{name}\"\n\
             [provides]\nbinaries = [\"bin/{name}\"]\n[verify]\n{verify}\n",
            sha256(content)
        );
        self.recipe(name, &text)
    }

    fn test(&self, words: &[String]) -> Ended {
        let search = format!("{}:{PATH}", self.env.home().join("programs").display());
        let call = self.env.sandtable().variable("PATH", search);
        call.args(["tool", "test", "--yes"]).args(words).ended()
    }

    /// The cells of a matrix, and the code it ended with.
    fn matrix(&self, words: &[String]) -> (Vec<Value>, i32) {
        let ended = self.test(&[&["--json".to_owned()], words].concat());
        let answer: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
        (answer["cells"].as_array().unwrap().clone(), ended.code)
    }

    /// The only cell, and the code.
    fn only(&self, words: &[String]) -> (Value, i32) {
        let (cells, code) = self.matrix(words);
        assert_eq!(cells.len(), 1, "{cells:?}");
        (cells[0].clone(), code)
    }
}

/// A script that makes the program `name`.
fn script(name: &str, before: &str) -> String {
    format!(
        "[[steps]]\naction = \"run_command\"\ncommand = [\"sh\", \"-c\", '''\n{before}\nmkdir -p {{install_dir}}/bin\n\
         printf '#!/bin/sh\\necho {name} works\\n' > {{install_dir}}/bin/{name}\nchmod 755 {{install_dir}}/bin/{name}''']\n\
         [provides]\nbinaries = [\"bin/{name}\"]\n[verify]\ncommand = [\"{name}\"]\npattern = \"{name} works\"\n"
    )
}

/// Installs a package of the system where the family has a package manager here, and says what the package's program said.
const PACKAGES: &str = r#"
[[steps]]
action = "system_packages"
when = { linux_family = ["debian", "rhel", "suse", "arch"] }
apt = ["sandtable-hello"]
dnf = ["sandtable-hello"]
zypper = ["sandtable-hello"]
pacman = ["sandtable-hello"]

[[steps]]
action = "run_command"
when = { linux_family = ["debian", "rhel", "suse", "arch"] }
command = ["sh", "-c", """mkdir {install_dir}/share && sandtable-hello > {install_dir}/share/said
  echo x > /usr/owned && rm /etc/passwd && rm -r /srv/repository && echo x >> /etc/group"""]

[[steps]]
action = "run_command"
when = { linux_family = "alpine" }
command = ["sh", "-c", "mkdir {install_dir}/share && echo no package > {install_dir}/share/said"]
"#;

#[test]
fn three_recipes_on_five_families() {
    let Some(world) = World::new() else { return };
    let busybox = fs_err::read(program("busybox").unwrap()).unwrap();
    let archive = world.env.home().join("alpine.tar");
    assert_eq!(tar(&world.root("alpine"), &archive).code, 0);
    let words = [
        vec!["greet".to_owned(), "busybox".to_owned(), "hello".to_owned()],
        world.recipe("greet", &script("greet", "")).to_vec(),
        world
            .fetching("busybox", &busybox, "command = [\"busybox\", \"echo\", \"here\"]\npattern = \"here\"")
            .to_vec(),
        world.recipe("hello", &format!("{PACKAGES}{}", script("hello", ""))).to_vec(),
        ["debian", "rhel", "suse", "arch"].iter().flat_map(|name| world.brought(name, name)).collect(),
        vec!["--rootfs".to_owned(), format!("alpine={}", archive.display())],
    ]
    .concat();

    let (cells, code) = world.matrix(&words);
    assert_eq!((cells.len(), code), (15, 0), "{cells:#?}");
    for cell in &cells {
        let emulated = ["rhel", "suse", "arch"].contains(&cell["family"].as_str().unwrap());
        assert_eq!(cell["state"], if emulated { "emulated" } else { "pass" }, "{cell:#}");
        let (form, start) =
            if cell["family"] == "alpine" { ("archive", "sha256-") } else { ("directory", "tree-sha256-") };
        assert_eq!(cell["root"]["form"], form);
        assert!(cell["root"]["digest"].as_str().unwrap().starts_with(start), "{cell:#}");
        assert_eq!(cell["root"]["system"].as_str().unwrap().contains("emulated"), emulated, "{cell:#}");
    }
    let said: BTreeSet<String> =
        fs_err::read_dir(world.env.home().join(".local/share/sandtable/tools/store"))
            .unwrap()
            .filter_map(|entry| fs_err::read_to_string(entry.unwrap().path().join("tool/share/said")).ok())
            .collect();
    let expected = ["hello, arch\n", "hello, debian\n", "hello, rhel\n", "hello, suse\n", "no package\n"];
    assert_eq!(said, expected.map(str::to_owned).into());

    for family in ["debian", "rhel", "suse", "arch"] {
        let has = |path: &str| world.root(family).join(path).exists();
        assert!(has("etc/passwd") && has("srv/repository") && !has("usr/owned"), "{family}");
    }
    assert!(!Path::new("/usr/owned").exists());

    // What was installed was seen by the steps and by nobody else, so the roots are known by the same digests.
    let again = world.test(&words).expect_code(0);
    assert!(again.stderr.contains("15/15 hello 1.0 on suse: emulated"), "{}", again.stderr);
    assert!(!again.stderr.contains("is made"), "{}", again.stderr);
    let lines: Vec<Vec<&str>> = again.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["debian", "rhel", "arch", "alpine", "suse"]);
    for (line, name) in lines[1..4].iter().zip(["greet", "busybox", "hello"]) {
        assert_eq!(
            *line,
            [name, "1.0", "pass", "emulated", "emulated", "pass", "emulated"],
            "{}",
            again.stdout
        );
    }
    for cell in &cells[..5] {
        let digest = cell["root"]["digest"].as_str().unwrap();
        assert!(again.stdout.contains(&digest[..digest.rfind('-').unwrap() + 13]), "{}", again.stdout);
    }
}

#[test]
fn a_matrix_ends_as_its_worst_cell_does() {
    let Some(world) = World::new() else { return };
    let on = |families: &str, recipe: &[String], more: &[&str]| {
        let more: Vec<String> = more.iter().map(|word| (*word).to_owned()).collect();
        let roots: Vec<String> = families.split(',').flat_map(|name| world.brought(name, name)).collect();
        let families = ["--family".to_owned(), families.to_owned()];
        world.matrix(&[recipe, &families, &roots, &more].concat())
    };

    let picky = world.recipe("picky", &script("picky", ". /etc/os-release; test $ID != rhel || exit 1"));
    let (cells, code) = on("debian,rhel", &picky, &["--allow-unavailable"]);
    assert_eq!(
        (&cells[0]["state"], &cells[1]["state"], code),
        (&"pass".into(), &"fail".into(), 1),
        "{cells:#?}"
    );
    assert!(cells[1]["why"].as_str().unwrap().contains("picky: step 1"), "{cells:#?}");

    // What cannot be tried is neither a pass nor a failure of the recipe.
    let apk = world.recipe(
        "apk",
        &format!("[[steps]]\naction = \"system_packages\"\napk = [\"m4\"]\n{}", script("apk", "")),
    );
    let (cells, code) = on("alpine", &apk, &[]);
    assert_eq!((&cells[0]["state"], code), (&"unavailable".into(), 1), "{cells:#?}");
    assert!(cells[0]["why"].as_str().unwrap().contains("has no `apk`"), "{cells:#?}");
    assert_eq!(on("alpine", &apk, &["--allow-unavailable"]).1, 0);

    // A recipe without packages for a family does not work there.
    let (cells, code) = on("debian", &apk, &["--allow-unavailable"]);
    assert_eq!((&cells[0]["state"], code), (&"fail".into(), 1), "{cells:#?}");

    // Nor is anything tried on a root file system that is of another family.
    let wrong =
        [&picky[..], &world.brought("suse", "debian"), &["--family".to_owned(), "suse".to_owned()]].concat();
    let (cell, code) = world.only(&wrong);
    assert_eq!((&cell["state"], &cell["root"], code), (&"unavailable".into(), &Value::Null, 1), "{cell:#}");
    assert!(cell["why"].as_str().unwrap().contains("says that it is of debian"), "{cell:#}");
}

/// What was installed is gone with the step's sandbox, and a package that is not there fails the step by the words of
/// the package manager.
#[test]
fn a_package_that_no_repository_has_fails_the_step() {
    let Some(world) = World::new() else { return };
    for (family, manager, word) in [
        ("debian", "apt", "Unable to locate package"),
        ("rhel", "dnf", "Unable to find a match"),
        ("suse", "zypper", "not found"),
        ("arch", "pacman", "target not found"),
    ] {
        let text = format!(
            "[[steps]]\naction = \"system_packages\"\n{manager} = [\"absent\"]\n{}",
            script("none", "")
        );
        let recipe = world.recipe("none", &text);
        let words =
            [&recipe[..], &world.brought(family, family), &["--family".to_owned(), family.to_owned()]]
                .concat();
        let (cell, code) = world.only(&words);
        assert_eq!((&cell["state"], code), (&"fail".into(), 1), "{cell:#}");
        assert!(cell["why"].as_str().unwrap().contains(word), "{cell:#}");
        assert!(!world.root(family).join("usr/bin/sandtable-hello").exists());
    }
}

#[test]
fn a_program_that_does_not_fit_a_real_musl_is_refused_with_the_reason_and_the_fix() {
    let Some(world) = World::new() else { return };
    let dynamic = fs_err::read(program("env").unwrap()).unwrap();
    let verify = "command = [\"true\"]";
    let on = |root: &str, recipe: &[String]| {
        let family = ["--family".to_owned(), "alpine".to_owned()];
        world.only(&[recipe, &world.brought("alpine", root), &family].concat())
    };
    let (cell, code) = on("alpine", &world.fetching("manylinux", &dynamic, verify));
    assert_eq!((&cell["state"], code), (&"fail".into(), 1), "{cell:#}");
    let why = cell["why"].as_str().unwrap();
    assert!(why.contains("needs the program loader `/lib64/ld-linux"), "{why}");
    assert!(why.contains("the root file system has musl 1."), "{why}");
    assert!(cell["fix"].as_str().unwrap().contains("musllinux"), "{cell:#}");

    let recipe = world.fetching("modern", &musl_program(), verify);
    let (cell, code) = on("alpine-old", &recipe);
    assert_eq!((&cell["state"], code), (&"fail".into(), 1), "{cell:#}");
    let why = cell["why"].as_str().unwrap();
    assert!(why.contains("needs musl 1.2.4 or newer") && why.contains("has musl 1.2.3"), "{why}");
    assert!(cell["fix"].as_str().unwrap().contains("newer root file system"), "{cell:#}");
    let (cell, code) = on("alpine", &recipe);
    assert_eq!((&cell["state"], code), (&"pass".into(), 0), "{cell:#}");
}

#[test]
fn an_oci_layout_is_a_root_file_system_by_its_digest() {
    let Some(world) = World::new() else { return };
    let archive = world.env.home().join("alpine.tar");
    assert_eq!(tar(&world.root("alpine"), &archive).code, 0);
    let place = world.env.home().join("layout");
    write_layout(&place, &layout(&[gzip(&fs_err::read(&archive).unwrap())], &[]));
    let recipe = world.recipe("greet", &script("greet", ""));
    let rootfs = ["--rootfs".to_owned(), format!("alpine={}", place.display())];
    let (cell, code) =
        world.only(&[&recipe[..], &rootfs, &["--family".to_owned(), "alpine".to_owned()]].concat());
    assert_eq!(
        (&cell["state"], &cell["root"]["form"], code),
        (&"pass".into(), &"layout".into(), 0),
        "{cell:#}"
    );
    assert!(cell["root"]["digest"].as_str().unwrap().starts_with("sha256-"), "{cell:#}");
}

/// Without namespaces there is no sandbox, and without a sandbox nothing of a recipe runs: the cell is a failure, and
/// whatever is allowed to be unavailable, this is not.
#[test]
fn no_isolation_at_hand_is_a_failure_and_never_a_pass() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::Same) else { return };
    let Some(unshare) = program("unshare").filter(|_| is_root()) else {
        return skip("taking namespaces away needs root and unshare");
    };
    let recipe = env.home().join("greet.toml");
    let head = "format = 1\nname = \"greet\"\nversion = \"1.0\"\ndescription = \"a test\"\n";
    env.file(&recipe, format!("{head}{}", script("greet", "")));
    // Only in a user namespace of its own, for which the limit alone holds.
    let without = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let bare = || env.run(&unshare).args(["--user", "--map-root-user", "sh", "-c", without, "sh"]);
    if bare().arg("true").ended().code != 0 {
        return skip("no user namespace can be made, or none in which the limit can be set");
    }
    let call = |words: &[&str]| bare().arg(env.binary()).args(["tool"]).args(words).arg(&recipe).ended();
    let tested = call(&["test", "--json", "--yes", "--allow-unavailable", "--family", here(), "--recipe"]);
    let answer: Value = serde_json::from_str(&tested.stdout).unwrap_or_else(|_| panic!("{tested:?}"));
    assert_eq!((&answer["cells"][0]["state"], tested.code), (&"fail".into(), 1), "{tested:?}");
    assert!(answer["cells"][0]["why"].as_str().unwrap().contains("namespaces"), "{answer:#}");
    let installed = call(&["install", "--yes", "--recipe"]);
    assert!(installed.code != 0 && installed.stderr.contains("namespaces"), "{installed:?}");
    let kept = env.sandtable().args(["tool", "ls", "--json"]).ended().expect_code(0);
    assert!(!kept.stdout.contains("greet"), "{}", kept.stdout);
}

/// The family of this machine, where it has one that is tried without a root file system.
pub(crate) fn here() -> &'static str {
    let release = fs_err::read_to_string("/etc/os-release").unwrap_or_default();
    let is = |id: &str| release.lines().any(|line| line.starts_with("ID") && line.contains(id));
    ["debian", "rhel", "arch", "alpine", "suse"].into_iter().find(|id| is(id)).unwrap_or("debian")
}

fn tar(tree: &Path, archive: &Path) -> Ended {
    Run::new("tar", tree).variable("PATH", PATH).arg("-cf").arg(archive).arg(".").ended()
}
