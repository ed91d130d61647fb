use sandtable_sandbox::model::platform::Os;
use sandtable_tools::assemble::Shelf;
use sandtable_tools::builtin;
use sandtable_tools::plan::{Arch, Libc, PlanPlatform};
use sandtable_tools::recipe::Recipe;

use super::*;

const RECIPE: &str = r#"format = 1
name = "greet"
version = "1.0"
description = "says hello"
extra_dependencies = ["ninja"]

[[download]]
source = "crate"
name = "greet"
version = "1.0"
file = "greet-1.0.crate"
sha256 = "abababababababababababababababababababababababababababababababab"
size = 2048

[[steps]]
action = "source_archive"
file = "greet-1.0.crate"

[[steps]]
action = "run_command"
command = ["touch", "{install_dir}/a\u001b[2Jb"]

[verify]
command = ["greet", "--version"]
pattern = "{version}"

[provides]
binaries = ["bin/greet"]
env = { GREETING = "{install_dir}/hello" }
"#;

fn greet() -> Plan {
    let local = [Recipe::parse(RECIPE).expect("a recipe")];
    let target = PlanPlatform { os: Os::Linux, arch: Arch::X86_64, libc: Libc::Glibc, linux_family: None };
    Shelf::new(builtin::recipes(), &local).expect("names differ").plan(&local[0], target).expect("a plan")
}

#[test]
fn a_plan_is_shown_whole_and_harmless() {
    insta::assert_snapshot!(plan(&greet()), @r#"
    greet 1.0 for linux x86_64 glibc
    digest    ec09c4aaed7465f63146cb3a2cf32ec1b9a448cd044a2082aa2d6ef1d09785c6
    downloads
      crate greet 1.0  greet-1.0.crate  2048 B  sha256 abababababababababababababababababababababababababababababababab
    steps
      1  download_file file=greet-1.0.crate to=downloads/greet-1.0.crate
      2  extract archive=downloads/greet-1.0.crate format=tar.gz strip=1 to=source
      3  run_command command=["touch","/opt/sandtable/tools/greet-1.0/a\u001b[2Jb"]
    verify
      greet --version  1.0
    programs
      /opt/sandtable/tools/greet-1.0/bin/greet
    variables
      GREETING=/opt/sandtable/tools/greet-1.0/hello
    dependencies
      ninja 1.13.2  built-in  180 KiB  for greet
    in all    2 files, 182 KiB
    "#);
}

#[test]
fn a_question_says_what_is_fetched_run_and_kept() {
    let greet = greet();
    let asked = Question::about(&greet).expect("it is foreign");
    insta::assert_snapshot!(question(&greet, &asked, "the finished tool, until `tool gc`"), @r"
    sandtable: greet 1.0 did not come with the program. It asks for this:
      ninja 1.13.2  built-in  pypi ninja 1.13.2  180 KiB
      greet 1.0     foreign   crate greet 1.0    2048 B
      runs: touch /opt/sandtable/tools/greet-1.0/a\u{1b}[2Jb
      sets: GREETING=/opt/sandtable/tools/greet-1.0/hello
      fetches: 2 files, 182 KiB; what runs has no network
      stays: the finished tool, until `tool gc`
      plan: ec09c4aaed7465f63146cb3a2cf32ec1b9a448cd044a2082aa2d6ef1d09785c6
    ");
}

#[test]
fn a_question_points_at_variables_that_programs_obey() {
    let mut greet = greet();
    for (name, value) in
        [("BASH_ENV", "/x\u{202e}"), ("NODE_OPTIONS", "--require /x"), ("GIT_SSH_COMMAND", "x")]
    {
        greet.provides.env.insert(name.to_owned(), value.to_owned());
    }
    let text = question(&greet, &Question::about(&greet).expect("it is foreign"), "");
    for line in [
        "  sets: BASH_ENV=/x\\u{202e} (bash runs it before every script)\n",
        "  sets: NODE_OPTIONS=--require /x (node loads the code it names)\n",
        "  sets: GIT_SSH_COMMAND=x (git obeys it, and runs what some of them name)\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn changes_are_shown_as_lines_of_old_and_new() {
    let change = |old: Option<&str>, new: Option<&str>| Change {
        place: "version".to_owned(),
        old: old.map(str::to_owned),
        new: new.map(str::to_owned),
    };
    let text = changes(&[change(Some("1"), Some("2")), change(None, Some("3\n"))]);
    assert_eq!(text, "- version = 1\n+ version = 2\n+ version = 3\\n\n");
}
