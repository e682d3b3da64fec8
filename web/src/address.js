// Encodes the setup of a run in the page's address, so that everyone who opens the address sees the same run.

const bytes = (text) => new TextEncoder().encode(text);

/** Returns the setup as the part of an address after "#". */
export function written(setup) {
  const binary = Array.from(bytes(JSON.stringify(setup)), (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Returns the setup in the part of an address after "#"; null if this part is empty or not a valid setup. */
export function read(hash) {
  const text = hash.replace(/^#/, "").replaceAll("-", "+").replaceAll("_", "/");
  if (text === "") return null;
  try {
    const setup = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(text), (char) => char.charCodeAt(0))));
    return isSetup(setup) ? setup : null;
  } catch {
    return null;
  }
}

function isSetup(setup) {
  const isPull = (pull) =>
    typeof pull?.at_s === "number" && typeof pull.value === "number" && ["capacity", "delay", "loss", "cross"].includes(pull.quantity);
  return (
    typeof setup?.scenario === "string" &&
    Number.isInteger(setup.seed) &&
    setup.seed >= 0 &&
    setup.seed < 2 ** 32 &&
    (setup.duration_s === null || typeof setup.duration_s === "number") &&
    Array.isArray(setup.controllers) &&
    setup.controllers.every((name) => typeof name === "string") &&
    Array.isArray(setup.pulls) &&
    setup.pulls.every(isPull)
  );
}
