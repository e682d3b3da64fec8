use std::process::{Command, Output};

/// Runs `gst-inspect-1.0` with a plugin path that contains only this plugin, and with warnings as errors. Returns
/// `None` if the command is missing.
fn inspect(what: &str) -> Option<Output> {
    let built = std::env::current_exe().expect("a path").with_file_name("libgstequipoise.so");
    let folder = std::env::temp_dir().join(format!("equipoise-gst-{}", std::process::id()));
    let (plugins, registry) = (folder.join("plugins"), folder.join("registry.bin"));
    std::fs::create_dir_all(&plugins).expect("a folder");
    std::fs::copy(built, plugins.join("libgstequipoise.so")).expect("the plugin beside this test");
    let output = Command::new("gst-inspect-1.0")
        .arg(what.replace("{plugins}", &plugins.display().to_string()))
        .envs([("GST_REGISTRY", &registry), ("GST_PLUGIN_PATH", &plugins), ("GST_PLUGIN_SYSTEM_PATH", &plugins)])
        .envs([("G_DEBUG", "fatal-warnings"), ("GST_DEBUG", "*:2"), ("GST_DEBUG_NO_COLOR", "1")])
        .output()
        .ok();
    std::fs::remove_dir_all(folder).expect("the folder goes");
    output
}

/// If this test fails, GStreamer does not accept the library as a plugin, or reports a problem with it.
#[test]
fn gst_inspect_knows_plugin_and_element_and_has_no_complaint() {
    let asked = [
        ("{plugins}/libgstequipoise.so", ["rtpequipoisebwe", "MIT/X11"]),
        ("rtpequipoisebwe", ["estimated-bitrate", "controller-params"]),
    ];
    for (what, expected) in asked {
        let Some(output) = inspect(what) else {
            println!("skipped: gst-inspect-1.0");
            return;
        };
        let (text, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}{complaints}");
        assert!(expected.iter().all(|expected| text.contains(expected)), "{text}");
        let about_us = |line: &&str| line.contains("equipoise") || line.contains("CRITICAL");
        assert_eq!(complaints.lines().find(about_us), None, "{complaints}");
    }
}
