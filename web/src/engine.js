// Runs the simulator in a separate worker. The page calls the simulator's functions with `Engine.call`. The argument
// and the result of a function are objects.

const embedded = (id) => document.getElementById(id).textContent;

/** Returns the bytes that were compressed with gzip and encoded as base64 in `text`. */
function unpacked(text) {
  const packed = new Blob([Uint8Array.from(atob(text), (char) => char.charCodeAt(0))]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

export class Engine {
  #worker;
  #waiting = new Map();
  #next = 0;

  constructor() {
    const script = new Blob([embedded("worker")], { type: "text/javascript" });
    this.#worker = new Worker(URL.createObjectURL(script));
    this.#worker.addEventListener("message", ({ data: { id, answer, problem } }) => {
      const { resolve, reject } = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (problem === undefined) resolve(JSON.parse(answer));
      else reject(new Error(problem));
    });
    unpacked(embedded("wasm")).then((wasm) => this.#worker.postMessage({ wasm }, [wasm]));
  }

  call(call, request) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, call, text: request === undefined ? undefined : JSON.stringify(request) });
    });
  }
}
