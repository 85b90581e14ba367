//! The rules of spec graphite §2.4 to §2.6 as tables, and random plans, in which the three ways from a name to its copies
//! must agree: explained, decided and remembered.

mod agree;
mod asked;
mod limits;
mod rig;
mod statements;
mod warnings;
