//! The harness behind `bench/run`, which builds it, makes its directory and cleans up after it.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sandtable_bench::lab::Site;
use sandtable_bench::outcome::Verdict;
use sandtable_bench::report::Report;
use sandtable_bench::{Options, Scale, run};

type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    match bench(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("bench: {error}"));
            ExitCode::from(2)
        }
    }
}

fn bench(arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let (options, out) = parse(arguments)?;
    let report = run(&options, &mut say)?;
    report.write(&out)?;
    say(&summary(&report, &out));
    Ok(())
}

fn summary(report: &Report, out: &Path) -> String {
    let flat = report.growth.iter().filter_map(|growth| growth.flat.as_ref());
    let verdicts: Vec<_> = report.rows.iter().flat_map(|row| &row.targets).chain(flat).collect();
    let count = |verdict| verdicts.iter().filter(|judged| judged.verdict == verdict).count();
    format!(
        "{} targets reached, {} missed, {} not measured: {}",
        count(Verdict::Pass),
        count(Verdict::Miss),
        count(Verdict::Unmeasured),
        out.join("report.md").display()
    )
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<(Options, PathBuf), Failure> {
    let (mut base, mut sandtable, mut out, mut large) = (None, None, None, None);
    let (mut user, mut only, mut rounds, mut idle, mut scale) = (None, None, None, None, Scale::Full);
    let mut docker = Err("no daemon was given".to_owned());
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value"));
        match argument.as_str() {
            "--base" => base = Some(PathBuf::from(value()?)),
            "--sandtable" => sandtable = Some(PathBuf::from(value()?)),
            "--large" => large = Some(PathBuf::from(value()?)),
            "--out" => out = Some(PathBuf::from(value()?)),
            "--user" => user = Some(value()?),
            "--only" => only = Some(value()?),
            "--rounds" => rounds = Some(positive(&value()?)?),
            "--idle" => idle = Some(u32::try_from(positive(&value()?)?)?),
            "--quick" => scale = Scale::Quick,
            "--docker" => docker = Ok(value()?),
            "--no-docker" => docker = Err(value()?),
            _ => return Err(format!("unknown argument `{argument}`").into()),
        }
    }
    let base = base.ok_or("`--base` is missing; start `bench/run`")?;
    let sandtable = sandtable.ok_or("`--sandtable` is missing; start `bench/run`")?;
    let out = out.ok_or("`--out` is missing; start `bench/run`")?;
    let site = Site { base, sandtable, large, user, docker };
    Ok((Options { site, scale, rounds, idle, only }, out))
}

fn positive(text: &str) -> Result<usize, Failure> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("`{text}` is not a number above zero").into()),
    }
}

/// Progress that nobody can hear any more is no reason to stop measuring.
fn say(text: &str) {
    drop(writeln!(io::stderr(), "{text}"));
}
