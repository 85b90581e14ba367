//! Imports: reads the originals' configuration files and command lines into a plan, as native files give it.

pub mod carbon;
#[cfg(test)]
mod corpus;
mod fanout;
pub mod javascript;
pub mod relay;
mod report;
pub mod riemann;
pub mod statsd;
pub mod statsd_proxy;

pub use fanout::{Fanout, Written, fanout, fanout_source, fanout_target};
pub use statsd::{Compat, detect, statsd};
pub use statsd_proxy::{ProxyConfig, ProxyNode, is_proxy, plan_of as proxy_plan, statsd_proxy};
