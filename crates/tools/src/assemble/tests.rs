use sandtable_sandbox::model::platform::Os;

use super::super::builtin;
use super::super::plan::{Arch, Libc, LinuxFamily};
use super::*;

const TARGET: PlanPlatform =
    PlanPlatform { os: Os::Linux, arch: Arch::X86_64, libc: Libc::Glibc, linux_family: None };

/// A recipe with one step, and more lines before it.
fn recipe(name: &str, head: &str, step: &str) -> Recipe {
    let text = format!(
        "format = 1\nname = \"{name}\"\nversion = \"1.0\"\ndescription = \"a test\"\n{head}\n[[steps]]\n{step}\n"
    );
    Recipe::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn command(name: &str, head: &str) -> Recipe {
    recipe(name, head, "action = \"run_command\"\ncommand = [\"true\"]")
}

const CMAKE: &str = "action = \"cmake_build\"\nsource = \"source\"\noutputs = [\"bin/x\"]";

fn plan(trusted: &[Recipe], local: &[Recipe]) -> Result<Plan, AssembleError> {
    Shelf::new(trusted, local)?.plan(&local[0], TARGET)
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.dependencies.iter().map(|plan| plan.name.as_str()).collect()
}

#[test]
fn an_action_brings_what_it_implies() {
    let plan = plan(builtin::recipes(), &[recipe("mine", "", CMAKE)]).unwrap();
    assert_eq!(names(&plan), ["cmake", "make", "pkg-config", "zig"]);
    assert_eq!(plan.check().map_err(|error| error.to_string()), Ok(()));
    assert!(plan.dependencies.iter().all(|plan| !plan.downloads.is_empty()));
}

#[test]
fn what_implies_nothing_brings_nothing() {
    assert_eq!(names(&plan(builtin::recipes(), &[command("mine", "")]).unwrap()), Vec::<&str>::new());
}

#[test]
fn dependencies_are_replaced_and_extended() {
    let of = |head: &str, more: &str| {
        let made = plan(builtin::recipes(), &[recipe("mine", head, &format!("{CMAKE}\n{more}"))]).unwrap();
        names(&made).join(" ")
    };
    assert_eq!(of("extra_dependencies = [\"ninja\"]", ""), "cmake make ninja pkg-config zig");
    assert_eq!(of("dependencies = [\"cmake\"]", ""), "cmake");
    assert_eq!(of("dependencies = []", ""), "");
    assert_eq!(of("", "dependencies = [\"zig\", \"ninja@1.13\"]"), "ninja zig");
    assert_eq!(of("", "extra_dependencies = [\"ninja\"]"), "cmake make ninja pkg-config zig");
    assert_eq!(of("dependencies = [\"cmake\"]", "extra_dependencies = [\"ninja\"]"), "cmake");
    assert_eq!(of("extra_dependencies = [\"mine\"]", ""), "cmake make pkg-config zig", "never itself");
}

#[test]
fn a_step_for_elsewhere_brings_no_dependency() {
    let elsewhere = format!(
        "{CMAKE}\nwhen = {{ libc = \"musl\" }}\n[[steps]]\naction = \"run_command\"\ncommand = [\"true\"]"
    );
    assert_eq!(
        names(&plan(builtin::recipes(), &[recipe("mine", "", &elsewhere)]).unwrap()),
        Vec::<&str>::new()
    );
}

#[test]
fn a_missing_dependency_names_the_whole_chain() {
    let few: Vec<Recipe> =
        builtin::recipes().iter().filter(|recipe| recipe.name.as_str() != "zig").cloned().collect();
    let error = plan(&few, &[recipe("mine", "", CMAKE)]).unwrap_err().to_string();
    assert!(error.starts_with("`mine → zig`: there is no recipe for the dependency `zig`"), "{error}");
    let error = plan(&few, &[command("mine", "dependencies = [\"ninja@9\"]")]).unwrap_err().to_string();
    assert!(error.contains("`ninja@9`") && error.ends_with("there is 1.13.2"), "{error}");
}

#[test]
fn a_local_recipe_provides_nothing_that_is_implied() {
    // `cmake` is missing among the built-in ones, and somebody offers his own.
    let few: Vec<Recipe> =
        builtin::recipes().iter().filter(|recipe| recipe.name.as_str() != "cmake").cloned().collect();
    let local = [recipe("mine", "", CMAKE), command("cmake", "")];
    let error = plan(&few, &local).unwrap_err();
    assert!(matches!(error, AssembleError::Missing { .. }), "{error}");
    let named = [recipe("mine", "extra_dependencies = [\"cmake\"]", CMAKE), command("cmake", "")];
    let error = plan(&few, &named).unwrap_err();
    assert!(matches!(error, AssembleError::Missing { .. }), "also if it is named: {error}");
}

#[test]
fn a_local_recipe_is_not_called_like_a_built_in_one() {
    let error = plan(builtin::recipes(), &[command("mine", ""), command("cmake", "")]).unwrap_err();
    assert!(matches!(error, AssembleError::Shadows { .. }), "{error}");
    let error = plan(&[], &[command("mine", ""), command("mine", "")]).unwrap_err();
    assert!(matches!(error, AssembleError::Twice { .. }), "{error}");
}

#[test]
fn a_circle_is_named_with_its_path() {
    let local = [
        command("a", "dependencies = [\"b\"]"),
        command("b", "dependencies = [\"c\"]"),
        command("c", "dependencies = [\"a\"]"),
    ];
    let error = plan(&[], &local).unwrap_err().to_string();
    assert_eq!(error, "dependencies go in a circle: `a → b → c → a`");
}

#[test]
fn depth_and_number_have_limits() {
    let chain: Vec<Recipe> = (0..20)
        .map(|number| command(&format!("n{number}"), &format!("dependencies = [\"n{}\"]", number + 1)))
        .collect();
    assert!(matches!(plan(&[], &chain), Err(AssembleError::Deep { .. })));
    let all: Vec<String> = (0..MOST_PLANS).map(|number| format!("\"n{number}\"")).collect();
    let mut many = vec![command("top", &format!("dependencies = [{}]", all.join(", ")))];
    many.extend((0..MOST_PLANS).map(|number| command(&format!("n{number}"), "")));
    assert!(matches!(plan(&[], &many), Err(AssembleError::Many { .. })));
}

#[test]
fn packages_of_the_system_are_those_of_the_family() {
    let local = [recipe("mine", "", "action = \"system_packages\"\napt = [\"m4\"]\ndnf = [\"m4-rpm\"]")];
    let shelf = Shelf::new(&[], &local).unwrap();
    let on = |family| shelf.plan(&local[0], PlanPlatform { linux_family: family, ..TARGET });
    let debian = on(Some(LinuxFamily::Debian)).unwrap();
    let rhel = on(Some(LinuxFamily::Rhel)).unwrap();
    assert_eq!(debian.platform.linux_family, Some(LinuxFamily::Debian));
    assert_ne!(debian.steps, rhel.steps);
    let chain = |error: AssembleError| std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(chain(on(Some(LinuxFamily::Arch)).unwrap_err()), "packages for `arch` are not named");
    assert_eq!(chain(on(None).unwrap_err()), "packages of a distribution need a family, and none is known");
    let plain = [command("mine", "")];
    let target = PlanPlatform { linux_family: Some(LinuxFamily::Suse), ..TARGET };
    let portable = Shelf::new(&[], &plain).unwrap().plan(&plain[0], target).unwrap();
    assert_eq!(portable.platform.linux_family, None, "a plan that does not care is good everywhere");
}

#[test]
fn words_in_braces_become_places() {
    let text = "action = \"run_command\"\ncommand = [\"{dep:ninja}/x\", \"{version}\", \"{install_dir}\", \"{other}\"]";
    let made = plan(builtin::recipes(), &[recipe("mine", "dependencies = [\"ninja\"]", text)]).unwrap();
    let Step::RunCommand { command, .. } = &made.steps[0] else { panic!("{:?}", made.steps) };
    let tools = "/opt/sandtable/tools";
    assert_eq!(
        command,
        &[&format!("{tools}/ninja-1.13.2/x"), "1.0", &format!("{tools}/mine-1.0"), "{other}"]
    );
    let error = plan(builtin::recipes(), &[recipe("mine", "", text)]).unwrap_err();
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "`{dep:ninja}` names no dependency");
}

#[test]
fn every_built_in_recipe_makes_a_sound_plan() {
    let shelf = Shelf::new(builtin::recipes(), &[]).unwrap();
    for recipe in builtin::recipes() {
        for libc in [Libc::Glibc, Libc::Musl] {
            match shelf.plan(recipe, PlanPlatform { libc, ..TARGET }) {
                Ok(plan) => {
                    assert!(
                        !plan.provides.binaries.is_empty() && !plan.verify.is_empty(),
                        "{}",
                        plan.title()
                    );
                    assert!(
                        plan.downloads.iter().all(|download| download.size.is_some()),
                        "{}",
                        plan.title()
                    );
                    assert_eq!(plan.platform.linux_family, None);
                }
                Err(error) => assert!(libc == Libc::Musl, "{error}"),
            }
        }
    }
}

#[test]
fn a_plan_is_the_same_every_time() {
    let make = || plan(builtin::recipes(), &[recipe("mine", "", CMAKE)]).unwrap();
    assert_eq!(make().digest(), make().digest());
    assert_eq!(Plan::from_json(&make().to_json()).unwrap(), make());
}
