//! Facts about this build, which `build.rs` of the crate finds out.

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that it was built from, or `unknown`.
pub const COMMIT: &str = env!("STAUNCH_BUILD_COMMIT");

/// What `staunch --version --verbose` prints.
pub fn verbose() -> String {
    format!(
        "staunch {VERSION}\ncommit: {COMMIT}\nfeatures: none\ntarget: {}\nprofile: {}\nrustc: {}\n",
        env!("STAUNCH_BUILD_TARGET"),
        env!("STAUNCH_BUILD_PROFILE"),
        env!("STAUNCH_BUILD_RUSTC"),
    )
}
