//! The rules of spec graphite §2.4 to §2.6 as tables; and random plans, for which explanation, decision and cache
//! must agree.

mod agree;
mod limits;
mod rig;
mod snapshot;
mod statements;
mod warnings;
