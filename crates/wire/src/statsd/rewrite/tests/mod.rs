mod aggregates;
mod pack;
mod parts;
mod write;
