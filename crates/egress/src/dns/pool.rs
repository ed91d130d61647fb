//! One address for each name, and one name for each address. The address of a name is the same in every sandbox and run,
//! so an address that a program kept is that of the same name or of none.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use crate::address::Cidr;
use crate::name::HostName;

/// Places that are tried for a name before it gets none.
const MOST_PROBES: u32 = 64;
/// The network's own address and the one that proves the path.
const KEPT: u32 = 2;

/// The names that were asked for, with their addresses.
#[derive(Debug)]
pub struct Pool {
    network: Cidr,
    base: u32,
    size: u32,
    most: usize,
    offsets: HashMap<Rc<HostName>, u32>,
    names: HashMap<u32, Rc<HostName>>,
}

impl Pool {
    /// For at most `most` names in an IPv4 network; `None` if it is another one or too small.
    pub fn new(network: Cidr, most: usize) -> Option<Self> {
        let IpAddr::V4(base) = network.base() else { return None };
        let size = 1_u32.checked_shl(32 - u32::from(network.length()))?;
        let (offsets, names) = (HashMap::new(), HashMap::new());
        (size > 2 * KEPT).then(|| Self { network, base: base.to_bits(), size, most, offsets, names })
    }

    /// The address that is never given to a name.
    pub fn canary(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + 1)
    }

    /// The address of a name; `None` if there is none left for it.
    pub fn address_of(&mut self, name: &HostName) -> Option<Ipv4Addr> {
        if let Some(offset) = self.offsets.get(name) {
            return Some(Ipv4Addr::from_bits(self.base + offset));
        }
        if self.offsets.len() >= self.most {
            return None;
        }
        let places = self.size - 2 * KEPT;
        let first = hash(name.as_str()) % places;
        let mut probes = (0..MOST_PROBES.min(places)).map(|step| KEPT + (first + step) % places);
        let offset = probes.find(|offset| !self.names.contains_key(offset))?;
        let name = Rc::new(name.clone());
        self.offsets.insert(Rc::clone(&name), offset);
        self.names.insert(offset, name);
        Some(Ipv4Addr::from_bits(self.base + offset))
    }

    pub fn name_of(&self, address: Ipv4Addr) -> Option<&HostName> {
        let offset = address.to_bits().checked_sub(self.base)?;
        self.names.get(&offset).map(Rc::as_ref)
    }

    pub fn contains(&self, address: Ipv4Addr) -> bool {
        self.network.contains(address.into())
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// FNV-1a, whose result is the same in every version. A sandbox that finds names with one hash fills its own pool.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        text.parse().expect("a name")
    }

    #[test]
    fn a_name_has_one_address_and_an_address_one_name() {
        let mut pool = Pool::new("28.64.0.0/12".parse().expect("a network"), 10_000).expect("a pool");
        let names: Vec<HostName> = (0..5000).map(|index| name(&format!("n{index}.example"))).collect();
        let addresses: Vec<Ipv4Addr> =
            names.iter().map(|name| pool.address_of(name).expect("an address")).collect();
        for (name, address) in names.iter().zip(&addresses) {
            assert_eq!((pool.address_of(name), pool.name_of(*address)), (Some(*address), Some(name)));
            assert!(pool.contains(*address) && *address != pool.canary());
        }
        let different: std::collections::BTreeSet<_> = addresses.iter().collect();
        assert_eq!((different.len(), pool.len()), (5000, 5000));
        let mut later = Pool::new("28.64.0.0/12".parse().expect("a network"), 10).expect("a pool");
        assert_eq!(later.name_of(addresses[7]), None, "an address of another run");
        assert_eq!(later.address_of(&names[0]), Some(addresses[0]), "the same name in another run");
    }

    #[test]
    fn a_pool_ends_without_giving_an_address_twice() {
        let mut pool = Pool::new("10.0.0.0/28".parse().expect("a network"), 1000).expect("a pool");
        let given: Vec<_> =
            (0..100).filter_map(|index| pool.address_of(&name(&format!("a{index}.b")))).collect();
        assert_eq!(given.len(), 12);
        assert!(given.iter().all(|address| (2..14).contains(&address.octets()[3])));
        let mut few = Pool::new("10.0.0.0/16".parse().expect("a network"), 3).expect("a pool");
        assert_eq!((0..9).filter_map(|index| few.address_of(&name(&format!("a{index}.b")))).count(), 3);
        assert!(few.address_of(&name("a0.b")).is_some(), "a name that has one keeps it");
        for text in ["10.0.0.0/30", "fd00::/8", "0.0.0.0/0"] {
            assert!(Pool::new(text.parse().expect("a network"), 1).is_none(), "{text}");
        }
    }
}
