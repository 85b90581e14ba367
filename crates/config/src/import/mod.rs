//! Imports: the originals' configuration files, read as they are, into the plan that native files give as well.

pub mod carbon;
#[cfg(test)]
mod corpus;
pub mod javascript;
mod json;
pub mod perl;
pub mod relay;
pub mod statsd;
pub mod statsd_proxy;

pub use statsd::{Compat, detect, statsd};
pub use statsd_proxy::{ProxyConfig, ProxyNode, is_proxy, plan_of as proxy_plan, statsd_proxy};
