//! Whisper files, byte for byte as the Python library writes them.
