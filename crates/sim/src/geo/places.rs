//! Where everything is, for a map.
use super::network::Spot;
use super::scenario::Scenario;
use super::world::World;
use crate::error::Refused;
use serde_json::{json, Value};

fn place(spot: &Spot) -> Value {
    let position = spot.position;
    json!({
        "name": spot.name,
        "region": spot.region,
        "latitude": position.map(|at| at.lat),
        "longitude": position.map(|at| at.lon),
    })
}

fn with(mut place: Value, key: &str, value: Value) -> Value {
    place[key] = value;
    place
}

impl Scenario {
    /// User bases, sites and caches with their positions (null where none is known), users on
    /// average over the day, and instances at the beginning. Refused: as [`World::of`].
    pub fn places(&self) -> Result<Value, Refused> {
        let world = World::of(self)?;
        let users = world
            .bases
            .iter()
            .map(|base| with(place(&base.spot), "users", json!(base.profile.mean())));
        let sites = world
            .sites
            .iter()
            .map(|(spot, site)| with(place(spot), "instances", json!(site.instances)));
        Ok(json!({
            "user_bases": users.collect::<Vec<_>>(),
            "sites": sites.collect::<Vec<_>>(),
            "caches": world.caches.iter().map(place).collect::<Vec<_>>(),
        }))
    }
}
