//! Facts about this build, which the crate's `build.rs` determines.

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit of the build, or `unknown`.
pub const COMMIT: &str = env!("STAUNCH_BUILD_COMMIT");

/// The output of `staunch --version --verbose`.
pub fn verbose() -> String {
    format!(
        "staunch {VERSION}\ncommit: {COMMIT}\nfeatures: none\ntarget: {}\nprofile: {}\nrustc: {}\n",
        env!("STAUNCH_BUILD_TARGET"),
        env!("STAUNCH_BUILD_PROFILE"),
        env!("STAUNCH_BUILD_RUSTC"),
    )
}
