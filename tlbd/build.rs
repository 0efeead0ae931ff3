//! Builds the BPF programs of `tlbd-ebpf` into `OUT_DIR/tlbd`, which the daemon embeds.
//!
//! The compiler is the rustup toolchain that `TLBD_BPF_TOOLCHAIN` names, else nightly;
//! `tlbd-ebpf/toolchain.sh` finds or gets one and sets that. `AYA_BUILD_SKIP=1` leaves an empty
//! object, for lints and tests that load no program.

use std::{env, fs, path::Path, process::Command};

use anyhow::Context as _;
use aya_build::{Package, Toolchain};

fn main() -> anyhow::Result<()> {
    println!("cargo:rerun-if-env-changed=TLBD_BPF_TOOLCHAIN");
    let toolchain = env::var("TLBD_BPF_TOOLCHAIN").unwrap_or_else(|_| "nightly".to_owned());
    let skip = env::var("AYA_BUILD_SKIP").is_ok_and(|v| v == "1" || v.eq_ignore_ascii_case("true"));
    if skip {
        let out_dir = env::var_os("OUT_DIR").context("OUT_DIR is not set")?;
        fs::write(Path::new(&out_dir).join("tlbd"), [])?;
    } else if let Some(missing) = missing(&toolchain) {
        fail(&format!(
            "cannot build the BPF programs: {missing}. Use `make build`, or first \
             `eval \"$(tlbd-ebpf/toolchain.sh)\"`, which gets what is missing or says how to."
        ));
        return Ok(());
    }
    set_child_env(&toolchain);
    // Called when skipping too: it then only tells cargo what the decision depends on.
    let programs = Package {
        name: "tlbd-ebpf",
        root_dir: "../tlbd-ebpf",
        ..Package::default()
    };
    if let Err(err) = aya_build::build_ebpf([programs], Toolchain::Custom(&toolchain)) {
        fail(&format!(
            "the BPF programs did not build, for the reasons above: {err:#}"
        ));
    }
    Ok(())
}

/// Fails the build, with this line only: an `Err` from `main` would print the script's whole log.
fn fail(why: &str) {
    println!("cargo::error={}", why.replace('\n', " "));
}

/// What `toolchain` lacks to compile and link for BPF, if anything.
fn missing(toolchain: &str) -> Option<String> {
    let run = |args: &[&str]| {
        let mut rustup = Command::new("rustup");
        rustup
            .env("RUSTUP_AUTO_INSTALL", "0")
            .args(["run", toolchain])
            .args(args);
        rustup.output().ok().filter(|out| out.status.success())
    };
    let Some(sysroot) = run(&["rustc", "--print", "sysroot"]) else {
        return Some(format!("rustup has no toolchain `{toolchain}`"));
    };
    let sysroot = String::from_utf8_lossy(&sysroot.stdout).into_owned();
    if !Path::new(sysroot.trim())
        .join("lib/rustlib/src/rust/library/core")
        .is_dir()
    {
        return Some(format!("the toolchain `{toolchain}` has no rust-src"));
    }
    if run(&["bpf-linker", "--version"]).is_none() {
        return Some("there is no working bpf-linker on PATH".to_owned());
    }
    None
}

/// The environment of the cargo that builds the programs.
fn set_child_env(toolchain: &str) {
    // SAFETY: this script has one thread here, so nothing reads the environment meanwhile.
    unsafe {
        // The programs need unstable features, which a stable compiler has behind this switch.
        if !toolchain.starts_with("nightly") {
            env::set_var("RUSTC_BOOTSTRAP", "1");
        }
        // Its progress would come out as warnings, again at every build.
        env::set_var("CARGO_TERM_QUIET", "true");
    }
}
