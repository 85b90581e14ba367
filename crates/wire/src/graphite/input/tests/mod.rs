mod corpus;
mod messages;
mod vectors;
