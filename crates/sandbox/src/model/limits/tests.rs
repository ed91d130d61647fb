use proptest::prelude::*;

use super::*;

fn read<T: FromStr<Err = LimitError> + fmt::Display>(text: &str) -> String {
    match text.parse::<T>() {
        Ok(limit) => limit.to_string(),
        Err(error) => format!("{error:?}"),
    }
}

#[test]
fn disk_is_an_amount_or_none() {
    for (given, stored) in [("20m", "20m"), ("1.5G", "1536m"), ("none", "none"), ("unlimited", "none")] {
        assert_eq!(read::<Disk>(given), stored);
    }
    assert_eq!("20".parse::<Disk>(), Err(LimitError::DiskUnit("20".to_owned())));
    assert_eq!("1023k".parse::<Disk>(), Err(LimitError::DiskLow("1023k".to_owned())));
    for bad in ["", "None", "-1m", "m", "1x", "9999999t"] {
        assert_eq!(bad.parse::<Disk>(), Err(LimitError::Disk(bad.to_owned())), "{bad}");
    }
    assert!(Disk::Bytes(u64::MAX) < Disk::Unlimited);
}

#[test]
fn memory_has_a_unit() {
    for (text, means) in [
        ("100m", "100m"),
        ("100M", "100m"),
        ("100MiB", "100m"),
        ("102400k", "100m"),
        ("1.5g", "1536m"),
        ("2GB", "2g"),
        ("104857601b", "104857601b"),
        ("1t", "1t"),
    ] {
        assert_eq!(read::<Memory>(text), means, "{text}");
    }
    assert_eq!("100m".parse::<Memory>().map(Memory::bytes), Ok(104_857_600));
    for bare in ["512", "104857600", "1.5", "0"] {
        assert_eq!(bare.parse::<Memory>(), Err(LimitError::MemoryUnit(bare.to_owned())));
    }
    for bad in ["", "m", "1.g", ".5g", "-1g", "1e9b", "1 g", "1x", "99999999t", "1.2.3m", "unlimited"] {
        assert_eq!(bad.parse::<Memory>(), Err(LimitError::Memory(bad.to_owned())), "{bad}");
    }
    assert_eq!("15m".parse::<Memory>(), Err(LimitError::MemoryLow("15m".to_owned())));
}

#[test]
fn processors_may_be_parts_of_one() {
    for (text, means) in [("2", "2"), ("0.5", "0.5"), ("1.250", "1.25"), ("0.01", "0.01"), ("10", "10")] {
        assert_eq!(read::<Cpus>(text), means, "{text}");
    }
    for bad in ["", "0", "0.001", "-1", "1,5", "two", "5000", "1.", "NaN"] {
        assert_eq!(bad.parse::<Cpus>(), Err(LimitError::Cpus(bad.to_owned())), "{bad}");
    }
}

#[test]
fn processes_are_whole() {
    assert_eq!(read::<Pids>("64"), "64");
    for bad in ["", "0", "1", "-5", "+5", "1.5", "64k", "4194305"] {
        assert_eq!(bad.parse::<Pids>(), Err(LimitError::Pids(bad.to_owned())), "{bad}");
    }
}

#[test]
fn a_bare_time_is_in_seconds() {
    for (text, means) in
        [("2", "2s"), ("90s", "90s"), ("1.5h", "90m"), ("500ms", "500ms"), ("120", "2m"), ("24h", "1d")]
    {
        assert_eq!(read::<Timeout>(text), means, "{text}");
    }
    for bad in ["", "0", "0s", "-1", "1w", "1h30m", "s", "0.0001ms", "99999999d"] {
        assert_eq!(bad.parse::<Timeout>(), Err(LimitError::Timeout(bad.to_owned())), "{bad}");
    }
}

#[test]
fn only_a_profiles_limits_are_wishes() {
    assert_eq!(Need::of(&Origin::Profile { name: "safe".to_owned() }), Need::Preferred);
    for origin in [
        Origin::Flag { name: "--memory".to_owned() },
        Origin::Variable { name: "SANDBOX_MEMORY".to_owned() },
        Origin::ProjectFile { path: "/p".into() },
        Origin::UserFile { path: "/u".into() },
    ] {
        assert_eq!(Need::of(&origin), Need::Required, "{origin}");
    }
}

proptest! {
    #[test]
    fn what_is_shown_reads_back(cpus in 10_u32..4_096_000, memory in Memory::LEAST..1 << 50, time in 1_u64..1 << 41) {
        prop_assert_eq!(Cpus(cpus).to_string().parse(), Ok(Cpus(cpus)));
        prop_assert_eq!(Memory(memory).to_string().parse(), Ok(Memory(memory)));
        prop_assert_eq!(Timeout(time).to_string().parse(), Ok(Timeout(time)));
    }

    #[test]
    fn no_text_is_a_surprise(text in "\\PC{0,12}") {
        let _refused_or_not = (text.parse::<Cpus>(), text.parse::<Memory>(), text.parse::<Pids>(), text.parse::<Timeout>());
    }
}
