//! Tests of the readers through [`super::Parser`]: the tables of the spec, and a corpus with seeded mutations.

mod corpus;
mod vectors;
