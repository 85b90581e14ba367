//! Folds over small lists.
