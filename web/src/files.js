// The exported files.

/** Lets the browser save a text or a blob under a name. */
export function save(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  // The browser reads the URL after this task of the event loop.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The series of all lanes as CSV (RFC 4180), with units in the column names. */
export function csv({ lanes }) {
  const names = Object.keys(lanes[0].columns);
  const lines = [["controller", ...names].join(",")];
  for (const { controller, columns } of lanes) {
    columns.at_s.forEach((_, row) => {
      lines.push([controller, ...names.map((name) => columns[name][row] ?? "")].join(","));
    });
  }
  return `${lines.join("\r\n")}\r\n`;
}
