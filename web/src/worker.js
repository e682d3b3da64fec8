// Runs the simulator in a worker, so that the page stays responsive. build.mjs puts the JavaScript code from
// wasm-bindgen in front of this script.
const ready = new Promise((resolve) => {
  self.addEventListener("message", function begin({ data }) {
    if (!data.wasm) return;
    self.removeEventListener("message", begin);
    resolve(wasm_bindgen({ module_or_path: data.wasm }));
  });
});

self.addEventListener("message", async ({ data: { id, call, text } }) => {
  if (id === undefined) return;
  await ready;
  try {
    const { play, controllers, scenarios } = wasm_bindgen;
    const answer = { play: () => play(text), controllers, scenarios }[call]();
    self.postMessage({ id, answer });
  } catch (error) {
    self.postMessage({ id, problem: error?.message ?? String(error) });
  }
});
