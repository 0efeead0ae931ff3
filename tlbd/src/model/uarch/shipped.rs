//! The files that tlbd ships: the one place that lists them. A test finds a file that is missing.

/// Each id, which is the file's name without its ending, and its text.
pub(super) const SHIPPED: &[(&str, &str)] = &[
    (
        "amd-unknown",
        include_str!("../../../data/uarch/amd-unknown.toml"),
    ),
    (
        "ampere-emag",
        include_str!("../../../data/uarch/ampere-emag.toml"),
    ),
    (
        "ampereone",
        include_str!("../../../data/uarch/ampereone.toml"),
    ),
    (
        "ampereonex",
        include_str!("../../../data/uarch/ampereonex.toml"),
    ),
    (
        "arctic-wolf",
        include_str!("../../../data/uarch/arctic-wolf.toml"),
    ),
    (
        "arm-unknown",
        include_str!("../../../data/uarch/arm-unknown.toml"),
    ),
    ("bonnell", include_str!("../../../data/uarch/bonnell.toml")),
    (
        "broadwell",
        include_str!("../../../data/uarch/broadwell.toml"),
    ),
    (
        "cavium-thunderx2",
        include_str!("../../../data/uarch/cavium-thunderx2.toml"),
    ),
    (
        "coyote-cove",
        include_str!("../../../data/uarch/coyote-cove.toml"),
    ),
    (
        "crestmont",
        include_str!("../../../data/uarch/crestmont.toml"),
    ),
    (
        "darkmont",
        include_str!("../../../data/uarch/darkmont.toml"),
    ),
    (
        "fujitsu-a64fx",
        include_str!("../../../data/uarch/fujitsu-a64fx.toml"),
    ),
    ("generic", include_str!("../../../data/uarch/generic.toml")),
    (
        "golden-cove",
        include_str!("../../../data/uarch/golden-cove.toml"),
    ),
    (
        "goldmont-plus",
        include_str!("../../../data/uarch/goldmont-plus.toml"),
    ),
    (
        "goldmont",
        include_str!("../../../data/uarch/goldmont.toml"),
    ),
    (
        "gracemont",
        include_str!("../../../data/uarch/gracemont.toml"),
    ),
    ("haswell", include_str!("../../../data/uarch/haswell.toml")),
    (
        "hisilicon-hip08",
        include_str!("../../../data/uarch/hisilicon-hip08.toml"),
    ),
    (
        "ivy-bridge",
        include_str!("../../../data/uarch/ivy-bridge.toml"),
    ),
    (
        "knights-landing",
        include_str!("../../../data/uarch/knights-landing.toml"),
    ),
    (
        "lion-cove",
        include_str!("../../../data/uarch/lion-cove.toml"),
    ),
    ("nehalem", include_str!("../../../data/uarch/nehalem.toml")),
    (
        "neoverse-e1",
        include_str!("../../../data/uarch/neoverse-e1.toml"),
    ),
    (
        "neoverse-n1",
        include_str!("../../../data/uarch/neoverse-n1.toml"),
    ),
    (
        "neoverse-n2",
        include_str!("../../../data/uarch/neoverse-n2.toml"),
    ),
    (
        "neoverse-n3",
        include_str!("../../../data/uarch/neoverse-n3.toml"),
    ),
    (
        "neoverse-v1",
        include_str!("../../../data/uarch/neoverse-v1.toml"),
    ),
    (
        "neoverse-v2",
        include_str!("../../../data/uarch/neoverse-v2.toml"),
    ),
    (
        "neoverse-v3",
        include_str!("../../../data/uarch/neoverse-v3.toml"),
    ),
    (
        "neoverse-v3ae",
        include_str!("../../../data/uarch/neoverse-v3ae.toml"),
    ),
    (
        "nvidia-t410",
        include_str!("../../../data/uarch/nvidia-t410.toml"),
    ),
    (
        "redwood-cove",
        include_str!("../../../data/uarch/redwood-cove.toml"),
    ),
    (
        "sandy-bridge",
        include_str!("../../../data/uarch/sandy-bridge.toml"),
    ),
    (
        "silvermont",
        include_str!("../../../data/uarch/silvermont.toml"),
    ),
    ("skylake", include_str!("../../../data/uarch/skylake.toml")),
    ("skymont", include_str!("../../../data/uarch/skymont.toml")),
    (
        "sunny-cove",
        include_str!("../../../data/uarch/sunny-cove.toml"),
    ),
    ("tremont", include_str!("../../../data/uarch/tremont.toml")),
    (
        "westmere-ep-sp",
        include_str!("../../../data/uarch/westmere-ep-sp.toml"),
    ),
    (
        "westmere",
        include_str!("../../../data/uarch/westmere.toml"),
    ),
    ("zen1", include_str!("../../../data/uarch/zen1.toml")),
    ("zen2", include_str!("../../../data/uarch/zen2.toml")),
    ("zen3", include_str!("../../../data/uarch/zen3.toml")),
    ("zen4", include_str!("../../../data/uarch/zen4.toml")),
    ("zen5", include_str!("../../../data/uarch/zen5.toml")),
    ("zen6", include_str!("../../../data/uarch/zen6.toml")),
];
