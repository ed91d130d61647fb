//! Turns policy files into JSON when a crate is built, since a start reads that several times faster than TOML.
//! People and tests read the TOML. Shared by the build scripts of the library and of the command line.

use std::path::Path;
use std::{env, fs};

/// Writes a `.json` for every `.toml` in `folder` to the output directory of the build.
#[expect(clippy::disallowed_methods, reason = "a build script is told everything by its environment")]
pub(crate) fn convert(folder: &str) {
    let out = env::var_os("OUT_DIR").expect("set by cargo");
    println!("cargo::rerun-if-changed={folder}");
    for entry in fs::read_dir(folder).expect("the folder of the policy") {
        let path = entry.expect("readable").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).expect("the policy is readable");
            let table: toml::Table = toml::from_str(&text).expect("the policy is well-formed");
            let json = serde_json::to_string(&table).expect("a table is an object");
            let name = Path::new(path.file_name().expect("it has an extension")).with_extension("json");
            fs::write(Path::new(&out).join(name), json).expect("the output directory is writable");
        }
    }
}
