//! Messages about names that do not exist, with those that do.

use config::diagnostic::nearest;

use crate::world::World;
use crate::world::outlet::Outlet;

pub(crate) fn known_output<'a>(world: &'a mut World, name: &str) -> Result<&'a mut Outlet, String> {
    let names: Vec<String> = world.outlets.iter().map(|outlet| outlet.name.clone()).collect();
    world.outlet(name).ok_or_else(|| {
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let near = did_you_mean(nearest(name, all.iter().copied()));
        format!("there is no output `{name}`; there are: {}{near}", listed(&all))
    })
}

/// `a`, `b`, or `none`.
pub(crate) fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        return "none".into();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

pub(crate) fn did_you_mean(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}
