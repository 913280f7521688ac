//! The document of all locations, for a map.
use super::network::Location;
use super::scenario::GeoScenario;
use super::topology::Topology;
use crate::error::Result;
use serde_json::{json, Value};

fn entry(location: &Location, key: &str, value: Value) -> Value {
    let position = location.position;
    let mut entry = json!({
        "name": location.name,
        "region": location.region,
        "latitude": position.map(|position| position.lat),
        "longitude": position.map(|position| position.lon),
    });
    if !key.is_empty() {
        entry[key] = value;
    }
    entry
}

impl GeoScenario {
    /// Returns user bases, sites and caches with their positions (null where unknown), the mean number
    /// of users over the day, and the initial instances.
    pub fn locations(&self) -> Result<Value> {
        let topology = Topology::new(self)?;
        let users = topology
            .bases
            .iter()
            .map(|base| entry(&base.location, "users", json!(base.profile.mean())));
        let sites = topology
            .sites
            .iter()
            .map(|(location, site)| entry(location, "instances", json!(site.instances)));
        let caches = topology.caches.iter().map(|location| entry(location, "", Value::Null));
        Ok(json!({
            "user_bases": users.collect::<Vec<_>>(),
            "sites": sites.collect::<Vec<_>>(),
            "caches": caches.collect::<Vec<_>>(),
            "objective_ms": self.objective_ms,
            "compat": self.compat.map(|_| "cloudanalyst"),
        }))
    }
}
