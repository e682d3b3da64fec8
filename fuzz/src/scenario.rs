use equipoise_lab::scenario::Scenario;

/// Parses any text as a scenario file. The text is a valid scenario or is refused with an error. A valid scenario can
/// be explained in words, and contains the parsed text unchanged.
///
/// # Panics
/// If one of these properties does not hold.
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
