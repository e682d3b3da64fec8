use equipoise_lab::scenario::Scenario;

/// Any text is a scenario or is refused with words; one that is accepted can be explained, and is what it was.
///
/// # Panics
/// Where one of these does not hold.
pub fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Scenario::parse(text) {
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
        Ok(scenario) => {
            assert!(!scenario.explain().is_empty());
            assert_eq!(scenario.text, text);
            assert!(scenario.warm_up < scenario.duration);
            for flow in &scenario.flows {
                assert!(flow.path.iter().all(|&link| link < scenario.links.len()));
            }
        }
    }
}
