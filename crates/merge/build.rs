//! Makes the tables of what is held and how git is run quick to read.

#[path = "../sandbox/policy/build.rs"]
mod policy;

fn main() {
    policy::convert("src");
}
