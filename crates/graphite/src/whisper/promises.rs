//! What holds of any bytes as a file.
