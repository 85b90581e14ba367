//! by
