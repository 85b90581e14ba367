mod corpus;
mod vectors;
